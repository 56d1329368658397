/* write.h - writes the log of the process it is loaded into.
 *
 * The file is opened at the first call, in the folder that the environment
 * names, so a process that makes none leaves none; a fork's child opens its
 * own. Any thread may claim and commit; a claim is one atomic addition, and a
 * lock only where the file grows. What could not be kept is counted in the
 * header (`lost`); a file that cannot be opened is said on stderr once, for
 * there is nowhere else to say it.
 */
#ifndef FRAG_REAL_RECORDER_WRITE_H
#define FRAG_REAL_RECORDER_WRITE_H

#include "traces/record_log.h"

/* The next place in the log, to be committed when the call is over; NULL if
 * nothing is recorded. */
struct record_call *log_claim(void);

/* Copies the call to its place, the kind last. NULL is fine. */
void log_commit(struct record_call *place, const struct record_call *call);

/* Now, in ns since the epoch. */
uint64_t log_time(void);

/* The number of the calling thread, from 0 in the order of asking. */
uint32_t log_thread(void);

#endif
