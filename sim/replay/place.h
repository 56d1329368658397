/* place.h - what the policies of shared libraries are doing in this process, in
 * memory that the parent process reads after this process has ended.
 *
 * A policy in a shared library may crash, never return, or end the process.
 * Such a process is the child of one that waits and then says where it was
 * (sim/cli/apart.h). Nothing here is a call in the replay loop: the parent
 * reads the counter of events where the loop keeps it. For a process that no
 * parent watches, and for all registered policies, nothing happens.
 */
#ifndef FRAG_SIM_REPLAY_PLACE_H
#define FRAG_SIM_REPLAY_PLACE_H

#include "policies/policy.h"

/* The work of one thread with one policy. */
struct place;

/* Makes the memory that is shared with children that are forked later. False if
 * the host has none. */
bool place_share(void);

/* From now on the runs of this policy, which comes from this file, are places.
 */
void place_watch(const struct frag_policy *policy, const char *file);

/* Enters a place, until place_leave; `what` is copied. NULL if nobody watches,
 * or if more places are taken than there is memory for. */
struct place *place_enter(const char *what);
/* The same for a run of the policy, with `bytes` bytes of shared memory, of
 * which `event` is the offset of the number of the event. NULL also if the
 * policy is not watched. */
struct place *place_of_run(const struct frag_policy *policy, size_t bytes,
                           size_t event);
void *place_memory(struct place *p);
/* Sets the number of the event of a run that has no memory of its own. p may be
 * NULL. */
void place_step(struct place *p, uint64_t step);
/* Names the part of the run that begins now; `part` is a literal. NULL: the
 * events; "": the policy is not called for a while. p may be NULL, as for
 * place_leave. */
void place_part(struct place *p, const char *part);
void place_leave(struct place *p);

/* For the parent. Whether any place is taken; *progress is a number that
 * differs from that of the last call if an event or a place has ended since. */
bool place_is_taken(uint64_t *progress);
/* Whether a place was left without stderr, so that nothing could be said. */
bool place_is_mute(void);
/* Writes the places that are taken, such as "bump (./bump.so): event 5"; if
 * there is none, the policies that were loaded. Returns text. */
enum { PLACE_TEXT = 512 };
const char *place_words(char text[PLACE_TEXT]);

#endif
