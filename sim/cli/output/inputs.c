/* inputs.c - opens traces with a progress bar and visits their devices. */
#include "sim/cli/output/inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/cli/cli.h"
#include "sim/export/notes.h"
#include "traces/import/missing.h"
#include "traces/name.h"
#include "traces/printable.h"

/* Returns INVALID if the name that no file has is an option's value. */
static enum frag_err check_meaning(const char *path, struct frag_error *e)
{
    char name[64];
    frag_size size;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, ":@"), path);
    if (frag_policy_find(name))
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a trace, found the name of a policy; a "
                         "policy follows -p: -p %s",
                         path, path);
    if (frag_size_parse(path, &size) == FRAG_OK)
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a trace, found a size; a capacity "
                         "follows -c: -c %s",
                         path, path);
    return FRAG_OK;
}

enum frag_err input_check_name(const char *path, struct frag_error *e)
{
    if (!missing_exists(path))
        FRAG_TRY(check_meaning(path, e));
    return missing_check(path, e);
}

/* Finds all wrong names before the first trace is read, which may take long. */
static enum frag_err check_names(const struct texts *paths,
                                 struct frag_error *e)
{
    size_t stdins = 0;

    for (size_t i = 0; i < paths->count; i++) {
        FRAG_TRY(input_check_name(paths->items[i], e));
        stdins += !strcmp(paths->items[i], "-");
    }
    return stdins <= 1 ? FRAG_OK
                       : frag_fail(e, FRAG_INVALID,
                                   "-: expected stdin once, found it %zu times",
                                   stdins);
}

enum frag_err input_open(const char *path, const struct trace_reading *reading,
                         struct progress *progress, struct frag_trace **out,
                         struct frag_error *e)
{
    enum frag_err err;

    FRAG_TRY(input_check_name(path, e));
    progress_step(progress, 0, 0, "B", 1, path);
    err = reading_open(reading, path, progress_tick, progress, out, e);
    progress_clear(progress);
    return err;
}

void input_say_start(const char *path, const struct frag_device_trace *d)
{
    const char *note = export_start_note(d);

    if (note)
        printable_line(stderr, "%s: device %" PRIu32 ": the figure: %s", path,
                       d->device, note);
}

void input_say_notes(const char *path, const struct frag_trace *t)
{
    for (uint32_t i = 0; i < t->note_count; i++)
        printable_line(stderr, "%s: %s", path, t->notes[i]);
}

void input_say_cells(const struct noted_list *notes)
{
    char text[NOTED_TEXT];

    for (size_t i = 0; i < notes->count; i++)
        printable_line(stderr, "%s: %s", notes->items[i].trace,
                       noted_text(&notes->items[i], text));
}

static enum frag_err visit_file(const struct inputs *in, const char *path,
                                input_visit *visit, void *user,
                                struct frag_error *e)
{
    struct frag_trace *trace;
    enum frag_err err = FRAG_NOMEM;
    char *name;

    FRAG_TRY(input_open(path, &in->reading, in->progress, &trace, e));
    if (in->says_notes)
        input_say_notes(path, trace);
    name = frag_trace_name(path);
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
    FRAG_TRY(check_names(in->paths, e));
    for (size_t i = 0; i < in->paths->count; i++)
        FRAG_TRY(visit_file(in, in->paths->items[i], visit, user, e));
    return FRAG_OK;
}
