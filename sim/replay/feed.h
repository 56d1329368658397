/* feed.h - replays events that come in windows (struct frag_windows), with the
 * measurements of a replay. Memory depends on the number of live blocks, not on
 * the number of events.
 */
#ifndef FRAG_SIM_REPLAY_FEED_H
#define FRAG_SIM_REPLAY_FEED_H

#include "sim/replay/replay.h"

FRAG_BEGIN_DECLS

struct frag_feed;

/* Opens a feed. Of `spec`, the policy, params, prepared, mem, check, contents,
 * stop_at_oom and max_ooms are used; the trace is not. `prepared` and
 * `contents` are borrowed until the end of the feed, mem too. UNSUPPORTED for a
 * policy that needs the future; errors of frag_replay. On error *out is
 * untouched. */
enum frag_err frag_feed_open(const struct frag_replay *spec,
                             struct frag_feed **out,
                             struct frag_error *e) FRAG_MUST_CHECK;

/* Runs the events of the next window, unless the run has ended at an OOM.
 * Errors of frag_replay; only frag_feed_close may follow them. */
enum frag_err frag_feed_window(struct frag_feed *f,
                               const struct frag_device_trace *window,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Ends the run, closes the feed and fills *out, which frag_run_free frees.
 * Errors of frag_replay; the feed is then closed all the same, and *out is
 * untouched. */
enum frag_err frag_feed_end(struct frag_feed *f, struct frag_run *out,
                            struct frag_error *e) FRAG_MUST_CHECK;

/* Closes a feed without an end of its run; NULL is allowed. */
void frag_feed_close(struct frag_feed *f);

FRAG_END_DECLS

#endif
