#include "sim/cli/review/review.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/figures/figure.h"
#include "sim/cli/review/html.h"

/* -- what is found ------------------------------------------------------- */

/* Seconds from the first event of a run to its last; 0 if it has no times. */
static double duration(const struct frag_loaded_run *r)
{
    const struct frag_run *m = &r->run;

    if (!m->point_count)
        return 0;
    return (double)(m->points[m->point_count - 1].time - m->points[0].time) /
           1e9;
}

static double recorded(const struct ranking *r)
{
    double sum = 0;

    for (size_t i = 0; i < r->subject_count; i++)
        sum += duration(r->subjects[i].first);
    return sum;
}

static size_t failures(const struct standing *s)
{
    return s->limited - s->survived;
}

static int by_worth(const void *left, const void *right)
{
    const struct standing *a = left, *b = right;

    if (a->is_whole == b->is_whole && failures(a) != failures(b))
        return failures(a) < failures(b) ? -1 : 1;
    return standing_compare(a, b);
}

const char *review_setting(const struct standing *s)
{
    const char *policy = s->first->policy;

    if (!strcmp(policy, "cuda_async"))
        return "backend:cudaMallocAsync";
    if (!strncmp(policy, "torch:", 6))
        return policy + 6;
    return NULL;
}

double review_extra(const struct review *r, const struct standing *s)
{
    return r->recorded > 0 ? (s->seconds - r->baseline->seconds) / r->recorded
                           : 0;
}

static bool is_affordable(const struct review *r, const struct standing *s)
{
    return s->is_whole && !s->is_offline && review_extra(r, s) <= r->slowdown;
}

static enum frag_err find_baseline(struct review *r, struct frag_error *e)
{
    const char *name = r->baseline_name ? r->baseline_name : "torch";
    const char *first = r->ranking.rows[0].first->policy;

    for (size_t i = 0; i < r->ranking.count; i++)
        if (!strcmp(r->order[i].first->policy, name))
            r->baseline = &r->order[i];
    if (!r->baseline && r->baseline_name)
        return frag_fail(e, FRAG_INVALID,
                         "--baseline: there is no run of %s; there is one of "
                         "%s",
                         name, first);
    for (size_t i = 0; !r->baseline; i++)
        if (!strcmp(r->order[i].first->policy, first))
            r->baseline = &r->order[i];
    return FRAG_OK;
}

/* The first of each kind, in the order of worth. */
static void choose(struct review *r)
{
    for (size_t i = 0; i < r->ranking.count; i++) {
        const struct standing *s = &r->order[i];

        r->is_limited = r->is_limited || s->limited;
        if (!r->ceiling && s->is_whole && !s->is_offline)
            r->ceiling = s;
        if (!r->choice && is_affordable(r, s))
            r->choice = s;
        if (!r->setting && is_affordable(r, s) &&
            (review_setting(s) || s == r->baseline))
            r->setting = s;
    }
    if (!r->choice)
        r->choice = r->baseline;
    if (r->setting == r->baseline)
        r->setting = NULL;
}

enum frag_err review_make(struct review *r, struct frag_error *e)
{
    enum frag_err err =
        selection_choose(r->files, &(const struct texts){0}, &r->runs, e);

    if (err == FRAG_OK)
        err = ranking_make(&r->runs, &r->ranking);
    if (err == FRAG_OK) {
        r->order = calloc(r->ranking.count, sizeof(*r->order));
        err = r->order ? FRAG_OK : FRAG_NOMEM;
    }
    if (err == FRAG_OK) {
        memcpy(r->order, r->ranking.rows, r->ranking.count * sizeof(*r->order));
        qsort(r->order, r->ranking.count, sizeof(*r->order), by_worth);
        r->recorded = recorded(&r->ranking);
        err = find_baseline(r, e);
    }
    if (err == FRAG_OK)
        choose(r);
    else
        review_free(r);
    return err;
}

void review_free(struct review *r)
{
    selection_free(&r->runs);
    ranking_free(&r->ranking);
    free(r->order);
    r->order = NULL;
}

/* -- the page ------------------------------------------------------------ */

enum frag_err page_figure(struct page *p, const struct figure *f,
                          const struct selection *s, const char *caption,
                          struct frag_error *e)
{
    char path[128];
    enum frag_err err;

    p->figures++;
    if (f->lacks && f->lacks(s))
        return FRAG_OK;
    if (progress_tick(p->review->progress, p->figures, p->figures_all))
        return FRAG_CANCELLED;
    snprintf(path, sizeof(path), "%s/figure.svg", p->folder);
    err = figure_draw(f, s, path, NULL, e);
    if (err == FRAG_OK) {
        fputs("<figure>\n", p->out);
        err = html_svg(p->out, path, p->figures, caption, e);
        fputs("</figure>\n", p->out);
    }
    unlink(path);
    return err;
}

/* A figure of all runs under a head and a sentence. */
static const struct part {
    const struct figure *figure;
    const char *head, *text;
    bool needs_traces; /* more than one */
} parts[] = {
    {&figure_frontier, "Who survives which capacity",
     "Blue: every request was met. Orange: the run met an out-of-memory; the "
     "darker, the earlier or the oftener.",
     false},
    {&figure_pareto, "Memory and its price",
     "What a policy holds against what its calls to the driver would take, by "
     "costs measured on the device that the results name. A policy that knows "
     "the future is a bound and no choice.",
     false},
    {&figure_heatmap, "Policy by trace",
     "Each number is peak reserved over the least that any policy needs for "
     "these requests: 1.00 is perfect, 1.50 holds half as much again.",
     true},
};

static enum frag_err put_parts(struct page *p, struct frag_error *e)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const struct part *part = &parts[i];
        const struct selection *s = &p->review->runs;

        if ((part->figure->lacks && part->figure->lacks(s)) ||
            (part->needs_traces && p->review->ranking.subject_count == 1))
            continue;
        fprintf(p->out, "<h2 class=\"page\">%s</h2>\n<p>%s</p>\n", part->head,
                part->text);
        FRAG_TRY(page_figure(p, part->figure, s, part->head, e));
    }
    return FRAG_OK;
}

static enum frag_err put_page(struct page *p, struct frag_error *e)
{
    html_open(p->out, "Policy review");
    page_verdict(p);
    page_policies(p);
    FRAG_TRY(put_parts(p, e));
    FRAG_TRY(page_traces(p, e));
    page_provenance(p);
    html_close(p->out);
    return FRAG_OK;
}

enum frag_err review_write(const struct review *r, FILE *out,
                           struct frag_error *e)
{
    const char *place = getenv("TMPDIR");
    struct page p = {.review = r, .out = out};
    enum frag_err err;

    p.figures_all = 3 + 2 * (unsigned)r->ranking.subject_count;
    if (snprintf(p.folder, sizeof(p.folder), "%s/fragsim-XXXXXX",
                 place && *place ? place : "/tmp") >= (int)sizeof(p.folder) ||
        !mkdtemp(p.folder))
        return frag_fail(e, FRAG_IO, "TMPDIR: cannot make a folder there");
    err = put_page(&p, e);
    rmdir(p.folder);
    return err;
}
