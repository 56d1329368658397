/* grid.h - the cells of a sweep: traces x edits x policies x
 * capacities. It reads the grid from options and a file, and
 * numbers the cells; it runs none.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_GRID_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_GRID_H

#include "sim/experiments/choices.h"
#include "sim/experiments/texts.h"
#include "traces/edit/edit.h"

/* The texts that define a grid; borrowed. */
struct grid_source {
    const struct texts *traces, *policies;
    const struct texts *bounds; /* [FRAG_BOUND_KINDS] */
    const char *file; /* a file that adds to the lists above; NULL: none */
    const struct texts *edits; /* "none" is the trace as it is */
};

/* The edits of a cell's trace. */
struct grid_edit {
    const char *text;         /* NULL if there are none */
    struct frag_edits *edits; /* NULL if there are none */
};

struct grid {
    struct texts traces; /* paths */
    struct grid_edit *edits;
    size_t edit_count; /* at least 1: without edits, none */
    struct policy_choice *policies;
    struct bound_choice *bounds;
    size_t policy_count, bound_count;
    char *storage; /* the lines of the file */
};

/* A cell, for all devices of its trace. In the order of the cells the trace
 * changes slowest, then the edit, and the bound fastest. */
struct grid_cell {
    size_t trace, edit, policy, bound; /* indices in the grid */
};

/* Part `index` (from 1) of `count`. */
struct shard {
    uint64_t index, count;
};

#define GRID_CELLS_MAX ((uint64_t)10000000)

/* Reads a grid. A line of the file is "trace PATH", "policy TEXT", "capacity
 * LIST", "process_limit LIST" or "edit TEXT"; it may be empty, and # begins a
 * comment. INVALID names
 * the text, and the file and line if the text is in the file; IO; NOMEM. The
 * caller frees *out, on error too.
 */
enum frag_err grid_read(const struct grid_source *source, struct grid *out,
                        struct frag_error *e) FRAG_MUST_CHECK;
void grid_free(struct grid *grid); /* zeroed is fine */

uint64_t grid_cells(const struct grid *grid);
struct grid_cell grid_cell(const struct grid *grid, uint64_t index);

/* Reads a text such as "3/8". INVALID. */
enum frag_err shard_read(const char *text, struct shard *out,
                         struct frag_error *e) FRAG_MUST_CHECK;
/* A shard is the range of cells shard_first ... shard_end - 1. Its cells are
 * neighbours, so that few shards read the same trace. */
uint64_t shard_first(const struct shard *shard, uint64_t cells);
uint64_t shard_end(const struct shard *shard, uint64_t cells);

#endif
