/* watch.h - one call of the driver, from the moment when the program makes it
 * until it is in the log. Private to real/recorder/.
 *
 * A call that releases memory claims its place in the log before it is passed
 * on; all other calls claim their place after they return (traces/record_log.h
 * explains why). A call that the driver makes inside another call is passed on
 * but not recorded. Only the thread that began a watch may use it.
 */
#ifndef FRAG_REAL_RECORDER_WATCH_H
#define FRAG_REAL_RECORDER_WATCH_H

#include <stdbool.h>

#include "real/recorder/recorder_driver.h"
#include "real/recorder/write.h"

struct watch {
    struct record_call call; /* the caller fills it in before watch_end */
    struct record_call *place;
    bool is_outer; /* made by the program, not by the driver itself */
};

/* Begins a call. Each begun call must be ended. */
struct watch watch_begin(enum record_kind kind);
struct watch watch_begin_release(enum record_kind kind);
/* Begins a call that the log cannot describe: only its name is kept. */
struct watch watch_begin_unread(const char *name);

/* Ends the call and records it. Returns `result`. */
driver_result watch_end(struct watch *w, driver_result result);

/* The same for a call that allocates memory. The memory belongs to the device
 * of the thread's context, unless call.device is set. */
driver_result watch_end_alloc(struct watch *w, driver_result result);

/* The same for a call that returns the address of the memory in *at. */
driver_result watch_end_block(struct watch *w, driver_result result,
                              const driver_address *at);

/* The same for a call that adds memory to a graph. */
driver_result graph_end(struct watch *w, driver_result result,
                        const driver_address *at);

/* Logs how much memory the driver holds for the graphs of each device, where
 * that has changed. Returns `result`. */
driver_result graph_log_held(driver_result result);

/* Defines a function of the driver of which the log has only what is known
 * before the call. The parameters and the values that are passed on are in
 * parentheses; `begin` is one of the calls above, and `...` sets members of
 * w.call. */
#define WATCHED(name, parameters, values, begin, ...)        \
    driver_result name parameters                            \
    {                                                        \
        struct watch w = begin;                              \
                                                             \
        __VA_ARGS__;                                         \
        return watch_end(&w, DRIVER_PASS_ALL(name, values)); \
    }

/* The thread's context, or 0 if it has none. */
uint64_t watch_context(void);

#endif
