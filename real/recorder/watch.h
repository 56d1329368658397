/* watch.h - a call of the driver under way, from the moment the program
 * makes it until it is in the log.
 *
 * What gives memory back claims its place before it is passed on, all else
 * after (traces/record_log.h says why). A call that the driver makes of its own
 * inside another is passed on and not recorded. No other thread may touch a
 * watch.
 */
#ifndef FRAG_REAL_RECORDER_WATCH_H
#define FRAG_REAL_RECORDER_WATCH_H

#include <stdbool.h>

#include "real/recorder/driver.h"
#include "real/recorder/write.h"

struct watch {
    struct record_call call; /* to be filled in before the end */
    struct record_call *place;
    bool is_outer; /* the program's own */
};

/* A call begins; each must end. */
struct watch watch_begin(enum record_kind kind);
struct watch watch_begin_giving_back(enum record_kind kind);
/* A call that the log has no words for: its name alone is kept. */
struct watch watch_begin_unread(const char *name);

/* The call is over, and so recorded. Returns the result. */
driver_result watch_end(struct watch *w, driver_result result);

/* The same of one that takes memory: of the device of the thread's context,
 * unless call.device is set. */
driver_result watch_end_taking(struct watch *w, driver_result result);

/* The same of one that says where the memory is. */
driver_result watch_end_block(struct watch *w, driver_result result,
                              const driver_address *at);

/* The thread's context, 0 if it has none. */
uint64_t watch_context(void);

#endif
