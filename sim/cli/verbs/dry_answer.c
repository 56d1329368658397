/* dry_answer.c - the answer of `fragsim dry` about one process. */
#include "sim/cli/verbs/dry_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/table.h"
#include "sim/experiments/capacity/spans.h"
#include "traces/grow.h"
#include "traces/printable.h"

/* The settings that the answer compares. */
static const struct {
    const char *name, *params;
} ways[] = {
    {"default", NULL},
    {"expandable_segments:True", "expandable_segments:True"},
};
enum { WAYS = sizeof(ways) / sizeof(*ways), LINE = 4096 };

/* ---- the notes ---- */

static enum frag_err add_note(struct dry_process *p, char *line,
                              struct frag_error *e)
{
    struct dry_note *n;
    int at = 0;

    line[strcspn(line, "\n")] = '\0';
    if (!GROW(p->notes, p->room, p->count + 1))
        return frag_no_memory(e, "the notes");
    n = &p->notes[p->count];
    if (sscanf(line, "%15[^\t]\t%llu\t%n", n->kind, &(unsigned long long){0},
               &at) != 2)
        return frag_fail(e, FRAG_CORRUPT,
                         "notes of process %s: expected kind, number and name, "
                         "found \"%s\"",
                         p->number, line);
    n->number = strtoull(line + strlen(n->kind) + 1, NULL, 10);
    n->name = strdup(at ? line + at : "");
    if (!n->name)
        return frag_no_memory(e, "the notes");
    p->count++;
    if (!strcmp(n->kind, "rank"))
        p->rank = (long)n->number;
    return FRAG_OK;
}

enum frag_err dry_notes_read(const char *path, struct dry_process *out,
                             struct frag_error *e)
{
    FILE *file = fopen(path, "r");
    enum frag_err err = FRAG_OK;
    char line[LINE];

    if (!file)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    while (err == FRAG_OK && fgets(line, sizeof(line), file))
        err = add_note(out, line, e);
    fclose(file);
    return err;
}

void dry_process_free(struct dry_process *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->notes[i].name);
    free(p->notes);
    free(p->trace);
}

/* The peak that PyTorch counted on the device; 0: none. */
static frag_size peak(const struct dry_process *p, const char *kind,
                      uint32_t device)
{
    for (size_t i = 0; i < p->count; i++)
        if (!strcmp(p->notes[i].kind, kind) &&
            strtoul(p->notes[i].name, NULL, 10) == device)
            return p->notes[i].number;
    return 0;
}

/* What the stand-ins could not answer, by kind. */
static void put_notes(const struct dry_process *p)
{
    static const struct {
        const char *kind, *heading;
    } lists[] = {
        {"read",
         "values that the program read from the device; nobody computed "
         "them, so they were 0, or as --assume says"},
        {"size", "workspaces whose size is not known; they were 0 bytes"},
        {"lacks", "functions that the stand-ins lack; they failed"},
    };

    for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++) {
        bool first = true;

        for (size_t i = 0; i < p->count; i++) {
            if (strcmp(p->notes[i].kind, lists[k].kind) != 0)
                continue;
            if (first)
                printf("%s:\n", lists[k].heading);
            first = false;
            printable_line(stdout, "  %8llu  %s",
                           (unsigned long long)p->notes[i].number,
                           p->notes[i].name);
        }
    }
}

/* ---- the need ---- */

/* What the trace needs in one way, and its run without a bound. */
struct needed {
    struct frag_capacity_span need, unlimited;
};

static enum frag_err find_need(const struct frag_device_trace *d, size_t way,
                               struct needed *out, struct frag_error *e)
{
    const struct frag_capacity_spec spec = {
        .trace = d,
        .policy = frag_policy_find("torch"),
        .params = ways[way].params,
        .kind = FRAG_BOUND_CAPACITY,
        .total = FRAG_H200_TOTAL,
    };

    FRAG_TRY(frag_capacity_at(&spec, FRAG_UNLIMITED, &out->unlimited, e));
    return frag_capacity_need(&spec, &out->unlimited, &out->need, e);
}

static void put_fit(struct table *t, const struct frag_gpu *g,
                    const struct frag_capacity_span *need)
{
    const bool fits =
        frag_capacity_survives(need) && need->from <= g->total - g->context;

    table_cell(t, !fits, "%s", fits ? "fits" : "does not fit");
}

static enum frag_err put_gpus(const struct needed needs[WAYS], bool color,
                              struct frag_error *e)
{
    struct table t = {.columns = 4 + WAYS, .right = "lrrrll"};
    enum frag_err err;

    table_cell(&t, false, "GPU");
    table_cell(&t, false, "memory");
    table_cell(&t, false, "context");
    table_cell(&t, false, "left");
    for (size_t w = 0; w < WAYS; w++)
        table_cell(&t, false, "%s", ways[w].name);
    for (const struct frag_gpu *g = frag_gpus; g->id; g++) {
        table_cell(&t, false, "%s", g->id);
        table_size(&t, g->total);
        table_size(&t, g->context);
        table_size(&t, g->total - g->context);
        for (size_t w = 0; w < WAYS; w++)
            put_fit(&t, g, &needs[w].need);
    }
    err = table_print(&t, stdout, color);
    table_free(&t);
    return err == FRAG_OK ? FRAG_OK : frag_no_memory(e, "the table");
}

static enum frag_err put_needs(const struct needed needs[WAYS], bool color,
                               struct frag_error *e)
{
    struct table t = {.columns = 4, .right = "lrrr"};
    enum frag_err err;

    table_cell(&t, false, "setting");
    table_cell(&t, false, "need");
    table_cell(&t, false, "peak reserved");
    table_cell(&t, false, "peak allocated");
    for (size_t w = 0; w < WAYS; w++) {
        table_cell(&t, false, "%s", ways[w].name);
        table_size(&t, needs[w].need.from);
        table_size(&t, needs[w].unlimited.run.peak_reserved);
        table_size(&t, needs[w].unlimited.run.peak_allocated);
    }
    err = table_print(&t, stdout, color);
    table_free(&t);
    return err == FRAG_OK ? FRAG_OK : frag_no_memory(e, "the table");
}

/* ---- the answer ---- */

static void put_head(const struct dry_process *p, const struct frag_gpu *gpu,
                     uint32_t device, bool is_kept)
{
    char allocated[FRAG_SIZE_TEXT], reserved[FRAG_SIZE_TEXT];

    printable_line(stdout, "%s%s%s on %s, device %u",
                   is_kept ? p->trace : "process ", is_kept ? "" : p->number,
                   is_kept ? "," : "", gpu->name, (unsigned)device);
    printf("peak allocated %s, peak reserved %s, as PyTorch counted them\n",
           frag_size_format(peak(p, "allocated", device), allocated),
           frag_size_format(peak(p, "reserved", device), reserved));
}

static enum frag_err answer_device(const struct dry_process *p,
                                   const struct frag_gpu *gpu,
                                   const struct frag_device_trace *d,
                                   const struct common *common, bool is_kept,
                                   struct frag_error *e)
{
    struct needed needs[WAYS];
    const bool color = cli_colors(common, stdout);

    put_head(p, gpu, d->device, is_kept);
    for (size_t w = 0; w < WAYS; w++)
        FRAG_TRY(find_need(d, w, &needs[w], e));
    FRAG_TRY(put_needs(needs, color, e));
    return put_gpus(needs, color, e);
}

enum frag_err dry_answer(const struct dry_process *p,
                         const struct frag_gpu *gpu,
                         const struct common *common, bool is_kept,
                         struct frag_error *e)
{
    const struct trace_reading reading = {READING_COMPLETED, .limit = 0};
    struct progress progress = progress_start(common);
    struct frag_trace *trace;
    enum frag_err err = input_open(p->trace, &reading, &progress, &trace, e);

    progress_clear(&progress);
    if (err != FRAG_OK)
        return err;
    if (!common->quiet)
        input_say_notes(p->trace, trace);
    for (uint32_t i = 0; err == FRAG_OK && i < trace->device_count; i++)
        err = answer_device(p, gpu, &trace->devices[i], common, is_kept, e);
    frag_trace_close(trace);
    if (err == FRAG_OK)
        put_notes(p);
    return err;
}
