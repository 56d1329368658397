/* leaks.h - the places in a program that keep more memory from step to step.
 *
 * The blocks of a trace are grouped by the site of their ALLOC (sites.h); of a
 * recording without stacks, by size and stream, and the blocks of all groups
 * that do not grow once more by stream alone, for sizes that vary. Of each
 * group two quantities are known where each step begins:
 *   - the bytes of its blocks that are kept: those that live on through at
 * least one whole step after the one in which they were allocated. Blocks that
 * a step hands over to the next one do not count;
 *   - the bytes of all its blocks, which also shows a block that each step
 *     replaces by a larger one.
 * A group leaks if one of them grows (growth.h) in the second half of the
 * steps: by then a program has set itself up, its optimizer has its state, and
 * its caches are full or almost full. The blocks of the step in which the
 * recording ends do not count, and a block that waits for another stream counts
 * as freed.
 *
 * All bytes are requests rounded up to FRAG_QUANTUM, as an allocator must.
 */
#ifndef FRAG_SIM_ANSWERS_STEPS_LEAKS_H
#define FRAG_SIM_ANSWERS_STEPS_LEAKS_H

#include "sim/answers/steps/growth.h"
#include "traces/steps/steps.h"

enum leaks_verdict {
    LEAKS_NONE, /* no group grows */
    LEAKS_FOUND,
    LEAKS_UNKNOWN, /* too few steps, or none were found */
};

/* The least number of steps that is examined, and two steps before them. */
enum { LEAKS_LEAST_STEPS = GROWTH_LEAST_STEPS + 3 };

extern const char *const leaks_verdict_names[]; /* "none", "leak", "unknown" */

/* A group that grows. */
struct leak {
    uint64_t first;        /* ALLOC of its first block that outlives a step */
    uint32_t stack;        /* of its newest kept block; 0 if not recorded */
    frag_stream stream;    /* of that block */
    frag_size least, most; /* bytes of its kept blocks of the examined steps */
    uint64_t blocks;       /* its blocks of all complete steps that are live
                              after the last one */
    frag_size held;        /* bytes of these */
    struct growth growth;  /* of the second half of the steps */
    frag_size *values;     /* [value_count] bytes of its blocks where step i
                              begins, from 0; growth judges those from
                              leaks.from on */
    uint64_t value_count;
    bool replaced; /* each step replaces its block by a larger one */
};

struct leaks {
    enum leaks_verdict verdict;
    struct frag_steps steps;
    uint64_t from; /* the first step that was examined, from 0 */
    uint64_t count, room;
    struct leak *items;    /* by bytes a step, the largest first; of equal ones
                              the one that began last, since its blocks often
                              keep those of the others */
    double bytes_per_step; /* of all */
    frag_size held;        /* by them, after the last complete step */
    frag_size peak;        /* most bytes requested in an examined step */
    double seconds_per_step; /* median of the examined steps; NAN: no times */

    /* Of a job that died of a failed request. */
    uint64_t died;     /* its event; FRAG_NEVER: the job did not die */
    frag_size request; /* its bytes */
    frag_size needed;  /* they and the bytes requested by the blocks that were
                          live then, without what the leaks held */
    frag_size served;  /* most bytes requested in a complete step */
    bool by_growth;    /* needed is at most served: without the leaks the job
                          needed no more than it had had before */
};

/* Examines a device. `mark` is as for frag_steps_find. The caller closes *out.
 * INVALID as frag_steps_find; NOMEM; on error *out need not be closed. */
enum frag_err leaks_find(const struct frag_trace *t,
                         const struct frag_device_trace *d, const char *mark,
                         struct leaks *out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void leaks_close(struct leaks *l);

/* The steps, after the last complete one, until memory that is `used` now does
 * not fit `capacity` any more; UINT64_MAX if nothing leaks. */
uint64_t leaks_steps_left(const struct leaks *l, frag_size used,
                          frag_size capacity);

#endif
