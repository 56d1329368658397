/* review_trace.c - the part of the page for each trace: figures, runs and OOMs,
 * and the table of all traces. */
#include <inttypes.h>
#include <string.h>

#include "sim/cli/figures/figure.h"
#include "sim/cli/page/page.h"
#include "sim/cli/review/review_page.h"

enum { BARS = 14 }; /* policies in a breakdown: the first of the ranking */

/* Calls `use` with each run of a subject: policies in the order of the ranking,
 * the runs of a policy by bound, the largest first. */
static void for_runs(struct review_page *p, size_t subject,
                     void (*use)(struct review_page *p,
                                 const struct ranked_entry *e))
{
    const struct ranking *g = &p->review->ranking;

    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; k < g->run_count; k++)
            if (g->entries[k].subject == subject &&
                g->entries[k].policy == g->order[i]->row)
                use(p, &g->entries[k]);
}

static const struct frag_loaded_run *
roomiest(const struct review *r, const struct standing *s, size_t subject)
{
    return r->ranking.cells[s->row * r->ranking.subject_count + subject];
}

static void put_bound(FILE *out, const struct frag_loaded_run *r)
{
    if (r->id.bound.bytes == FRAG_UNLIMITED)
        fputs("<td data-v=\"\">unlimited</td>", out);
    else
        fprintf(out, "<td data-v=\"%" PRIu64 "\">%s</td>", r->id.bound.bytes,
                FRAG_SHOW_BOUND(r->id.bound));
}

/* -- the table of traces ------------------------------------------------- */

static void count_fits(FILE *out, const struct review *r,
                       const struct standing *s, size_t subject)
{
    size_t runs = 0, survived = 0;

    for (size_t k = 0; k < r->ranking.run_count; k++) {
        const struct ranked_entry *e = &r->ranking.entries[k];

        if (e->subject != subject || e->policy != s->row ||
            !ranking_is_limited(e))
            continue;
        runs++;
        survived += e->run->run.summary.num_ooms == 0;
    }
    fprintf(out, "<td data-v=\"%zu\">%zu of %zu</td>", survived, survived,
            runs);
}

static size_t count_impossible(const struct review *r, size_t subject)
{
    size_t count = 0;

    for (size_t k = 0; k < r->ranking.run_count; k++)
        count += r->ranking.entries[k].subject == subject &&
                 r->ranking.entries[k].state == RANKED_IMPOSSIBLE;
    return count;
}

static void put_peak(FILE *out, const struct frag_loaded_run *r)
{
    if (r)
        html_size(out, r->run.summary.peak_reserved);
    else
        html_none(out);
}

static void overview_row(struct review_page *p, size_t subject)
{
    const struct review *r = p->review;
    const struct ranked_subject *s = &r->ranking.subjects[subject];
    FILE *out = p->out;

    fputs("<tr><td class=\"l\">", out);
    review_trace_link(out, r, subject);
    fputs("</td>", out);
    html_count(out, s->first->run.summary.events);
    html_size(out, s->asked);
    put_peak(out, roomiest(r, r->baseline, subject));
    put_peak(out, roomiest(r, r->choice, subject));
    if (r->is_limited) {
        count_fits(out, r, r->baseline, subject);
        count_fits(out, r, r->choice, subject);
    }
    if (r->impossible)
        html_count(out, count_impossible(r, subject));
    fputs("</tr>\n", out);
}

static void overview(struct review_page *p)
{
    const struct review *r = p->review;
    FILE *out = p->out;

    fputs(
        "<h2 class=\"page\">Traces</h2>\n<p>Peak reserved on the largest "
        "device, and the number of runs on limited devices without an "
        "OOM.</p>\n"
        "<div class=\"wide\"><table class=\"sort\" id=\"traces\"><thead><tr>"
        "<th class=\"l\">trace</th><th>events</th><th>peak requested</th>"
        "<th>peak reserved,<br>baseline</th><th>peak reserved,<br>choice</th>",
        out);
    if (r->is_limited)
        fputs("<th>baseline<br>survives</th><th>choice<br>survives</th>", out);
    if (r->impossible)
        fputs("<th>impossible<br>runs</th>", out);
    fputs("</tr></thead><tbody>\n", out);
    for (size_t i = 0; i < r->ranking.subject_count; i++)
        overview_row(p, i);
    fputs("</tbody></table></div>\n", out);
}

/* -- runs and OOMs ------------------------------------------------------- */

static void put_need(FILE *out, frag_size need)
{
    if (need == FRAG_UNLIMITED)
        html_none(out);
    else
        html_size(out, need);
}

static void run_row(struct review_page *p, const struct ranked_entry *e)
{
    const struct frag_loaded_run *r = e->run;
    const struct frag_summary *m = &r->run.summary;
    FILE *out = p->out;

    fputs("<tr>", out);
    html_code(out, r->id.policy);
    put_bound(out, r);
    fprintf(out, "<td class=\"l\">%s</td>", frag_start_names[m->start]);
    html_size(out, m->peak_reserved);
    html_ratio(out, peak_over_bound(r));
    if (p->review->ranking.has_needs)
        put_need(out, m->need);
    html_count(out, m->num_ooms);
    html_seconds(out, m->modelled_device_seconds);
    html_size(out, m->bytes_moved);
    fputs("</tr>\n", out);
}

static void put_runs(struct review_page *p, size_t subject)
{
    fprintf(p->out,
            "<details class=\"screen\"><summary>All runs</summary><div "
            "class=\"wide\"><table class=\"sort runs\"><thead><tr><th "
            "class=\"l\">policy</th><th>bound</th><th "
            "class=\"l\">start</th><th>peak reserved</th><th>over "
            "bound</th>%s<th>OOMs</th><th>driver "
            "calls</th><th>moved</th></tr></thead><tbody>\n",
            p->review->ranking.has_needs ? "<th>need</th>" : "");
    for_runs(p, subject, run_row);
    fputs("</tbody></table></div></details>\n", p->out);
}

/* Whether a run is of the baseline or the choice; only these are printed on
 * paper. */
static bool is_compared(const struct review *r,
                        const struct frag_loaded_run *run)
{
    return !strcmp(run->id.policy, r->baseline->first->id.policy) ||
           !strcmp(run->id.policy, r->choice->first->id.policy);
}

/* Whether another policy could have served the run. */
static void put_remedy(FILE *out, const struct ranking *g,
                       const struct ranked_entry *e)
{
    if (e->state == RANKED_IMPOSSIBLE)
        fprintf(out,
                "<td class=\"l bad\">none: the job asks for %s, none of these "
                "policies can help</td>",
                FRAG_SHOW_SIZE(g->subjects[e->subject].bound));
    else
        fputs("<td class=\"l\">another policy may fit</td>", out);
}

static void oom_row(struct review_page *p, const struct ranked_entry *e)
{
    const struct frag_loaded_run *r = e->run;
    const struct frag_oom *o = r->run.ooms;
    FILE *out = p->out;

    if (!r->run.oom_count)
        return;
    fprintf(out, "<tr%s>",
            is_compared(p->review, r) ? "" : " class=\"screen\"");
    html_code(out, r->id.policy);
    put_bound(out, r);
    html_count(out, r->run.summary.num_ooms);
    html_count(out, o->event);
    fprintf(out, "<td data-v=\"%.17g\">%.0f %%</td>",
            (double)o->event / (double)r->id.trace.events,
            100.0 * (double)o->event / (double)r->id.trace.events);
    html_size(out, o->bytes);
    html_size(out, o->reserved);
    html_size(out, o->allocated);
    html_size(out, o->largest_free);
    put_remedy(out, &p->review->ranking, e);
    fputs("</tr>\n", out);
}

static void put_ooms_of(struct review_page *p, size_t subject)
{
    const struct ranking *g = &p->review->ranking;
    bool any = false;

    for (size_t k = 0; k < g->run_count; k++)
        any = any || (g->entries[k].subject == subject &&
                      g->entries[k].run->run.oom_count);
    if (!any)
        return;
    fputs("<details><summary>First out-of-memory of each run</summary>"
          "<div class=\"wide\"><table class=\"sort ooms\"><thead><tr>"
          "<th class=\"l\">policy</th><th>bound</th><th>OOMs</th>"
          "<th>first at event</th><th>of the run</th><th>request</th>"
          "<th>reserved</th><th>allocated</th><th>largest free</th>"
          "<th class=\"l\">remedy</th></tr>"
          "</thead><tbody>\n",
          p->out);
    for_runs(p, subject, oom_row);
    fputs("</tbody></table></div></details>\n", p->out);
}

/* -- figures ------------------------------------------------------------- */

/* The run of s on the subject under this bound; NULL if there is none. */
static const struct frag_loaded_run *run_on(const struct ranking *g,
                                            const struct standing *s,
                                            size_t subject,
                                            struct frag_bound bound)
{
    for (size_t k = 0; k < g->run_count; k++)
        if (g->entries[k].subject == subject &&
            g->entries[k].policy == s->row &&
            !frag_bound_order(g->entries[k].run->id.bound, bound))
            return g->entries[k].run;
    return NULL;
}

/* The largest bound under which the choice fits and the baseline does not; if
 * there is none, the largest bound of the baseline. */
static struct frag_bound telling_bound(const struct review *r, size_t subject)
{
    const struct ranking *g = &r->ranking;
    const struct frag_loaded_run *most = roomiest(r, r->baseline, subject);

    for (size_t k = 0; k < g->run_count; k++) {
        const struct ranked_entry *e = &g->entries[k];
        const struct frag_loaded_run *rival;

        if (e->subject != subject || e->policy != r->baseline->row ||
            !e->run->run.summary.num_ooms)
            continue;
        rival = run_on(g, r->choice, subject, e->run->id.bound);
        if (rival && !rival->run.summary.num_ooms)
            return e->run->id.bound;
    }
    return most ? most->id.bound : FRAG_NO_BOUND;
}

static enum frag_err add_run(struct selection *s,
                             const struct frag_loaded_run *r)
{
    return r ? selection_add(s, r) : FRAG_OK;
}

static enum frag_err timelines(struct review_page *p, size_t subject,
                               struct frag_error *e)
{
    const struct review *r = p->review;
    const struct standing *rival =
        r->choice != r->baseline ? r->choice : r->ceiling;
    const struct frag_bound bound = telling_bound(r, subject);
    struct selection s = {0};
    enum frag_err err =
        add_run(&s, run_on(&r->ranking, r->baseline, subject, bound));

    if (err == FRAG_OK && rival && rival != r->baseline)
        err = add_run(&s, run_on(&r->ranking, rival, subject, bound));
    if (err == FRAG_OK && s.count)
        err = review_figure(p, &figure_timeline, &s, "Memory over events", e);
    selection_free(&s);
    return err;
}

static enum frag_err bars(struct review_page *p, size_t subject,
                          struct frag_error *e)
{
    const struct review *r = p->review;
    struct selection s = {0};
    enum frag_err err = FRAG_OK;

    for (size_t i = 0; err == FRAG_OK && i < r->ranking.count; i++)
        if (s.count < BARS || r->ranking.order[i] == r->baseline)
            err = add_run(&s, roomiest(r, r->ranking.order[i], subject));
    if (err == FRAG_OK)
        err = review_figure(p, &figure_breakdown, &s, "Parts of the peak", e);
    selection_free(&s);
    return err;
}

static enum frag_err part(struct review_page *p, size_t subject,
                          struct frag_error *e)
{
    const struct ranked_subject *s = &p->review->ranking.subjects[subject];
    const struct frag_summary *m = &s->first->run.summary;

    fprintf(p->out, "<h2 class=\"page\" id=\"trace-%zu\">", subject);
    review_trace_name(p->out, s->first);
    fprintf(p->out,
            "</h2>\n<p class=\"soft\">%" PRIu64 " events, peak requested %s, "
            "SHA-256 <code>%.64s</code></p>\n",
            m->events, FRAG_SHOW_SIZE(s->asked), s->first->id.trace.sha256);
    review_trace_notes(p, subject);
    FRAG_TRY(timelines(p, subject, e));
    FRAG_TRY(bars(p, subject, e));
    put_ooms_of(p, subject);
    put_runs(p, subject);
    return FRAG_OK;
}

enum frag_err review_traces(struct review_page *p, struct frag_error *e)
{
    overview(p);
    for (size_t i = 0; i < p->review->ranking.subject_count; i++)
        FRAG_TRY(part(p, i, e));
    return FRAG_OK;
}
