/* export_text.h - writes the events of one device as a text, complete or not at
 * all. Private to traces/export/.
 */
#ifndef FRAG_TRACES_EXPORT_EXPORT_TEXT_H
#define FRAG_TRACES_EXPORT_EXPORT_TEXT_H

#include <stdio.h>

#include "traces/trace.h"

/* Calls `put` once, which writes all events of the device to `out`. An error of
 * `out` is found afterwards. The path "-" is stdout. IO, NOMEM. */
enum frag_err text_write(const char *path, const struct frag_device_trace *d,
                         void (*put)(FILE *out,
                                     const struct frag_device_trace *d,
                                     void *user),
                         void *user, struct frag_error *e) FRAG_MUST_CHECK;

/* Sets *out to the device with that number. INVALID if the trace has no such
 * device. */
enum frag_err text_device(const struct frag_trace *trace, uint32_t device,
                          const struct frag_device_trace **out,
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
