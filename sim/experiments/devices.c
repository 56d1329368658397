/* devices.c - finds and visits the devices of a trace by their numbers. */
#include "sim/experiments/devices.h"

#include <inttypes.h>

enum frag_err input_no_device(const char *path, uint64_t wanted,
                              struct frag_error *e)
{
    return frag_fail(e, FRAG_INVALID, "%s: the trace has no device %" PRIu64,
                     path, wanted);
}

enum frag_err input_device(const struct frag_trace *t, uint64_t wanted,
                           const struct frag_device_trace **out,
                           struct frag_error *e)
{
    if (wanted == INPUT_ANY_DEVICE && t->device_count != 1)
        return frag_fail(e, FRAG_INVALID,
                         "%s: the trace has %" PRIu32
                         " devices; choose one with "
                         "--device",
                         t->path, t->device_count);
    for (uint32_t i = 0; i < t->device_count; i++)
        if (wanted == INPUT_ANY_DEVICE || t->devices[i].device == wanted) {
            *out = &t->devices[i];
            return FRAG_OK;
        }
    return input_no_device(t->path, wanted, e);
}

enum frag_err input_each_device(const struct frag_trace *t, const char *name,
                                uint64_t wanted, input_visit *visit, void *user,
                                struct frag_error *e)
{
    bool found = false;

    for (uint32_t i = 0; i < t->device_count; i++) {
        const struct input in = {t, &t->devices[i], name};

        if (wanted != INPUT_ANY_DEVICE && in.device->device != wanted)
            continue;
        FRAG_TRY(visit(user, &in, e));
        found = true;
    }
    return found ? FRAG_OK : input_no_device(t->path, wanted, e);
}
