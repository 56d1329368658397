/* devices.c - finds and visits the devices of a trace by their numbers. */
#include "sim/experiments/devices.h"

#include <inttypes.h>
#include <stdio.h>

#include "sim/experiments/recording.h"
#include "traces/text.h"

/* What --device takes for it. */
static const char *value_of(uint32_t device, char text[FRAG_DEVICE_TEXT])
{
    snprintf(text, FRAG_DEVICE_TEXT,
             device == FRAG_HOST_DEVICE ? "host" : "%" PRIu32, device);
    return text;
}

void input_devices_add(struct input_devices *list, uint32_t device)
{
    char text[FRAG_DEVICE_TEXT];

    text_add(list->text, sizeof(list->text), ", ", "%s",
             value_of(device, text));
}

static struct input_devices devices_of(const struct frag_trace *t)
{
    struct input_devices list = {""};

    for (uint32_t i = 0; i < t->device_count; i++)
        input_devices_add(&list, t->devices[i].device);
    return list;
}

enum frag_err input_no_device(const char *path,
                              const struct input_devices *devices,
                              uint64_t wanted, struct frag_error *e)
{
    if (wanted == FRAG_HOST_DEVICE)
        return frag_fail(
            e, FRAG_INVALID,
            "%s: the trace has no pinned host memory; its devices are: %s; "
            "fragsim record records it, and so do PyTorch 2.14 and later with "
            "record_pinned_host_memory=True of _record_memory_history",
            path, devices->text);
    return frag_fail(e, FRAG_INVALID,
                     "%s: the trace has no device %" PRIu64
                     "; its devices are: %s",
                     path, wanted, devices->text);
}

/* The number of the only device of a trace, the host not counted if there is a
 * GPU; INPUT_ANY_DEVICE: there are several. */
static uint64_t only_device(const struct frag_trace *t)
{
    const uint32_t last = t->device_count - 1; /* the host is the last one */

    if (t->device_count == 1 ||
        (t->device_count == 2 && t->devices[last].device == FRAG_HOST_DEVICE))
        return t->devices[0].device;
    return INPUT_ANY_DEVICE;
}

enum frag_err input_device(const struct frag_trace *t, uint64_t wanted,
                           const struct frag_device_trace **out,
                           struct frag_error *e)
{
    const struct input_devices devices = devices_of(t);

    if (wanted == INPUT_ANY_DEVICE)
        wanted = only_device(t);
    if (wanted == INPUT_ANY_DEVICE)
        return frag_fail(e, FRAG_INVALID,
                         "%s: the trace has %" PRIu32
                         " devices; choose one with --device: %s",
                         t->path, t->device_count, devices.text);
    for (uint32_t i = 0; i < t->device_count; i++)
        if (t->devices[i].device == wanted) {
            *out = &t->devices[i];
            return FRAG_OK;
        }
    return input_no_device(t->path, &devices, wanted, e);
}

static bool has_history(const struct frag_device_trace *device)
{
    return device->count > device->initial;
}

bool input_replays(const struct input *in, uint64_t wanted)
{
    if (wanted != INPUT_ANY_DEVICE || has_history(in->device))
        return true;
    for (uint32_t i = 0; i < in->trace->device_count; i++)
        if (has_history(&in->trace->devices[i]))
            return false;
    return true;
}

enum frag_err input_has_history(const struct input *in, struct frag_error *e)
{
    char text[FRAG_DEVICE_TEXT];

    if (has_history(in->device))
        return FRAG_OK;
    for (uint32_t i = 0; i < in->trace->device_count; i++)
        if (has_history(&in->trace->devices[i]))
            return frag_fail(e, FRAG_CORRUPT,
                             "%s: %s has no history; --device %s selects a "
                             "device that has one",
                             in->trace->path,
                             FRAG_DEVICE_NAME(in->device->device),
                             value_of(in->trace->devices[i].device, text));
    return frag_fail(e, FRAG_CORRUPT,
                     "%s: the snapshot has no history: it shows what was held "
                     "at one moment, not what the job requests; record with "
                     "torch.cuda.memory._record_memory_history() before the "
                     "job starts",
                     in->trace->path);
}

enum frag_err input_tells(const struct input *in, struct frag_error *e)
{
    FRAG_TRY(input_has_history(in, e));
    return recording_tells(in->device)
               ? FRAG_OK
               : frag_fail(e, FRAG_CORRUPT,
                           "%s: %s: only %" PRIu64 " of the job's events were "
                           "recorded, too few to tell what it needs; record "
                           "with torch.cuda.memory._record_memory_history() "
                           "before the job starts",
                           in->trace->path,
                           FRAG_DEVICE_NAME(in->device->device),
                           in->device->count - in->device->initial);
}

enum frag_err input_each_device(const struct frag_trace *t, const char *name,
                                uint64_t wanted, input_visit *visit, void *user,
                                struct frag_error *e)
{
    const struct input_devices devices = devices_of(t);
    bool found = false;

    for (uint32_t i = 0; i < t->device_count; i++) {
        const struct input in = {t, &t->devices[i], name};

        if (wanted != INPUT_ANY_DEVICE && in.device->device != wanted)
            continue;
        FRAG_TRY(visit(user, &in, e));
        found = true;
    }
    return found ? FRAG_OK : input_no_device(t->path, &devices, wanted, e);
}
