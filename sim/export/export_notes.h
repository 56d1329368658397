/* export_notes.h - the sentences about what a file lacks and what it rests on.
 * They go to stderr, and into the file if its format has a place for them. */
#ifndef FRAG_SIM_EXPORT_EXPORT_NOTES_H
#define FRAG_SIM_EXPORT_EXPORT_NOTES_H

#include "traces/trace.h"

/* A growing list; zeroed it is empty. */
struct export_notes {
    char **items;
    uint64_t count, room;
};

/* NOMEM. */
enum frag_err export_note(struct export_notes *n, const char *format, ...)
    FRAG_PRINTF(2, 3);
void export_notes_free(struct export_notes *n);

/* The sentence about how a run with a tap (tap.h) of this device starts; NULL
 * if nothing was held before the first event. Such a run allocates the live
 * blocks first, also with a policy that `fragsim replay' starts from the
 * recorded segments. */
const char *export_start_note(const struct frag_device_trace *d);

#endif
