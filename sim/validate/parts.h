/* parts.h - the state of a validation. Private to sim/validate/.
 *
 *   validate.c  the run: settings, anchors, the watch on the replay loop
 *   trace.c     what happens on the way: segments, OOMs, addresses
 *   end.c       what is left: the final snapshot, the counters
 */
#ifndef FRAG_SIM_VALIDATE_PARTS_H
#define FRAG_SIM_VALIDATE_PARTS_H

#include <stddef.h>

#include "policies/torch/torch.h"
#include "sim/validate/validate.h"

/* A segment of the replay and the one of the recording it stands for. */
struct address_pair {
    frag_addr replayed, recorded;
    frag_size size;
};

struct checked_run {
    const struct frag_validate *spec;
    const struct frag_recorded *recorded;
    struct frag_validation *v;
    struct frag_torch_observer observer;
    uint64_t event;             /* the one under way */
    uint64_t next_action;       /* row of recorded->actions */
    struct address_pair *pairs; /* live ones, by replayed address */
    size_t pair_count;
    uint64_t pair_room;
    struct frag_torch_block *blocks; /* of the replay's end, by address */
    uint64_t block_count, block_room;
    bool nomem;
};

/* The first difference is kept: what the recording says, then what the replay
 * did, which completes it. `where` is v->first, or v->cause for a place where
 * only an address differs. */
void check_expect(const struct checked_run *c, struct frag_divergence *where,
                  const char *format, ...) FRAG_PRINTF(3, 4);
void check_found(const struct checked_run *c, struct frag_divergence *where,
                 const char *format, ...) FRAG_PRINTF(3, 4);

/* ---- trace.c ---- */

/* The recorded address that stands for one of the replay. */
frag_addr check_translate(const struct checked_run *c, frag_addr addr);
/* For frag_torch_observer.action and frag_replay_watch.done. */
void check_action(void *user, enum frag_torch_action action, frag_addr addr,
                  frag_size size, frag_stream stream);
void check_event(void *user, uint64_t event, const struct frag_block *block);
/* Recorded actions of events up to this one that the replay did not take. */
void check_missed(struct checked_run *c, uint64_t event);

/* ---- end.c ---- */

/* For frag_replay_watch.ended: keeps the blocks. */
void check_ended(void *user, const struct frag_heap *heap);
enum frag_err check_end(struct checked_run *c);   /* NOMEM */
enum frag_err check_stats(struct checked_run *c); /* NOMEM */

#endif
