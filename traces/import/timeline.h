/* timeline.h - memory events of several threads, which are put into the order
 * of time before they are passed to the builder. Private to traces/import/.
 */
#ifndef FRAG_TRACES_IMPORT_TIMELINE_H
#define FRAG_TRACES_IMPORT_TIMELINE_H

#include "traces/base.h"

struct frag_build; /* see traces/build/build.h */

/* An alloc, a free or a failed request. */
struct timeline_event {
    frag_time time;
    int64_t bytes; /* below 0: a free of that many bytes; never 0 */
    frag_addr addr;
    frag_size total; /* bytes live on the device after the event */
    uint64_t where;  /* position in the file */
    uint32_t device;
    bool failed, has_total;
};

/* The events in the order of the file. */
struct timeline {
    struct timeline_event *events;
    uint64_t count, room;
};

/* Adds an event. NOMEM. */
enum frag_err timeline_add(struct timeline *t, const struct timeline_event *ev);
void timeline_fini(struct timeline *t);

/* Sorts the events by device and time, and in the order of the file where times
 * are equal, and passes them to the builder. Bytes that were live before the
 * first event of a device are added to its initial state: `total` states their
 * sum. Notes count the events that contradict `total` or each other. CORRUPT,
 * NOMEM. */
enum frag_err timeline_build(struct timeline *t, struct frag_build *build,
                             struct frag_error *e) FRAG_MUST_CHECK;

#endif
