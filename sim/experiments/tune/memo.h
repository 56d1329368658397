/* memo.h - what the runs of a search tell about further runs on the same trace.
 *
 * A result is the same as that of a replay to the last bit; the memo only saves
 * the time. It knows
 *   - the results of all settings that were run;
 *   - the calls that the small and the large requests of a trace made the
 * policy ask of the device, each for the settings that matter to them
 * (script.h). A run whose two halves are known is put together from them. If
 * only the large half is new, only the large requests are replayed; if the
 * small one is, only those of its stretches that are new (stretch.h). Halves
 * are used if the trace starts without memory, has no padding and has enough
 * small requests to save time, and if the settings have no memory limit. A run
 * in which the device refuses memory is replayed.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_MEMO_H
#define FRAG_SIM_EXPERIMENTS_TUNE_MEMO_H

#include "traces/trace.h"

struct tune_memo;

/* Opens a memo of the runs on a device with the same cell settings. `recorded`
 * are the settings of its trace; NULL: none. `least` is the number of events of
 * small requests from which on halves are used. Several threads may use the
 * memo. NOMEM; on error *out is untouched. */
enum frag_err tune_memo_open(const struct frag_device_trace *device,
                             const char *recorded, uint64_t least,
                             struct tune_memo **out,
                             struct frag_error *e) FRAG_MUST_CHECK;
void tune_memo_close(struct tune_memo *memo); /* NULL is fine */

enum { TUNE_MEMO_LEAST = 2000 }; /* `least` for the shortest time */

/* How the runs of a memo were found. */
struct tune_memo_counts {
    uint64_t replays, large_replays; /* of the whole trace; of its large
                                        requests */
    uint64_t joined;                 /* from two known halves */
    uint64_t known;                  /* the same setting once more */
    uint64_t stretches, reused;      /* of small requests: replayed; taken from
                                        another run */
};

struct tune_memo_counts tune_memo_counts(struct tune_memo *memo);

#endif
