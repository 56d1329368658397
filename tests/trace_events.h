/* trace_events.h - the events of a trace as a short text, for the tests of
 * importers. */
#ifndef FRAG_TESTS_TRACE_EVENTS_H
#define FRAG_TESTS_TRACE_EVENTS_H

#include <stdio.h>

#include "traces/trace.h"

/* Writes the events: "+1:8" allocates 8 bytes in slot 1, "-1" frees it. A "!"
 * follows a request that failed in the recorded program. */
static inline void describe_events(const struct frag_device_trace *d,
                                   char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint64_t i = 0; i < d->count && used < room; i++) {
        const char *blank = i ? " " : "";

        if (d->op[i] != FRAG_ALLOC)
            used += (size_t)snprintf(text + used, room - used, "%s-%u", blank,
                                     d->id[i]);
        else
            used += (size_t)snprintf(
                text + used, room - used, "%s+%u:%llu%s", blank, d->id[i],
                (unsigned long long)d->bytes[i],
                d->recorded.addr && !d->recorded.addr[i] ? "!" : "");
    }
}

#endif
