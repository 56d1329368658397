/* grid.h - which cells a sweep has: traces x policies with their parameters x
 * capacities.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_GRID_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_GRID_H

#include "sim/experiments/choices.h"
#include "sim/experiments/texts.h"

/* Where the grid is said; borrowed. */
struct grid_source {
    const struct texts *traces, *policies, *capacities;
    const struct texts *params; /* "[POLICY:]KEY=VALUES", see values.h */
    const char *file;           /* more of all of them; NULL: none */
};

struct grid {
    struct texts traces; /* paths */
    struct policy_choice *policies;
    char **policy_texts; /* what the choices borrow */
    struct capacity_choice *capacities;
    size_t policy_count, capacity_count;
    size_t policy_room, text_room; /* of policies and policy_texts */
    char *storage;                 /* of the file's lines */
};

/* Cells in the order of the grid: the trace changes slowest, the capacity
 * fastest. A cell is of all devices of its trace. */
struct grid_cell {
    size_t trace, policy, capacity; /* indices in the grid */
};

/* Part `index` (from 1) of `count`. */
struct shard {
    uint64_t index, count;
};

#define GRID_CELLS_MAX ((uint64_t)10000000)

/* A policy takes every value of each parameter it has, in all combinations; a
 * parameter that none of the policies has is an error. A line of the file is
 * "trace PATH", "policy TEXT", "capacity LIST" or "param TEXT", empty, or a
 * comment after #. INVALID with the words, and file and line where it is the
 * file's; IO, NOMEM. *out is to be freed either way. */
enum frag_err grid_read(const struct grid_source *source, struct grid *out,
                        struct frag_error *e) FRAG_MUST_CHECK;
void grid_free(struct grid *grid); /* zeroed is fine */

uint64_t grid_cells(const struct grid *grid);
struct grid_cell grid_cell(const struct grid *grid, uint64_t index);

/* "3/8". INVALID. */
enum frag_err shard_read(const char *text, struct shard *out,
                         struct frag_error *e) FRAG_MUST_CHECK;
/* The cells of a shard are neighbours, so that few shards read a trace: from
 * the first up to the next shard's first. */
uint64_t shard_first(const struct shard *shard, uint64_t cells);
uint64_t shard_end(const struct shard *shard, uint64_t cells);

#endif
