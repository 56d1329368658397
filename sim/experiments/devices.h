/* devices.h - finds one device of an open trace, or visits all of them. It
 * opens and closes no trace. */
#ifndef FRAG_SIM_EXPERIMENTS_DEVICES_H
#define FRAG_SIM_EXPERIMENTS_DEVICES_H

#include "traces/trace.h"

/* The value of --device if the user did not set it. */
#define INPUT_ANY_DEVICE UINT64_MAX

/* Finds the device with the number `wanted`; for INPUT_ANY_DEVICE, the only
 * device of the trace, where the host counts only without a GPU. INVALID if
 * there is no such device. */
enum frag_err input_device(const struct frag_trace *t, uint64_t wanted,
                           const struct frag_device_trace **out,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* The numbers of a trace's devices for a message: "0, 1, 2". Empty when zeroed.
 */
struct input_devices {
    char text[128]; /* as text_add lists them */
};
void input_devices_add(struct input_devices *list, uint32_t device);

/* Returns INVALID: the trace at that path has no device `wanted`, but these. */
enum frag_err input_no_device(const char *path,
                              const struct input_devices *devices,
                              uint64_t wanted,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* One device of a trace; valid during a visit. */
struct input {
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    const char *name; /* of the trace, without folders and suffixes */
};

/* Whether a command that visits the devices of `wanted` replays this one: a
 * device without history is left out if it was not asked for by number and
 * another device of the trace has history. */
bool input_replays(const struct input *in, uint64_t wanted);

/* CORRUPT if no event of the device was recorded: such a trace shows what was
 * held at one moment, but not what the job needs. */
enum frag_err input_has_history(const struct input *in,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* CORRUPT if so little of the device was recorded that nobody can tell what its
 * job needs (recording_tells): it has to be recorded again. */
enum frag_err input_tells(const struct input *in,
                          struct frag_error *e) FRAG_MUST_CHECK;

typedef enum frag_err input_visit(void *user, const struct input *in,
                                  struct frag_error *e);

/* Visits the device `wanted`, or for INPUT_ANY_DEVICE all devices in the order
 * of the trace. INVALID if there is no such device; the first error of a visit
 * ends the loop and is returned. */
enum frag_err input_each_device(const struct frag_trace *t, const char *name,
                                uint64_t wanted, input_visit *visit, void *user,
                                struct frag_error *e) FRAG_MUST_CHECK;

#endif
