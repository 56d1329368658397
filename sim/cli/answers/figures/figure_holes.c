/* figure_holes.c - the picture of the command explain: all segments at the
 * failure, packed into rows to one scale, with the request beside them.
 *
 * The segments of one stream, pool and class of sizes are a space; each space
 * begins a row. A segment that is longer than a row goes on in the next ones. A
 * place on the rows is one number: the row times WIDE, plus the pixels from the
 * left. */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/figures/cells.h"
#include "sim/cli/gnuplot/gnuplot.h"

enum {
    WIDE = 860,     /* pixels of a row */
    GAP = 5,        /* between segments */
    OUTLINED = 6,   /* narrower segments have neither outline nor gap */
    MOST_ROWS = 24, /* of segments */
    SPACES = 12,    /* with rows of their own; the others share rows */
};

/* The state that a pixel shows; the first one wins a tie. */
enum kind { LIVE, PENDING, USABLE, UNUSABLE, KINDS };

struct segment {
    uint64_t from, to; /* its blocks */
    frag_size size;
    uint64_t space; /* index in spaces of the explanation; SPACES: the others */
    double at;      /* place */
};

struct pixel {
    float bytes[KINDS];
};

struct packed {
    const struct explain *x;
    const char *name;
    struct segment *segments; /* by space, the largest first */
    uint64_t count;
    frag_size row; /* bytes of a row */
    uint64_t rows;
    double *filled;       /* [count + 1] pixels of each row, while packing */
    struct pixel *pixels; /* [rows][WIDE] */
};

/* ---- the segments ---- */

static uint64_t space_of(const struct explain *x, const struct explain_block *b)
{
    for (uint64_t i = 0; i < x->space_count && i < SPACES; i++)
        if (x->spaces[i].pool == b->pool && x->spaces[i].stream == b->stream &&
            x->spaces[i].is_small == b->is_small)
            return i;
    return SPACES;
}

static int by_space(const void *left, const void *right)
{
    const struct segment *a = left, *b = right;

    if (a->space != b->space)
        return a->space < b->space ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->from < b->from ? -1 : 1;
}

static void list_segments(struct packed *p)
{
    const struct explain_block *b = p->x->blocks;

    for (uint64_t i = 0, to; i < p->x->block_count; i = to) {
        struct segment *s = &p->segments[p->count++];

        *s = (struct segment){.from = i, .space = space_of(p->x, &b[i])};
        for (to = i; to < p->x->block_count && b[to].segment == b[i].segment;)
            s->size += b[to++].size;
        s->to = to;
    }
    if (p->count)
        qsort(p->segments, p->count, sizeof(*p->segments), by_space);
}

/* ---- packing ---- */

static double pixels(const struct packed *p, frag_size bytes)
{
    return (double)bytes * WIDE / (double)p->row;
}

/* The first row from `row` on that has room; p->rows if there is none. */
static uint64_t row_with_room(const struct packed *p, uint64_t row, double wide)
{
    while (row < p->rows && p->filled[row] + wide > WIDE)
        row++;
    return row;
}

/* Puts the segment on a row of its space, whose first row is `first`. */
static void place(struct packed *p, struct segment *s, uint64_t first)
{
    const double wide = pixels(p, s->size);
    const double gap = wide < OUTLINED ? 0 : GAP;
    uint64_t row = row_with_room(p, first, wide);
    double left;

    if (row == p->rows)
        p->filled[p->rows++] = 0;
    s->at = (double)row * WIDE + p->filled[row];
    for (left = wide; left > WIDE; left -= WIDE) {
        p->filled[row++] = WIDE;
        p->filled[p->rows++] = 0;
    }
    p->filled[row] += left + gap;
}

/* Packs for rows of p->row bytes; false if they are too many. */
static bool pack(struct packed *p)
{
    uint64_t first = 0;

    p->rows = 0;
    for (uint64_t i = 0; i < p->count; i++) {
        if (i && p->segments[i].space != p->segments[i - 1].space)
            first = p->rows;
        place(p, &p->segments[i], first);
        if (p->rows > MOST_ROWS)
            return false;
    }
    return true;
}

/* A row is at least as long as the request, and as the largest segment unless
 * that is most of the memory. */
static void choose_row(struct packed *p)
{
    frag_size largest = p->x->reserved / MOST_ROWS;

    for (uint64_t i = 0; i < p->count; i++)
        if (p->segments[i].size > largest)
            largest = p->segments[i].size;
    p->row = largest < p->x->reserved / 5 * 2 ? largest : p->x->reserved / 6;
    if (p->row < p->x->rounded)
        p->row = p->x->rounded;
    if (!p->row)
        p->row = FRAG_MIB;
    while (!pack(p))
        p->row += p->row / 4;
}

/* ---- pixels ---- */

static enum kind kind_of(const struct explain *x, const struct explain_block *b)
{
    return b->live                               ? LIVE
           : b->pending                          ? PENDING
           : !x->failed || explain_can_use(x, b) ? USABLE
                                                 : UNUSABLE;
}

static void paint(struct packed *p, enum kind kind, double from, double to)
{
    const double end = (double)p->rows * WIDE;

    for (uint64_t i = (uint64_t)from; (double)i < to && (double)i < end; i++) {
        const double low = from > (double)i ? from : (double)i;
        const double high = to < (double)i + 1 ? to : (double)i + 1;

        p->pixels[i].bytes[kind] += (float)(high - low);
    }
}

/* Whether the block lies between two holes of its segment that are each wider
 * than a pixel: without it they would look like one. */
static bool divides(const struct packed *p, const struct segment *s, uint64_t i)
{
    const struct explain_block *b = p->x->blocks;

    return i > s->from && i + 1 < s->to && kind_of(p->x, &b[i]) < USABLE &&
           kind_of(p->x, &b[i - 1]) >= USABLE &&
           kind_of(p->x, &b[i + 1]) >= USABLE && pixels(p, b[i - 1].size) > 1 &&
           pixels(p, b[i + 1].size) > 1;
}

static void paint_segment(struct packed *p, const struct segment *s)
{
    double at = s->at;

    for (uint64_t i = s->from; i < s->to; i++) {
        const double end = at + pixels(p, p->x->blocks[i].size);
        const enum kind kind = kind_of(p->x, &p->x->blocks[i]);

        paint(p, kind, at, end);
        if (divides(p, s, i))
            paint(p, kind, (double)(uint64_t)at, (double)(uint64_t)at + 1);
        at = end;
    }
}

/* ---- the files ---- */

static int shown(const struct pixel *pixel)
{
    int most = KINDS;

    for (int i = KINDS - 1; i >= 0; i--)
        if (pixel->bytes[i] > 0.02F &&
            (most == KINDS || pixel->bytes[i] >= pixel->bytes[most]))
            most = i;
    return most;
}

/* The bytes of the holes of kind USABLE. */
static frag_size sum_usable(const struct explain *x)
{
    frag_size sum = 0;

    for (uint64_t i = 0; i < x->block_count; i++)
        if (kind_of(x, &x->blocks[i]) == USABLE)
            sum += x->blocks[i].size;
    return sum;
}

static void facts(FILE *out, const void *user)
{
    const struct packed *p = user;
    const struct explain *x = p->x;
    const bool has_limit = x->bound.bytes != FRAG_UNLIMITED;
    const frag_size usable = sum_usable(x);

    fputs("trace\tcause\tevent\tfailed\tdevice\trows\twide\trow_bytes\trequest"
          "\tsegment\treserved\tlimit\tcached\tholes\tlargest\town_largest\t"
          "unreserved\tpending\tusable\tunusable\n",
          out);
    put_short(out, p->name, 40);
    fprintf(out, "\t%s\t%" PRIu64 "\t%d\t%" PRIu32 "\t%" PRIu64 "\t%d",
            explain_cause_words[x->cause], x->event, x->failed,
            x->device->device, p->rows, WIDE);
    fprintf(out, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%.0f",
            p->row, x->rounded, x->segment, x->reserved,
            has_limit ? (double)x->bound.bytes : -1.0);
    fprintf(out,
            "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
            "\t%.0f\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
            x->cached, x->holes, x->largest, x->own_largest,
            has_limit ? (double)x->unreserved : -1.0, x->pending, usable,
            x->cached - usable);
}

/* Runs of pixels of one kind. */
static void runs(FILE *out, const void *user)
{
    const struct packed *p = user;

    /* A row that is not drawn, because gnuplot rejects a file without rows. */
    fputs("row\tfrom\tto\tkind\n0\t0\t0\t-1\n", out);
    for (uint64_t row = 0; row < p->rows; row++)
        for (int from = 0, to; from < WIDE; from = to) {
            const int kind = shown(&p->pixels[row * WIDE + (uint64_t)from]);

            for (to = from;
                 to < WIDE &&
                 shown(&p->pixels[row * WIDE + (uint64_t)to]) == kind;)
                to++;
            if (kind != KINDS)
                fprintf(out, "%" PRIu64 "\t%d\t%d\t%d\n", row, from, to, kind);
        }
}

/* The pieces of a frame around [from, to), one for each row: the row, its ends,
 * and whether it goes on in the next row. */
static void put_frame(FILE *out, double from, double to, const char *kind)
{
    while (from < to) {
        const uint64_t row = (uint64_t)(from / WIDE);
        const double start = (double)row * WIDE;
        const double end = to < start + WIDE ? to : start + WIDE;

        fprintf(out, "%" PRIu64 "\t%.2f\t%.2f\t%s\t%d\n", row, from - start,
                end - start, kind, end < to);
        from = end;
    }
}

/* Frames the largest hole of those that pass, or of all. */
static void put_hole(FILE *out, const struct packed *p, bool usable,
                     const char *kind)
{
    const frag_size wanted = usable ? p->x->own_largest : p->x->largest;

    for (uint64_t k = 0; wanted && k < p->count; k++) {
        double at = p->segments[k].at;

        for (uint64_t i = p->segments[k].from; i < p->segments[k].to; i++) {
            const struct explain_block *b = &p->x->blocks[i];
            const double wide = pixels(p, b->size);

            if (b->size == wanted && kind_of(p->x, b) >= USABLE &&
                (!usable || explain_can_use(p->x, b))) {
                put_frame(out, at, at + (wide < 3 ? 3 : wide), kind);
                return;
            }
            at += wide;
        }
    }
}

static void frames(FILE *out, const void *user)
{
    const struct packed *p = user;

    fputs("row\tfrom\tto\tkind\tgoes_on\n0\t0\t0\tnone\t0\n", out);
    for (uint64_t i = 0; i < p->count; i++) {
        const double wide = pixels(p, p->segments[i].size);

        if (wide >= OUTLINED)
            put_frame(out, p->segments[i].at, p->segments[i].at + wide,
                      "segment");
    }
    if (p->x->largest > p->x->own_largest)
        put_hole(out, p, false, "largest");
    put_hole(out, p, true, "usable");
}

/* The label of each space, at its first row. */
static void spaces(FILE *out, const void *user)
{
    const struct packed *p = user;

    fputs("row\tspace\treserved\tcached\n", out);
    for (uint64_t i = 0; i < p->count; i++) {
        const struct segment *s = &p->segments[i];
        const struct explain_space *of = &p->x->spaces[s->space];
        char pool[FRAG_POOL_NAME];

        if (i && s->space == s[-1].space)
            continue;
        fprintf(out, "%" PRIu64 "\t", (uint64_t)(s->at / WIDE));
        if (s->space == SPACES)
            fprintf(out, "%" PRIu64 " others\t-1\t-1\n",
                    p->x->space_count - SPACES);
        else
            fprintf(out,
                    "%s, stream %" PRIu32 ", %s\t%" PRIu64 "\t%" PRIu64 "\n",
                    frag_pool_name(p->x->trace, p->x->device, of->pool, pool),
                    (uint32_t)of->stream, of->is_small ? "small" : "large",
                    of->reserved, of->cached);
    }
}

static enum frag_err make(struct packed *p, struct frag_error *e)
{
    p->segments = calloc(p->x->block_count + 1, sizeof(*p->segments));
    p->filled = calloc(MOST_ROWS + 16, sizeof(*p->filled));
    if (!p->segments || !p->filled)
        return frag_no_memory(e, "the picture of the holes");
    list_segments(p);
    choose_row(p);
    p->pixels = calloc((p->rows + 1) * WIDE, sizeof(*p->pixels));
    if (!p->pixels)
        return frag_no_memory(e, "the picture of the holes");
    for (uint64_t i = 0; i < p->count; i++)
        paint_segment(p, &p->segments[i]);
    return FRAG_OK;
}

enum frag_err draw_holes(const struct explain *x, const char *name,
                         const struct drawing *d, struct frag_error *e)
{
    static const struct gnuplot_file files[] = {{".facts.tsv", facts},
                                                {".tsv", runs},
                                                {".frames.tsv", frames},
                                                {".spaces.tsv", spaces},
                                                {NULL, NULL}};
    struct packed p = {.x = x, .name = name};
    enum frag_err err = make(&p, e);

    FRAG_THEN(err, gnuplot_draw("holes", files, &p, d, e));
    free(p.segments);
    free(p.filled);
    free(p.pixels);
    return err;
}
