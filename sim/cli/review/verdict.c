/* verdict.c - the top of the page: the question, the recommendation in words
 * and tiles, and the ranked table of policies. */
#include <math.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/cli/page/page.h"
#include "sim/cli/review/review_page.h"
#include "traces/torch_platforms.h"

static void put_policy(FILE *out, const struct standing *s)
{
    html_between(out, "<code>", s->first->id.policy, "</code>");
}

static void put_plural(FILE *out, size_t n, const char *word, const char *more)
{
    fprintf(out, "%zu %s", n, n == 1 ? word : more);
}

/* The memory that is compared. */
static const char *memory_of(const struct review *r)
{
    return r->ranking.has_needs ? "need" : "peak reserved";
}

/* Saved share of the baseline's memory; negative if s has more. */
static double saving(const struct review *r, const struct standing *s)
{
    return 1 - s->memory / r->baseline->memory;
}

/* -- sentences ----------------------------------------------------------- */

/* Whether the means of s and the baseline are of the same traces. */
static bool is_comparable(const struct review *r, const struct standing *s)
{
    return s->is_whole && r->baseline->is_whole;
}

static void say_memory(FILE *out, const struct review *r,
                       const struct standing *s)
{
    double x = saving(r, s);

    if (!is_comparable(r, s)) {
        fprintf(out,
                "Its %s is not compared, because a request fails under the "
                "largest bound. Its",
                memory_of(r));
        return;
    }
    if (fabs(x) < 0.0005)
        fprintf(out, "Its %s is the baseline's", memory_of(r));
    else
        fprintf(out, "Its %s is <b>%.1f %% %s</b> than the baseline's",
                memory_of(r), 100 * fabs(x), x > 0 ? "lower" : "higher");
    if (s->subjects > 1)
        fprintf(out, " (geometric mean over %zu traces)", s->subjects);
    fputs(", and its", out);
}

/* Its memory and its driver time, beside those of the baseline. */
static void say_price(FILE *out, const struct review *r,
                      const struct standing *s)
{
    char mine[32], theirs[32];

    say_memory(out, r, s);
    fprintf(out, " modelled driver calls take <b>%s</b> instead of %s",
            html_duration(s->seconds, mine),
            html_duration(r->baseline->seconds, theirs));
    if (r->recorded > 0)
        fprintf(out, " (%+.2f %% of the recorded %s)", 100 * review_extra(r, s),
                html_duration(r->recorded, mine));
    fputs(". ", out);
}

static void say_fits(FILE *out, const struct review *r,
                     const struct standing *s)
{
    fprintf(out, " survives <b>%zu of %zu</b> runs on limited devices",
            s->survived, s->limited);
    if (s != r->baseline) {
        fputs(", ", out);
        put_policy(out, r->baseline);
        fprintf(out, " survives %zu", r->baseline->survived);
    }
    fputs(". ", out);
}

/* The last candidate, if it is worse than the choice. */
static void say_loser(FILE *out, const struct review *r)
{
    const struct standing *s = r->loser;

    if (s->survived == r->choice->survived && s->memory == r->choice->memory)
        return;
    fputs("The last is ", out);
    put_policy(out, s);
    if (s == r->baseline)
        fputs(".", out);
    else if (s->survived < r->choice->survived)
        fprintf(out, ", which survives %zu.", s->survived);
    else
        fprintf(out, ", whose %s is %.2fx the lower bound.", memory_of(r),
                s->memory);
}

static void say_baseline_wins(FILE *out, const struct review *r)
{
    fputs("No policy", out);
    if (r->recorded > 0)
        fprintf(out,
                " that adds at most %.3g %% of the recorded time in driver "
                "calls",
                100 * r->slowdown);
    fputs(" is better than ", out);
    put_policy(out, r->baseline);
    fputs(". ", out);
    if (r->is_limited) {
        put_policy(out, r->baseline);
        say_fits(out, r, r->baseline);
    }
    say_loser(out, r);
}

static void say_winner(FILE *out, const struct review *r)
{
    fputs("Use ", out);
    put_policy(out, r->choice);
    fputs(". ", out);
    if (r->is_limited) {
        fputs("It", out);
        say_fits(out, r, r->choice);
    }
    say_price(out, r, r->choice);
    say_loser(out, r);
}

/* Whether a policy can be recommended. */
static bool has_winner(const struct review *r)
{
    return r->ranking.cell_count[RANKED_COMPARED] &&
           (!r->is_limited || r->ceiling->survived || r->ceiling->is_whole);
}

static void say_choice(FILE *out, const struct review *r)
{
    fputs("<p class=\"verdict\">", out);
    if (!r->ranking.cell_count[RANKED_COMPARED])
        fputs("Nothing can be compared: no trace has runs of all policies "
              "under a bound that it can survive.",
              out);
    else if (!has_winner(r))
        fprintf(out,
                "No policy survives one of the %zu runs on limited devices.",
                r->baseline->limited);
    else if (r->choice == r->baseline)
        say_baseline_wins(out, r);
    else
        say_winner(out, r);
    fputs("</p>\n", out);
}

/* The cells on which the policies are not compared, and why. */
static void say_left_out(FILE *out, const struct review *r)
{
    const size_t *cells = r->ranking.cell_count;
    const size_t left = cells[RANKED_UNSHARED] + cells[RANKED_IMPOSSIBLE];
    const struct standing *least = r->baseline;

    if (!left)
        return;
    for (size_t i = 0; i < r->ranking.count; i++)
        if (!r->ranking.rows[i].is_offline &&
            r->ranking.rows[i].cells < least->cells)
            least = &r->ranking.rows[i];
    fprintf(out,
            "<p id=\"compared\">The policies are compared on %zu of %zu cells; "
            "a cell is a trace under a bound. Left out:",
            cells[RANKED_COMPARED], cells[RANKED_COMPARED] + left);
    if (cells[RANKED_UNSHARED]) {
        fprintf(out, " %zu on which not every policy ran (",
                cells[RANKED_UNSHARED]);
        put_policy(out, least);
        fprintf(out, " ran on %zu)%s", least->cells,
                cells[RANKED_IMPOSSIBLE] ? ", and" : "");
    }
    if (cells[RANKED_IMPOSSIBLE])
        fprintf(out, " %zu whose bound is below what the job asks for",
                cells[RANKED_IMPOSSIBLE]);
    fputs(".</p>\n", out);
}

static void say_export(FILE *out, const struct standing *s)
{
    fprintf(out, "<pre>export %s='", torch_variable_of(s->first->run.params));
    html_text(out, review_setting(s));
    fputs("'</pre>\n", out);
}

/* The best setting of PyTorch, if that is not the choice itself, and the line
 * to export. */
static void say_setting(FILE *out, const struct review *r)
{
    if (r->setting && r->setting != r->choice) {
        fputs("<p>The best setting of PyTorch itself is ", out);
        put_policy(out, r->setting);
        fputs(": it", out);
        if (r->is_limited)
            say_fits(out, r, r->setting);
        else
            fputs(" fits. ", out);
        say_price(out, r, r->setting);
        fputs("</p>\n", out);
    }
    if (r->setting)
        say_export(out, r->setting);
}

/* Whether s survives more runs than the choice or saves more than 1 % of
 * memory: less is no reason to change an allocator. */
static bool is_worth_more(const struct standing *s,
                          const struct standing *choice)
{
    return s->limited - s->survived < choice->limited - choice->survived ||
           s->memory < 0.99 * choice->memory;
}

/* The best policy at any cost, if it is worth more than the choice. */
static void say_ceiling(FILE *out, const struct review *r)
{
    const struct standing *s = r->ceiling;

    if (s == r->choice || !is_worth_more(s, r->choice))
        return;
    fputs("<p>At a higher cost in driver calls more is possible: ", out);
    put_policy(out, s);
    if (r->is_limited)
        say_fits(out, r, s);
    else
        fprintf(out, " has the least %s. ", memory_of(r));
    say_price(out, r, s);
    fputs("</p>\n", out);
}

/* -- tiles --------------------------------------------------------------- */

static void put_tiles(FILE *out, const struct review *r)
{
    const struct standing *s = r->choice, *b = r->baseline;
    char text[32];

    fputs("<div class=\"tiles\">\n", out);
    if (r->is_limited)
        fprintf(out,
                "<div class=\"tile\"><b>%zu of %zu</b><span>runs on limited "
                "devices survived; baseline %zu</span></div>\n",
                s->survived, s->limited, b->survived);
    if (is_comparable(r, s))
        fprintf(
            out,
            "<div class=\"tile\"><b>%.2fx</b><span>%s over the lower bound; "
            "baseline %.2fx</span></div>\n",
            s->memory, memory_of(r), b->memory);
    fprintf(out, "<div class=\"tile\"><b>%s</b><span>modelled driver calls",
            html_duration(s->seconds, text));
    fprintf(out, "; baseline %s</span></div>\n",
            html_duration(b->seconds, text));
    if (r->recorded > 0)
        fprintf(
            out,
            "<div class=\"tile\"><b>%+.2f %%</b><span>change in driver time, "
            "as a share of the recorded time</span></div>\n",
            100 * review_extra(r, s));
    fputs("</div>\n", out);
}

/* How the baseline was found, after its name. */
static const char *const baselines[] = {
    [BASELINE_NAMED] = "",
    [BASELINE_PLAIN] = ", PyTorch with its default settings",
    [BASELINE_EQUAL] = ", whose settings are PyTorch's defaults",
    [BASELINE_FIRST] =
        ": the results have no run of plain <code>torch</code>; to compare "
        "with PyTorch's default settings, add <code>-p torch</code> to the "
        "command that made them",
};

void review_verdict(struct review_page *p)
{
    const struct review *r = p->review;
    FILE *out = p->out;

    html_between(out, "<h1>",
                 r->look->title ? r->look->title
                                : "Which allocator policy fits?",
                 "</h1>\n<p class=\"soft\">");
    put_plural(out, r->ranking.count, "policy", "policies");
    fputs(" on ", out);
    put_plural(out, r->ranking.subject_count, "recorded trace",
               "recorded traces");
    fputs(", ", out);
    put_plural(out, r->runs.count, "run", "runs");
    fprintf(out,
            ", replayed by fragsim %s. The question: which policy or setting "
            "fits where others fail, what does it save, and what does it "
            "cost? The baseline is ",
            r->files->files[0].version);
    put_policy(out, r->baseline);
    fprintf(out, "%s.</p>\n", baselines[r->baseline_kind]);
    say_choice(out, r);
    say_left_out(out, r);
    if (!has_winner(r))
        return;
    put_tiles(out, r);
    say_setting(out, r);
    say_ceiling(out, r);
}

/* -- the table ----------------------------------------------------------- */

static const char *needs(const struct standing *s)
{
    char name[64];
    const struct frag_policy *p;

    snprintf(name, sizeof(name), "%.*s",
             (int)strcspn(s->first->id.policy, ":@"), s->first->id.policy);
    p = frag_policy_find(name);
    if (!p)
        return "a plugin";
    if (p->needs & FRAG_NEEDS_FUTURE)
        return "the future";
    if (p->needs & FRAG_NEEDS_MOVES)
        return "moving blocks";
    if (review_setting(s))
        return "PyTorch setting";
    return p->needs & FRAG_NEEDS_VMM ? "virtual memory" : "";
}

static void put_row(FILE *out, const struct review *r, const struct standing *s,
                    size_t rank)
{
    fprintf(out, "<tr%s><td data-v=\"%zu\">%zu</td><td class=\"l w\">",
            s == r->choice ? " class=\"choice\"" : "", rank, rank);
    put_policy(out, s);
    fputs("</td>", out);
    if (r->is_limited)
        fprintf(out, "<td data-v=\"%zu\">%zu of %zu</td>", s->survived,
                s->survived, s->limited);
    html_ratio(out, s->memory);
    html_ratio(out, r->ranking.has_needs ? need_over_bound(s->worst)
                                         : peak_over_bound(s->worst));
    html_between(out, "<td class=\"l\">", s->worst->id.trace.name, "</td>");
    if (r->ranking.has_needs)
        html_ratio(out, s->reserved);
    if (is_comparable(r, s))
        fprintf(out, "<td data-v=\"%.17g\">%.1f %%</td>", saving(r, s),
                100 * saving(r, s));
    else
        html_none(out);
    html_seconds(out, s->seconds);
    if (r->recorded > 0)
        fprintf(out, "<td data-v=\"%.17g\">%+.2f %%</td>", review_extra(r, s),
                100 * review_extra(r, s));
    if (s->moved)
        html_size(out, s->moved);
    else
        fputs("<td data-v=\"0\">\u2013</td>", out);
    fprintf(out, "<td class=\"l\">%s</td></tr>\n", needs(s));
}

/* The table of the candidates, or of the bounds. */
static void put_table(FILE *out, const struct review *r, const char *id,
                      bool is_offline)
{
    size_t rank = 0;

    fprintf(out,
            "<div class=\"wide\"><table class=\"sort\" id=\"%s\"><thead><tr>"
            "<th>#</th><th class=\"l\">policy</th>",
            id);
    if (r->is_limited)
        fputs("<th>survives</th>", out);
    fprintf(out,
            "<th>%s over<br>bound, mean</th><th>worst</th><th class=\"l\">on"
            "</th>%s<th>saves</th><th>driver<br>calls</th>",
            r->ranking.has_needs ? "need" : "peak",
            r->ranking.has_needs ? "<th>reserved<br>over bound</th>" : "");
    if (r->recorded > 0)
        fputs("<th>of recorded<br>time</th>", out);
    fputs("<th>moved</th><th class=\"l\">needs</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < r->ranking.count; i++)
        if (r->ranking.order[i]->is_offline == is_offline)
            put_row(out, r, r->ranking.order[i], ++rank);
    fputs("</tbody></table></div>\n", out);
}

static bool has_bounds(const struct review *r)
{
    for (size_t i = 0; i < r->ranking.count; i++)
        if (r->ranking.order[i]->is_offline)
            return true;
    return false;
}

void review_policies(struct review_page *p)
{
    const struct review *r = p->review;
    FILE *out = p->out;

    fprintf(
        out,
        "<h2>Policies, ranked</h2>\n<p>Ordered by the runs that they "
        "survive, then by memory, then by the time of their driver calls%s. "
        "Memory is %s. Click a heading to sort.</p>\n",
        r->ranking.cell_count[RANKED_COMPARED]
            ? ""
            : "; as nothing can be compared, each by its own runs",
        r->ranking.has_needs
            ? "the need: the least bound from which on nothing fails. "
              "Reserved is the peak on the largest device, where a policy "
              "may keep more than it needs"
            : "compared on the largest device");
    put_table(out, r, "policies", false);
    if (!has_bounds(r))
        return;
    fputs("<h3>Bounds</h3>\n<p>These policies know every request of the trace "
          "in advance. A running program cannot use them. They show what a "
          "plan of all addresses saves.</p>\n",
          out);
    put_table(out, r, "bounds", true);
}
