/* view_parts.h - the data of a view while they are computed. Private to
 * sim/cli/review/.
 *
 * The data are columns of numbers, which the page holds as base64 and the
 * script texts/view.js reads as typed arrays. VIEW_COLUMNS says what each
 * column holds.
 *
 * All events, of which there are N, are divided into `columns' of equal length:
 * column c begins with event floor(c * N / columns).
 */
#ifndef FRAG_SIM_CLI_REVIEW_VIEW_PARTS_H
#define FRAG_SIM_CLI_REVIEW_VIEW_PARTS_H

#include "sim/cli/figures/heights.h"
#include "sim/cli/review/view.h"

/* What a page has room for; two runs share it. */
enum {
    VIEW_BLOCKS = 40000,       /* written one by one */
    VIEW_RANGES = 16000,       /* reserved ranges, written one by one */
    VIEW_CURVE = 8192,         /* columns of the curves */
    VIEW_WIDE = 1024,          /* columns of the grid */
    VIEW_HIGH = 256,           /* rows of the grid */
    VIEW_SUMS = 16000,         /* sums of the others, by stack and moment */
    VIEW_MOMENTS = 128,        /* the most moments of these sums */
    VIEW_NODES = 30000,        /* frames of the tree of stacks */
    VIEW_LETTERS = 600000,     /* in the names of these frames */
    VIEW_CELLS_MOST = 1 << 21, /* sums in the memory of the host */
};

/* X(name, key in the page, type, contents). The columns of one group have equal
 * lengths. Heights are in units of view_run.unit. */
#define VIEW_COLUMNS(X)                                                       \
    /* a block that is written: [from, to) in events, its lowest height, its  \
       row in the kinds, and with times the ticks at from and to; where       \
       blocks move, the event of the request */                               \
    X(FROM, "from", u32)                                                      \
    X(TO, "to", u32)                                                          \
    X(Y, "y", u32)                                                            \
    X(KIND, "kind", u32)                                                      \
    X(BORN, "born", u32)                                                      \
    X(DIED, "died", u32)                                                      \
    X(ASKED, "asked", u32)                                                    \
    /* a kind of blocks: bytes, the last node of its stack, rows of the       \
       streams and of the pools */                                            \
    X(REQUESTED, "requested", f64)                                            \
    X(SIZE, "size", f64)                                                      \
    X(NODE, "node", u32)                                                      \
    X(STREAM, "stream", u32)                                                  \
    X(POOL, "pool", u32)                                                      \
    /* a reserved range that is written: events, heights */                   \
    X(RANGE_FROM, "rangeFrom", u32)                                           \
    X(RANGE_TO, "rangeTo", u32)                                               \
    X(RANGE_Y, "rangeY", u32)                                                 \
    X(RANGE_SIZE, "rangeSize", u32)                                           \
    /* a column of events, in bytes: allocated after its first event, and the \
       most after any of its events */                                        \
    X(ALLOCATED, "allocated", f64)                                            \
    X(ALLOCATED_MOST, "allocatedMost", f64)                                   \
    X(REQUESTED_MOST, "requestedMost", f64)                                   \
    X(RESERVED_MOST, "reservedMost", f64)                                     \
    /* a cell of the grid, from the lowest row: the share of its area that    \
       the other blocks and the other ranges cover, in 255ths, rounded up;    \
       empty if there are no others */                                        \
    X(CELLS, "cells", u8)                                                     \
    X(RANGE_CELLS, "rangeCells", u8)                                          \
    /* a moment: the event after which the other blocks were added up, and    \
       its first sum */                                                       \
    X(MOMENT, "moment", u32)                                                  \
    X(MOMENT_FIRST, "momentFirst", u32)                                       \
    /* a sum: the other live blocks of one stack, their number and bytes */   \
    X(SUM_NODE, "sumNode", u32)                                               \
    X(SUM_BLOCKS, "sumBlocks", u32)                                           \
    X(SUM_REQUESTED, "sumRequested", f64)                                     \
    X(SUM_SIZE, "sumSize", f64)                                               \
    /* the events of the requests that failed, the first 1000 */              \
    X(OOM, "oom", u32)

enum view_column {
#define X(name, key, type) VIEW_##name,
    VIEW_COLUMNS(X)
#undef X
        VIEW_COLUMN_COUNT
};

/* A growing array of bytes. */
struct view_bytes {
    unsigned char *items;
    uint64_t size, room;
};

/* Distinct rows of five numbers, each stored once; zeroed is empty. */
struct view_rows {
    uint64_t (*items)[5];
    uint64_t count, room;
    uint32_t *slots; /* [slot_count]: 1 + a row, or 0 */
    uint64_t slot_count;
};

/* The tree of the stacks of the trace: node 0 is no stack, node 1 stands for
 * the stacks that have no room. A row of another node is its parent, its
 * function and its file (rows of `strings'), and its line. */
struct view_stacks {
    const struct frag_trace *trace;
    struct view_rows nodes;
    uint32_t (*sites)[2]; /* [VIEW_NODES + 2]: of the last node of a stack, the
                             node of its site, and that of its innermost frame;
                             else 0 */
    uint32_t *leaf;       /* [stack_count]: 1 + the last node of a stack; 0: not
                             asked yet */
    uint32_t *renamed;    /* [string_count]: 1 + the row in `strings`, or 0 */
    uint32_t *strings;    /* strings of the trace that are used */
    uint32_t string_count;
    uint64_t letters;  /* of them */
    uint64_t left_out; /* stacks that have no room */
};

struct view;

/* The spans that are written one by one: all if least is 0, else those of this
 * class of areas and above, and those that are live at the peak, unless it is
 * UINT64_MAX. */
struct view_choice {
    uint64_t peak;
    size_t least;
};

/* One run of the view. */
struct view_run {
    const struct view *view;
    const struct trace_view *of;
    struct figure_track track;
    struct heights heights;
    frag_size unit; /* of heights, in bytes; a power of two */
    struct view_bytes columns[VIEW_COLUMN_COUNT];
    struct view_rows kinds;
    struct view_choice choice;        /* of the blocks */
    uint64_t written, ranges_written; /* blocks and ranges, one by one */
    double least; /* the area, in bytes times events, from which on blocks were
                     written */
    bool has_moves;
    bool is_short; /* the host has no memory */
};

struct view {
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    const char *name;
    size_t count;
    uint64_t peak;                /* event of the most requested bytes */
    int64_t recorded_oom;         /* event; -1: none */
    uint64_t columns, wide, high; /* of the curves and of the grid */
    frag_time start, tick; /* of the columns BORN and DIED, ns; tick 0: the
                              trace has no times */
    struct view_stacks stacks;
    struct view_run runs[VIEW_RUNS];
};

/* -- view_policies.c ---- */

/* A run for each policy of a view, with what the runs borrow. */
struct view_policies {
    char *name; /* of the trace */
    struct trace_view runs[VIEW_RUNS];
    struct frag_params *params[VIEW_RUNS];
    struct policy_choice *choices;
    size_t count;
};

/* Errors of the choices; then view_policies_close all the same. */
enum frag_err view_policies_open(const struct view_wish *w,
                                 struct view_policies *out,
                                 struct frag_error *e) FRAG_MUST_CHECK;
void view_policies_close(struct view_policies *p);

/* -- view_stacks.c ---- */

/* The index of the row, which is added if it is new; UINT32_MAX if the host has
 * no memory. */
uint32_t view_row(struct view_rows *rows, const uint64_t row[5]);

/* NOMEM; then view_stacks_close all the same. */
enum frag_err view_stacks_open(struct view_stacks *s,
                               const struct frag_trace *trace) FRAG_MUST_CHECK;
void view_stacks_close(struct view_stacks *s);

/* The last node of a stack of the trace. */
uint32_t view_node(struct view_stacks *s, uint32_t stack);

/* -- view_levels.c ---- */

/* Append a value to a column. */
void view_u32(struct view_run *r, enum view_column column, uint64_t value);
void view_f64(struct view_run *r, enum view_column column, uint64_t value);
/* Zeroed memory for count + 1 items, which the caller frees. NULL, and
 * r->is_short, if the host has none. */
void *view_get(struct view_run *r, uint64_t count, size_t size);

static inline frag_size view_requested(const struct view_run *r,
                                       const struct span *s)
{
    return r->of->device->bytes[s->asked];
}

/* Whether the span exists directly after the event. */
static inline bool view_is_live(const struct span *s, uint64_t event)
{
    return s->from <= event && event < s->to;
}

bool view_is_written(const struct view_choice *c, const struct span *s);
/* The last node of the stack of a block. */
uint32_t view_node_of(struct view *v, const struct span *s);
/* The time at an event since v->start, in ns; with v->tick set. */
frag_time view_time(const struct view *v, uint64_t event);
/* The first event of column c. */
uint64_t view_first(const struct view *v, uint64_t column);

/* Fill the columns of the blocks (and r->choice), and of the ranges. */
void view_blocks(struct view *v, struct view_run *r);
void view_ranges(struct view_run *r);

/* -- view_sums.c ---- */

/* Fills the columns of a curve: the requested or the allocated bytes; those
 * that are reserved. `first` may be VIEW_COLUMN_COUNT: none. */
void view_curve(struct view_run *r, bool is_requested, enum view_column first,
                enum view_column most);
void view_curve_reserved(struct view_run *r);
/* Fills the columns of the sums, with r->choice. */
void view_sums(struct view *v, struct view_run *r);

#endif
