/* dry_live.h - what remains of a process that dies without a word.
 *
 * From its first use of a device, the file FRAGSIM_DRY_FOLDER/PID.live has
 * lines as the notes: `lacked`, the last function that a stand-in lacked;
 * `used`, the most bytes of a device in use, whose number is the name; and at
 * the end `ended` if the process ended by itself, or `fault`, the signal of the
 * fault that ended it and the library where it came.
 */
#ifndef FRAG_REAL_DRY_DRY_LIVE_H
#define FRAG_REAL_DRY_DRY_LIVE_H

#include <stdint.h>

/* So many bytes of the device are in use. */
void dry_live_used(int device, uint64_t used);
/* A stand-in lacks the function. */
void dry_live_lacks(const char *name);

#pragma GCC visibility push(default)

/* The process wrote its trace, or needs none. */
void frag_dry_live_end(void);
/* Calls `write` in the thread that a fault (SIGSEGV, SIGABRT and the like)
 * ends, before the handler of the program; it has half a minute. */
void frag_dry_on_death(void (*write)(void));

#pragma GCC visibility pop

#endif
