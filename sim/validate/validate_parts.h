/* validate_parts.h - the state of a validation, and the functions that its
 * files share. Private to sim/validate/.
 *
 *   validate.c        the run: the watch on the replay loop
 *   validate_trace.c  compares during the run: segments, OOMs, addresses
 *   validate_end.c    compares after the run: the final snapshot, the counters
 */
#ifndef FRAG_SIM_VALIDATE_VALIDATE_PARTS_H
#define FRAG_SIM_VALIDATE_VALIDATE_PARTS_H

#include <stddef.h>

#include "policies/torch/torch.h"
#include "sim/validate/validate.h"

/* A segment of the replay and the corresponding segment of the recording. */
struct address_pair {
    frag_addr replayed, recorded;
    frag_size size;
};

struct checked_run {
    const struct frag_validate *spec;
    const struct frag_recorded *recorded;
    struct frag_validation *v;
    struct frag_torch_observer observer;
    uint64_t event;             /* index of the current event */
    uint64_t next_action;       /* next row of recorded->actions */
    struct address_pair *pairs; /* of live segments, by replayed address */
    size_t pair_count;
    uint64_t pair_room;
    struct frag_torch_block *blocks; /* at the end of the replay, by address */
    uint64_t block_count, block_room;
    bool nomem; /* the host had no memory for pairs or blocks */
};

/* Record the first difference: check_expect stores what the recording states,
 * and then check_found stores what the replay did and marks the difference as
 * found. */
void check_expect(struct checked_run *c, const char *format, ...)
    FRAG_PRINTF(2, 3);
void check_found(struct checked_run *c, const char *format, ...)
    FRAG_PRINTF(2, 3);

/* ---- validate_trace.c ---- */

/* The recorded address that corresponds to an address of the replay. */
frag_addr check_translate(const struct checked_run *c, frag_addr addr);
/* The callbacks frag_torch_observer.action and frag_replay_watch.done. */
void check_action(void *user, enum frag_torch_action action, frag_addr addr,
                  frag_size size, frag_stream stream);
void check_event(void *user, uint64_t event, const struct frag_block *block);
/* Reports recorded actions, of events up to and including this one, that the
 * replay did not perform. */
void check_missed(struct checked_run *c, uint64_t event);

/* Whether memory was held before the first entry. */
static inline bool check_is_late(const struct frag_device_trace *d)
{
    return d->initial || d->recorded.start.segment_count;
}

/* ---- validate_end.c ---- */

/* The callback frag_replay_watch.ended: stores the blocks of the final
 * snapshot. */
void check_ended(void *user, const struct frag_heap *heap);
/* Compares the final snapshot. */
void check_end(struct checked_run *c);
/* Compares the counters, if there are any. NOMEM. */
enum frag_err check_stats(struct checked_run *c);

#endif
