/* spans.h - how its bound changes a run: the spans of bounds with one outcome,
 * and what a job needs. `fragsim fit` prints them. A bound is the capacity of
 * the device or the limit of the process; a question is about one kind.
 *
 * A policy learns the bound only from refused requests. A run under one bound
 * therefore has the same outcome under all bounds from the most memory that was
 * in use at once (for a limit: the largest sum that it admitted) up to the one
 * that the smallest refused request would have needed; see
 * frag_arena_same_for and frag_backend_admits. The walk runs the policy once in
 * each such span and continues at the next. It decides every bound to the byte
 * and does not assume that more memory is better: with more memory a policy may
 * fail where it survived with less.
 *
 * A run that adopts the recorded layout is another run than one that cannot,
 * because the bound is too small: a span ends at the bytes of the layout.
 *
 * This does not hold for a policy that reads the value of the bound or of the
 * total and decides by it. A run of such a policy is valid under its own bound
 * only, and the walk continues FRAG_CAPACITY_STEP above it.
 */
#ifndef FRAG_SIM_EXPERIMENTS_CAPACITY_SPANS_H
#define FRAG_SIM_EXPERIMENTS_CAPACITY_SPANS_H

#include "sim/arena/arena.h"
#include "sim/experiments/cell.h"

/* The run to repeat; borrowed. */
struct frag_capacity_spec {
    const struct frag_device_trace *trace;
    const struct frag_policy *policy;
    const char *params;                 /* NULL: defaults */
    const struct frag_params *prepared; /* as in struct frag_replay */
    const struct frag_costs *costs;     /* NULL: an H200's */
    enum frag_address_rule rule;
    enum frag_bound_kind kind; /* of all bounds below */
    frag_size total; /* that the device reports at every bound; 0: the capacity,
                        or under a limit that of an H200 */
    frag_size quantum; /* as in struct frag_replay */
    bool check;        /* as in struct frag_replay */
    /* As in struct frag_replay. */
    frag_progress *progress;
    void *user;
    uint64_t runs; /* upper bound on those of frag_capacity_need; 0: none */
    struct frag_memo *memo; /* as in struct frag_replay; several threads share
                               one that is filled */
};

/* The bounds from ... to - 1, in bytes, and their outcome. */
struct frag_capacity_span {
    frag_size from, to;      /* to: FRAG_UNLIMITED if there is no end */
    bool exact;              /* false: the outcome is known at `from` only */
    frag_size used;          /* the least bound with the outcome of this run, if
                                it is exact */
    struct frag_summary run; /* up to the first OOM */
    bool cut; /* by frag_capacity_need: after spec.runs, less may do */
};

static inline bool frag_capacity_survives(const struct frag_capacity_span *span)
{
    return span->run.num_ooms == 0;
}

/* The question about the runs of a cell, with neither progress nor a memo. All
 * is borrowed. */
struct frag_capacity_spec frag_capacity_of_cell(
    const struct cell_settings *s, const struct frag_device_trace *trace,
    const struct frag_params *params, enum frag_bound_kind kind);

/* The span that contains the bound. Errors of frag_replay, NOMEM. */
enum frag_err frag_capacity_at(const struct frag_capacity_spec *spec,
                               frag_size bytes, struct frag_capacity_span *out,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Finds the need: the least bound from which on nothing fails. out->from is the
 * need, and the rest of *out describes the run there. `unlimited` is the span
 * of FRAG_UNLIMITED. If that run fails, there is no need, and *out is a copy of
 * it. Bounds that are not exact are tried from the memory in use at
 * FRAG_UNLIMITED downwards; if that is too little, from the first larger one
 * that survives. They are FRAG_CAPACITY_STEP apart, above 1.5 times the
 * allocated peak a 64th of the bound. Errors of frag_capacity_at. */
enum frag_err frag_capacity_need(const struct frag_capacity_spec *spec,
                                 const struct frag_capacity_span *unlimited,
                                 struct frag_capacity_span *out,
                                 struct frag_error *e) FRAG_MUST_CHECK;

struct frag_capacity_spans {
    struct frag_capacity_span *items; /* the caller frees them */
    size_t count;
    uint64_t room;
};

/* Adds the spans that contain the bounds from ... to - 1, ascending. The
 * first span may begin below `from`, the last may end above `to`. If `first` is
 * true, the walk ends at the first span that survives. Errors of
 * frag_capacity_at; the spans added before the error stay. */
enum frag_err frag_capacity_walk(const struct frag_capacity_spec *spec,
                                 frag_size from, frag_size to, bool first,
                                 struct frag_capacity_spans *spans,
                                 struct frag_error *e) FRAG_MUST_CHECK;

#endif
