/* devices.h - the devices of an open trace that were asked for, one by one. It
 * opens and closes no trace. */
#ifndef FRAG_SIM_EXPERIMENTS_DEVICES_H
#define FRAG_SIM_EXPERIMENTS_DEVICES_H

#include "traces/trace.h"

/* A device that was asked for, where none was. */
#define INPUT_ANY_DEVICE UINT64_MAX

/* The device asked for, or the only one; INVALID if there is no such. */
enum frag_err input_device(const struct frag_trace *t, uint64_t wanted,
                           const struct frag_device_trace **out,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* INVALID: the trace at that path has no device `wanted`. */
enum frag_err input_no_device(const char *path, uint64_t wanted,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* One device of a trace, for as long as it is visited. */
struct input {
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    const char *name; /* of the trace, without folders and suffixes */
};

typedef enum frag_err input_visit(void *user, const struct input *in,
                                  struct frag_error *e);

/* Visits the device asked for, or all, in the order of the trace. INVALID if
 * there is no such; the first error of a visit ends it. */
enum frag_err input_each_device(const struct frag_trace *t, const char *name,
                                uint64_t wanted, input_visit *visit, void *user,
                                struct frag_error *e) FRAG_MUST_CHECK;

#endif
