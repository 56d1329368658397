/* write.h - writes the log of the process that loaded the library. Private to
 * real/recorder/.
 *
 * The file is opened at the first call, in the folder that the environment
 * names. So a process that makes no calls leaves no file, and the child of a
 * fork opens its own. Any thread may claim and commit. A claim is one atomic
 * addition; a lock is needed only when the file grows. Calls that could not be
 * kept are counted in the header (`lost`). If the file cannot be opened, one
 * message goes to stderr, since there is no other place for it.
 */
#ifndef FRAG_REAL_RECORDER_WRITE_H
#define FRAG_REAL_RECORDER_WRITE_H

#include "traces/record_log.h"

/* Claims the next place in the log, to be committed when the call is over.
 * Returns NULL if nothing is recorded. */
struct record_call *log_claim(void);

/* Copies the call to its place, the member `kind` last. place may be NULL. */
void log_commit(struct record_call *place, const struct record_call *call);

/* The current time, in ns since the epoch. */
uint64_t log_time(void);

/* The number of the calling thread. Threads are numbered from 0 in the order of
 * their first call of this function. */
uint32_t log_thread(void);

#endif
