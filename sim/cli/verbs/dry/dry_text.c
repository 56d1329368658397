/* dry_text.c - the answer for people: one line to act on, where memory peaks,
 * what each setting needs, the GPUs, and what the answer rests on. */
#include <inttypes.h>
#include <string.h>

#include "sim/cli/output/table.h"
#include "sim/cli/verbs/dry/dry_answer.h"
#include "traces/printable.h"

/* ---- the first line ---- */

/* A need, or the interval of those of all runs. */
static void put_interval(const struct dry_answer *a, const struct dry_device *d,
                         size_t way, FILE *out)
{
    const frag_size least = dry_least(a, d, way), most = dry_need(a, d, way);
    char text[2][FRAG_SIZE_TEXT];

    if (least != most)
        fprintf(out, "%s to ", frag_size_format(least, text[0]));
    fputs(frag_size_format(most, text[1]), out);
}

static void put_need(const struct dry_answer *a, const struct dry_device *d,
                     FILE *out)
{
    if (dry_need(a, d, 0) == FRAG_UNLIMITED) {
        fputs("more than a GPU of any size supplies", out);
        return;
    }
    fputs(dry_is_whole(a) ? "" : "at least ", out);
    put_interval(a, d, 0, out);
    fprintf(out, " of the GPU; with %s ", a->ways[1].name);
    put_interval(a, d, 1, out);
}

/* Whether it fits, with what, or on which other GPU. */
static void put_verdict(const struct dry_answer *a, FILE *out)
{
    const struct frag_gpu *smallest = dry_smallest(a, 0);
    size_t way = 0;

    if (dry_any_lacks_memory(a)) {
        fputs(": no verdict: the traces lack a part of the memory\n", out);
        return;
    }
    while (way < DRY_WAYS && !dry_all_fit(a, a->gpu, way))
        way++;
    if (way == 0)
        fprintf(out, ": %s on the %s", dry_is_whole(a) ? "fits" : "fits so far",
                a->gpu->name);
    else if (way < DRY_WAYS)
        fprintf(out, ": fits on the %s only with PYTORCH_ALLOC_CONF=%s",
                a->gpu->name, a->ways[way].name);
    else
        fprintf(out, ": %s fit on the %s",
                dry_may_fit(a, a->gpu, 0) ? "may not" : "does not",
                a->gpu->name);
    if (way == 0 && dry_has(a, "room"))
        fprintf(out, ", of which %s stay free",
                FRAG_SHOW_SIZE(dry_left(a, dry_largest(a))));
    if (way == 0 && smallest && strcmp(smallest->id, a->gpu->id) != 0)
        fprintf(out, "; the smallest GPU of the table on which it fits: %s",
                smallest->id);
    else if (way && smallest)
        fprintf(out, "; it fits on %s", smallest->id);
    else if (way)
        fputs("; it fits on no GPU of the table", out);
    fputc('\n', out);
}

static void put_first(const struct dry_answer *a, FILE *out)
{
    const struct dry_device *d = dry_largest(a);

    if (a->count > 1)
        fprintf(out, "of %zu devices, GPU %" PRIu64 " ", a->count, d->gpu);
    fputs(dry_has(a, "room") ? "takes " : "needs ", out);
    fputs(a->count > 1 ? "most, " : "", out);
    put_need(a, d, out);
    put_verdict(a, out);
}

/* ---- places ---- */

static void put_place(const struct dry_place *p, FILE *out)
{
    if (p->steps && !p->step)
        fputs("before the first complete step, ", out);
    else if (p->steps && p->step > p->steps)
        fprintf(out, "after step %" PRIu64 ", the last, ", p->steps);
    else if (p->steps)
        fprintf(out, "in step %" PRIu64 " of %" PRIu64 "%s, ", p->step,
                p->steps,
                !p->is_open    ? ""
                : p->step == 1 ? " or before it"
                               : " or after it");
    fputs(p->is_after && *p->site
              ? "in a thread of PyTorch (the backward pass) after "
              : "at ",
          out);
    if (!*p->site)
        fprintf(out, "event %" PRIu64, p->event);
    printable_put(out, p->site);
    fprintf(out, ", which requests %s", FRAG_SHOW_SIZE(p->bytes));
}

static void put_places(const struct dry_answer *a, const struct dry_device *d,
                       FILE *out)
{
    fprintf(out, "most is live, %s, ", FRAG_SHOW_SIZE(d->peak.live));
    put_place(&d->peak, out);
    fputc('\n', out);
    if (d->death.event == FRAG_NEVER)
        return;
    fprintf(out, "on the %s it runs out of memory ", a->gpu->name);
    put_place(&d->death, out);
    fputc('\n', out);
}

/* ---- tables ---- */

static enum frag_err put_needs(const struct dry_answer *a,
                               const struct dry_device *d, FILE *out)
{
    struct table t =
        table_of("lorrr", "setting|at least|need|peak reserved|peak allocated");

    for (size_t w = 0; w < DRY_WAYS; w++) {
        const struct frag_summary *run = &d->ways[w].unlimited.run;

        table_cell(&t, false, "%s", a->ways[w].name);
        if (d->need[w].least == d->need[w].most)
            table_cell(&t, false, "%s", "");
        else
            table_size(&t, d->need[w].least);
        table_size_or(&t, d->need[w].most, "none is enough");
        table_size(&t, run->peak_reserved);
        table_size(&t, run->peak_allocated);
    }
    return table_print(&t, out, a->color);
}

static void put_gpu(struct table *t, const struct dry_answer *a,
                    const struct dry_device *d, const struct frag_gpu *g)
{
    const frag_size outside = dry_outside(a, d, g);

    table_cell(t, false, "%s", g->id);
    table_size(t, g->total);
    table_size(t, outside);
    table_size(t, g->total > outside ? g->total - outside : 0);
    for (size_t w = 0; w < DRY_WAYS; w++) {
        const bool fits = dry_all_fit(a, g, w);

        table_cell(t, !fits, "%s",
                   dry_any_lacks_memory(a) ? "not known"
                   : fits                  ? "fits"
                   : dry_may_fit(a, g, w)  ? "may not fit"
                                           : "does not fit");
    }
}

static enum frag_err put_gpus(const struct dry_answer *a,
                              const struct dry_device *d, FILE *out)
{
    struct table t = table_of("lrrrll", "GPU|memory|others|left");

    for (size_t w = 0; w < DRY_WAYS; w++)
        table_cell(&t, false, "%s", a->ways[w].name);
    for (const struct frag_gpu *g = frag_gpus; g->id; g++)
        if (dry_tells(a, g))
            put_gpu(&t, a, d, g);
    return table_print(&t, out, a->color);
}

/* What the memory of the process is for, when most is requested: the sum is
 * what it holds of the device. */
static enum frag_err put_classes(const struct dry_answer *a,
                                 const struct dry_device *d, FILE *out)
{
    struct table t = table_of("lrr", "memory|at the peak|most");
    frag_size live = 0, unused;

    for (int k = 0; k < CLASS_COUNT; k++) {
        live += d->classes[k].at_peak;
        if (!d->classes[k].most)
            continue;
        table_cell(&t, false, "%s", memory_class_names[k]);
        table_size(&t, d->classes[k].at_peak);
        table_size(&t, d->classes[k].most);
    }
    unused = d->counted_reserved > live ? d->counted_reserved - live : 0;
    table_cell(&t, false, "reserved beside it");
    table_size(&t, unused);
    table_cell(&t, false, "%s", "");
    table_cell(&t, false, "context and libraries");
    table_size(&t, d->outside);
    table_cell(&t, false, "%s", "");
    table_cell(&t, false, "the process");
    table_size(&t, live + unused + d->outside);
    table_cell(&t, false, "%s", "");
    return table_print(&t, out, a->color);
}

/* ---- a device ---- */

static void put_head(const struct dry_answer *a, const struct dry_device *d,
                     FILE *out)
{
    const struct dry_process *p = d->process;

    fputc('\n', out);
    if (a->is_kept)
        printable_put(out, p->trace);
    else
        fprintf(out, "process %s", p->number);
    if (p->rank >= 0)
        fprintf(out, ", rank %ld", p->rank);
    fprintf(out,
            ", device %u: peak allocated %s, peak reserved %s, as PyTorch "
            "counted them\n",
            (unsigned)d->device, FRAG_SHOW_SIZE(d->counted_allocated),
            FRAG_SHOW_SIZE(d->counted_reserved));
    if (dry_pinned(p))
        fprintf(out, "the process pins %s of host memory at most\n",
                FRAG_SHOW_SIZE(dry_pinned(p)));
}

static enum frag_err put_device(const struct dry_answer *a,
                                const struct dry_device *d, FILE *out)
{
    put_head(a, d, out);
    put_places(a, d, out);
    FRAG_TRY(put_classes(a, d, out));
    return put_needs(a, d, out);
}

/* ---- the notes of the stand-ins ---- */

static void put_list(const struct dry_process *p, bool is_alone,
                     const char *kind, const char *heading, FILE *out)
{
    bool first = true;

    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->notes[i].kind, kind) != 0)
            continue;
        if (first && !is_alone)
            fprintf(out, "process %s: ", p->number);
        if (first)
            fprintf(out, "%s:\n", heading);
        first = false;
        printable_line(out, "  %8llu  %s",
                       (unsigned long long)p->notes[i].number,
                       p->notes[i].name);
    }
}

static void put_lists(const struct dry_process *p, bool is_alone, FILE *out)
{
#define X(word, heading) put_list(p, is_alone, word, heading, out);
    DRY_LISTS(X)
#undef X
}

static void put_limit(void *user, const char *text)
{
    printable_line(user, "  %s", text);
}

enum frag_err dry_put(void *user, FILE *out, struct frag_json *j,
                      struct frag_error *e)
{
    const struct dry_answer *a = user;

    (void)e;
    if (j) {
        dry_put_json(a, j);
        return FRAG_OK;
    }
    put_first(a, out);
    if (a->server.server) {
        fputs("\nas the server said: ", out);
        startup_put(&a->server, out);
    }
    for (size_t i = 0; i < a->count; i++)
        FRAG_TRY(put_device(a, &a->devices[i], out));
    if (a->count > 1)
        fputs("\nthe GPUs, and what others take where most is needed:\n", out);
    FRAG_TRY(put_gpus(a, dry_largest(a), out));
    for (size_t i = 0; i < a->process_count; i++)
        put_lists(&a->processes[i], a->process_count == 1, out);
    fputs("what this rests on, and where it stops:\n", out);
    dry_limits(a, put_limit, out);
    return FRAG_OK;
}
