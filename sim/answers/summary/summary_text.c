/* summary_text.c - prints a summary in the layout of
 * torch.cuda.memory_summary(). */
#include "sim/answers/summary/summary_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "traces/printable.h"

enum { WIDTH = 75, CELL = 32, UNITS = 6 };

/* -- PyTorch's number formats --------------------------------------------- */

/* A number is divided by the base until the first number of its column in the
 * group of rows is below the limit, so all rows of a group have one unit. */
struct format {
    uint64_t limit, base;
    const char *units[UNITS]; /* ended by NULL unless all are used */
    int width;                /* of the number */
    const char *tail;         /* after the unit */
    const char *missing;      /* for an unknown number */
};

static const struct format size_format = {
    .limit = 768 * 1024,
    .base = 1024,
    .units = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"},
    .width = 6,
    .tail = "",
    .missing = "     -    ",
};

static const struct format count_format = {
    .limit = 750 * 1000,
    .base = 1000,
    .units = {" ", "K", "M"},
    .width = 7,
    .tail = " ",
    .missing = "      -   ",
};

static const char *cell(const struct format *f, uint64_t n, uint64_t first,
                        char text[CELL])
{
    size_t unit = 0;

    if (n == SUMMARY_UNKNOWN)
        return f->missing;
    while (unit + 1 < UNITS && f->units[unit + 1] && first >= f->limit) {
        unit++;
        n /= f->base;
        first /= f->base;
    }
    snprintf(text, CELL, "%*" PRIu64 " %s%s", f->width, n, f->units[unit],
             f->tail);
    return text;
}

/* A number without a unit. */
static const char *plain(uint64_t n, char text[CELL])
{
    if (n == SUMMARY_UNKNOWN)
        return "-";
    snprintf(text, CELL, "%" PRIu64, n);
    return text;
}

/* -- the frame ------------------------------------------------------------ */

static void rule(FILE *out, char c)
{
    char line[WIDTH + 1];

    memset(line, c, WIDTH);
    line[WIDTH] = '\0';
    fprintf(out, "|%s|\n", line);
}

static void centred(FILE *out, const char *text)
{
    const int length = (int)strlen(text);
    const int left = length < WIDTH ? (WIDTH - length) / 2 : 0;

    printable_line(out, "|%*s%-*s|", left, "", WIDTH - left, text);
}

/* -- PyTorch's counters --------------------------------------------------- */

static const struct row {
    const char *label;
    const struct format *format;
    enum frag_torch_stat stat;
} rows[] = {
    {"Allocated memory", &size_format, FRAG_TORCH_ALLOCATED_BYTES},
    {"Active memory", &size_format, FRAG_TORCH_ACTIVE_BYTES},
    {"Requested memory", &size_format, FRAG_TORCH_REQUESTED_BYTES},
    {"GPU reserved memory", &size_format, FRAG_TORCH_RESERVED_BYTES},
    {"Non-releasable memory", &size_format, FRAG_TORCH_INACTIVE_SPLIT_BYTES},
    {"Allocations", &count_format, FRAG_TORCH_ALLOCATION},
    {"Active allocs", &count_format, FRAG_TORCH_ACTIVE},
    {"GPU reserved segments", &count_format, FRAG_TORCH_SEGMENT},
    {"Non-releasable allocs", &count_format, FRAG_TORCH_INACTIVE_SPLIT},
};

static void put_row(FILE *out, const char *label, const struct format *f,
                    const struct frag_torch_count *n,
                    const struct frag_torch_count *first)
{
    char texts[4][CELL];

    fprintf(out, "| %-21s | %s | %s | %s | %s |\n", label,
            cell(f, n->current, first->current, texts[0]),
            cell(f, n->peak, first->peak, texts[1]),
            cell(f, n->allocated, first->allocated, texts[2]),
            cell(f, n->freed, first->freed, texts[3]));
}

static void put_group(FILE *out, const struct row *r,
                      const struct frag_torch_count *counts, bool with_pools)
{
    static const char *const pools[FRAG_TORCH_POOLS_COUNT] = {
        [FRAG_TORCH_LARGE] = "      from large pool",
        [FRAG_TORCH_SMALL] = "      from small pool",
    };

    rule(out, '-');
    put_row(out, r->label, r->format, counts, counts);
    for (int i = FRAG_TORCH_LARGE; with_pools && i < FRAG_TORCH_POOLS_COUNT;
         i++)
        put_row(out, pools[i], r->format, &counts[i], counts);
}

static void put_title(const struct summary *s, FILE *out)
{
    char title[128];

    if (s->is_pytorch) {
        fprintf(out,
                "|%18sPyTorch CUDA memory summary, device ID %-17" PRIu32
                " |\n",
                "", s->device);
        return;
    }
    snprintf(title, sizeof(title), "%.60s memory summary, device ID %" PRIu32,
             s->policy, s->device);
    centred(out, title);
}

void summary_print_counters(const struct summary *s, FILE *out)
{
    const struct frag_torch_counters *c = &s->counters;
    const struct frag_torch_count *oversize[] = {&c->oversize_allocations,
                                                 &c->oversize_segments};
    char ooms[CELL], retries[CELL];
    static const char *const oversize_labels[] = {"Oversize allocations",
                                                  "Oversize GPU segments"};

    rule(out, '=');
    put_title(s, out);
    rule(out, '-');
    fprintf(out, "|%12sCUDA OOMs: %-12s | %7scudaMalloc retries: %-8s  |\n", "",
            plain(c->num_ooms, ooms), "", plain(c->num_alloc_retries, retries));
    rule(out, '=');
    fputs(
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot "
        "Freed  |\n",
        out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        put_group(out, &rows[i], c->stat[rows[i].stat], s->has_pools);
    for (size_t i = 0; i < 2; i++) {
        rule(out, '-');
        put_row(out, oversize_labels[i], &count_format, oversize[i],
                oversize[i]);
    }
    rule(out, '=');
}

void summary_print_pools(const struct summary *s, FILE *out)
{
    char name[FRAG_POOL_NAME];

    if (!s->by_pool)
        return;
    centred(out, "GPU reserved memory by pool");
    rule(out, '-');
    for (uint32_t i = 0; i < s->trace_device->pool_count; i++) {
        const struct frag_torch_count *n = s->by_pool[i].of;

        put_row(out,
                frag_pool_name(s->trace, s->trace_device, (frag_pool)i, name),
                &size_format, n, n);
    }
    rule(out, '=');
}

/* -- fragmentation -------------------------------------------------------- */

static const char *value(const struct summary_fragmentation *f,
                         const struct frag_column *c, char text[CELL])
{
    const uint64_t n = frag_column_number(c, f);
    const double x = frag_column_real(c, f);
    const bool is_share = *c->units == '%';

    if (c->kind == FRAG_COLUMN_COUNT)
        return cell(&size_format, n, n, text);
    if (isnan(x))
        return "     -    ";
    snprintf(text, CELL, is_share ? "%8.1f %%" : "%9.3f ",
             is_share ? 100 * x : x);
    return text;
}

void summary_print_fragmentation(const struct summary *s, FILE *out)
{
    char text[CELL], title[128];

    if (s->is_snapshot)
        snprintf(title, sizeof(title),
                 "Fragmentation when the snapshot was taken");
    else
        snprintf(title, sizeof(title),
                 "Fragmentation after event %" PRIu64 " of %" PRIu64, s->event,
                 s->events);
    centred(out, title);
    for (const struct frag_column *c = summary_measures;
         c->kind != FRAG_COLUMN_END; c++) {
        if (!c->name) {
            rule(out, '-');
            centred(out, c->meaning);
            rule(out, '-');
            continue;
        }
        fprintf(out, "| %-21s | %s | %-36s |\n", c->meaning,
                value(&s->fragmentation, c, text), c->formula);
    }
    rule(out, '=');
    printable_line(out, "allocator: %s%s%s%s", s->policy,
                   s->is_recorded ? " as recorded" : "", *s->params ? ", " : "",
                   s->params);
    for (size_t i = 0; i < s->note_count; i++)
        printable_line(out, "note: %s", s->notes[i]);
}
