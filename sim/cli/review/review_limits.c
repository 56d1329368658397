/* review_limits.c - the parts of the page that limit what its numbers mean: the
 * notes, and the capacities that no policy can survive. */
#include <inttypes.h>
#include <string.h>

#include "sim/cli/page/page.h"
#include "sim/cli/review/review_page.h"
#include "sim/experiments/cell_notes.h"

enum { SHOWN = 16 }; /* a box with more lines is closed until a click */

static const struct frag_loaded_run *first_of(const struct review *r, size_t i)
{
    return r->ranking.subjects[i].first;
}

/* Begins a box with a summary and a list. */
static void open_box(FILE *out, const char *id, uint64_t lines)
{
    fprintf(out, "<details class=\"note\" id=\"%s\"%s><summary>", id,
            lines <= SHOWN ? " open" : "");
}

/* -- notes --------------------------------------------------------------- */

/* Whether subject i is the first of its trace; all devices of a trace have the
 * same notes. */
static bool is_new_trace(const struct review *r, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (is_same_trace(first_of(r, k), first_of(r, i)))
            return false;
    return true;
}

/* The note on the first run of a policy; NULL: none. */
static const char *note_on(const struct standing *s)
{
    const char *settings = strchr(s->first->id.policy, ':');

    return settings && !strncmp(s->first->id.policy, "torch", strlen("torch"))
               ? cell_collects_nothing(settings + 1, s->first->id.bound)
               : NULL;
}

static uint64_t count_notes(const struct review *r)
{
    uint64_t count = 0;

    for (size_t i = 0; i < r->ranking.subject_count; i++)
        count += is_new_trace(r, i) ? first_of(r, i)->id.trace.note_count : 0;
    for (size_t i = 0; i < r->ranking.count; i++)
        count += note_on(&r->ranking.rows[i]) != NULL;
    return count;
}

static void put_linked_note(FILE *out, const struct review *r, size_t subject,
                            const char *note)
{
    fputs("<li>", out);
    review_trace_link(out, r, subject);
    html_between(out, ": ", note, "</li>\n");
}

void review_notes(struct review_page *p)
{
    const struct review *r = p->review;
    const uint64_t all = count_notes(r);

    if (!all)
        return;
    open_box(p->out, "notes", all);
    fprintf(p->out,
            "%" PRIu64
            " note%s on the traces and policies: what the numbers of this page "
            "do not show</summary>\n<ul>\n",
            all, all == 1 ? "" : "s");
    for (size_t i = 0; i < r->ranking.subject_count; i++) {
        const struct frag_loaded_run *t = first_of(r, i);

        for (uint64_t k = 0; is_new_trace(r, i) && k < t->id.trace.note_count;
             k++)
            put_linked_note(p->out, r, i, t->id.trace.notes[k]);
    }
    for (size_t i = 0; i < r->ranking.count; i++)
        if (note_on(&r->ranking.rows[i])) {
            fputs("<li>", p->out);
            html_text(p->out, r->ranking.rows[i].first->id.policy);
            fprintf(p->out, ": %s</li>\n", note_on(&r->ranking.rows[i]));
        }
    fputs("</ul></details>\n", p->out);
}

void review_trace_notes(struct review_page *p, size_t subject)
{
    const struct frag_loaded_run *t = first_of(p->review, subject);

    if (!t->id.trace.note_count)
        return;
    fputs("<div class=\"note\"><b>Notes on this trace</b>\n", p->out);
    html_list(p->out, (const char *const *)t->id.trace.notes,
              t->id.trace.note_count);
    fputs("</div>\n", p->out);
}

/* -- impossible bounds --------------------------------------------------- */

/* Whether entry k is the first impossible run of its subject under its bound.
 */
static bool is_new_limit(const struct ranking *g, size_t k)
{
    if (g->entries[k].state != RANKED_IMPOSSIBLE)
        return false;
    for (size_t i = 0; i < k; i++)
        if (g->entries[i].subject == g->entries[k].subject &&
            !frag_bound_order(g->entries[i].run->id.bound,
                              g->entries[k].run->id.bound))
            return false;
    return true;
}

static void put_limit(FILE *out, const struct review *r,
                      const struct ranked_entry *e)
{
    fputs("<li>", out);
    review_trace_link(out, r, e->subject);
    fprintf(out, " at %s: the job asks for %s</li>\n",
            FRAG_SHOW_BOUND(e->run->id.bound),
            FRAG_SHOW_SIZE(r->ranking.subjects[e->subject].bound));
}

static uint64_t count_limits(const struct ranking *g)
{
    uint64_t count = 0;

    for (size_t k = 0; k < g->run_count; k++)
        count += is_new_limit(g, k);
    return count;
}

void review_impossible(struct review_page *p)
{
    const struct review *r = p->review;
    const struct ranking *g = &r->ranking;

    if (!r->impossible)
        return;
    open_box(p->out, "impossible", count_limits(g));
    fprintf(
        p->out,
        "%zu of %zu runs are under a bound that no policy with a quantum of "
        "%" PRIu64 " bytes or more can survive, because the job itself "
        "asks for more. They are not counted as survived or failed."
        "</summary>\n<ul>\n",
        r->impossible, r->runs.count, g->subjects->first->run.summary.quantum);
    for (size_t k = 0; k < g->run_count; k++)
        if (is_new_limit(g, k))
            put_limit(p->out, r, &g->entries[k]);
    fputs("</ul></details>\n", p->out);
}
