#include "sim/cli/output/inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/cli/cli.h"

enum frag_err input_open(const char *path, frag_size limit,
                         struct progress *progress, struct frag_trace **out,
                         struct frag_error *e)
{
    const struct frag_read_options options = {
        .limit = limit, .progress = progress_tick, .user = progress};
    enum frag_err err;

    progress_step(progress, 0, 0, "B", 1, path);
    err = frag_trace_open(path, &options, out, e);
    progress_clear(progress);
    return err;
}

void input_say_notes(const char *path, const struct frag_trace *t)
{
    for (uint32_t i = 0; i < t->note_count; i++)
        fprintf(stderr, "%s: %s\n", path, t->notes[i]);
}

static enum frag_err no_device(const struct frag_trace *t, uint64_t wanted,
                               struct frag_error *e)
{
    return frag_fail(e, FRAG_INVALID, "%s: it has no device %" PRIu64, t->path,
                     wanted);
}

enum frag_err input_device(const struct frag_trace *t, uint64_t wanted,
                           const struct frag_device_trace **out,
                           struct frag_error *e)
{
    if (wanted == INPUT_ANY_DEVICE && t->device_count != 1)
        return frag_fail(e, FRAG_INVALID,
                         "%s: it has %" PRIu32 " devices; choose one with "
                         "--device",
                         t->path, t->device_count);
    for (uint32_t i = 0; i < t->device_count; i++)
        if (wanted == INPUT_ANY_DEVICE || t->devices[i].device == wanted) {
            *out = &t->devices[i];
            return FRAG_OK;
        }
    return no_device(t, wanted, e);
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
    return found ? FRAG_OK : no_device(t, wanted, e);
}

static enum frag_err visit_file(const struct inputs *in, const char *path,
                                input_visit *visit, void *user,
                                struct frag_error *e)
{
    struct frag_trace *trace;
    enum frag_err err = FRAG_NOMEM;
    char *name;

    FRAG_TRY(input_open(path, in->limit, in->progress, &trace, e));
    if (in->says_notes)
        input_say_notes(path, trace);
    name = cli_trace_name(path);
    if (name)
        err = input_each_device(trace, name, in->device, visit, user, e);
    progress_clear(in->progress);
    free(name);
    frag_trace_close(trace);
    return err;
}

enum frag_err inputs_each(const struct inputs *in, input_visit *visit,
                          void *user, struct frag_error *e)
{
    for (size_t i = 0; i < in->paths->count; i++)
        FRAG_TRY(visit_file(in, in->paths->items[i], visit, user, e));
    return FRAG_OK;
}
