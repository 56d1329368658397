/* stretch.h - puts the script of the small half together from short stretches
 * of earlier runs, each of which was replayed once. Private to
 * sim/experiments/tune/.
 *
 * What the small requests of a stretch of events do depends on the layout at
 * its start and on the order of addresses of the segments. Of the order, only
 * the decisive pairs matter: where several free blocks are equally good, the
 * segment of the block that was taken must be lower than those of its rivals.
 * A stretch is reused for each order that has the same decisive pairs. Layouts
 * are compared by what the segments contain, not by which segment it is; blocks
 * that no further request survives are all alike.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_STRETCH_H
#define FRAG_SIM_EXPERIMENTS_TUNE_STRETCH_H

#include "sim/experiments/parallel.h"
#include "sim/experiments/tune/script.h"

/* The small half of a trace. */
struct small_half {
    const struct frag_device_trace *trace;
    uint64_t length; /* events of a stretch; 0: stretches cannot be used. They
                        need a trace of requests and frees only, whose small
                        requests have one stream and pool */
    uint64_t end;    /* the event after the last small request */
    uint64_t *stays; /* [slots]: from this event on, the slot's small block is
                        not freed before `end`; FRAG_NEVER: no such block */
};

/* NOMEM; then *out need not be closed. */
enum frag_err small_half_open(struct small_half *out,
                              const struct frag_device_trace *trace,
                              uint64_t least) FRAG_MUST_CHECK;
void small_half_close(struct small_half *h); /* zeroed is fine */

/* The stretches that were replayed with settings that place small requests
 * alike. Several threads may use them. */
struct stretches;

struct stretches *stretches_open(const struct small_half *half); /* or NULL */
void stretches_close(struct stretches *s); /* NULL is fine */

/* The number of stretches that were replayed, and of those that were reused. */
struct stretch_counts {
    uint64_t replayed, reused;
};

/* What a script is made for: settings without expandable segments, over at
 * least the first `count` events, with this order of addresses. Further ranges
 * lie below. */
struct stretch_order {
    unsigned version;
    const char *text;
    uint64_t count;
    const frag_addr *addr;
    uint64_t ranges;
    const struct stop *stop;
};

/* Makes the script. False: it cannot be made, or the work was stopped; then
 * *out is untouched. Adds to the counts in both cases. */
bool stretches_script(struct stretches *s, const struct stretch_order *o,
                      struct script *out, struct stretch_counts *counts);

#endif
