/* reading.c - opens a trace, and completes it or says how far it reaches;
 * then edits it. */
#include "sim/experiments/reading.h"

#include <stdlib.h>
#include <string.h>

#include "sim/experiments/recording.h"
#include "sim/experiments/release.h"
#include "sim/validate/stats_file.h"

static enum frag_err treat(const struct trace_reading *reading,
                           struct frag_trace *t, struct frag_error *e)
{
    struct frag_completion *devices =
        calloc(t->device_count + 1, sizeof(*devices));
    enum frag_err err;

    if (!devices)
        return frag_no_memory(e, "the devices of %s", t->path);
    err = reading->kind == READING_COMPLETED
              ? frag_trace_complete(t, &reading->completion, devices, e)
              : frag_trace_reach(t, reading->completion.mark, devices, e);
    free(devices);
    return err;
}

static enum frag_err open_other(void *user, const char *path,
                                struct frag_trace **out, struct frag_error *e)
{
    struct trace_reading reading = *(const struct trace_reading *)user;

    reading.edits = NULL;
    return reading_open(&reading, path, NULL, NULL, out, e);
}

/* A completed or edited trace has no OOMs that would show it. */
static void find_bounds(struct frag_trace *t)
{
    for (uint32_t i = 0; i < t->device_count; i++)
        t->devices[i].bound = recording_find_bound(t, &t->devices[i]).bound;
}

/* Copies what the edited trace does not show. */
static void keep_bounds(const struct frag_trace *from, struct frag_trace *to)
{
    to->limit = from->limit;
    for (uint32_t i = 0; i < to->device_count; i++) {
        const struct frag_device_trace *d =
            frag_trace_device(from, to->devices[i].device);

        if (d)
            to->devices[i].bound = d->bound;
    }
}

/* Replaces the trace by its edited form. On error *t is unchanged. */
static enum frag_err edit(const struct trace_reading *reading,
                          struct frag_trace **t, struct frag_error *e)
{
    struct trace_reading copy = *reading;
    const struct frag_edit_files files = {open_other, &copy};
    struct frag_trace *edited;

    FRAG_TRY(frag_edits_apply(reading->edits, *t, &files, &edited, e));
    keep_bounds(*t, edited);
    frag_trace_close(*t);
    *t = edited;
    return FRAG_OK;
}

/* Sets *limit to the limit of the recorded process, or to 0, and the note about
 * a file that does not hold counters, which states no limit. */
static enum frag_err find_limit(const struct trace_reading *reading,
                                const char *path, frag_size *limit,
                                struct frag_error *note, struct frag_error *e)
{
    struct frag_stats_file *file;

    FRAG_TRY(frag_stats_file_find(path, &file, note, e));
    *limit = reading->limit;
    if (!*limit && file && !reading->ignores_file)
        *limit = frag_stats_file_limit(file);
    frag_stats_file_close(file);
    return FRAG_OK;
}

/* Adds a note about what is not known, unless a file of fragsim has it already.
 */
static enum frag_err note_unknown(struct frag_trace *t, struct frag_error *e)
{
    char text[RELEASE_NOTE];

    release_unknown(t, text);
    for (uint32_t i = 0; i < t->note_count; i++)
        if (!strcmp(t->notes[i], text))
            return FRAG_OK;
    return *text ? frag_trace_note(t, text, e) : FRAG_OK;
}

enum frag_err reading_treat(const struct trace_reading *reading,
                            struct frag_trace **t, struct frag_error *e)
{
    if (reading->kind != READING_RAW)
        FRAG_TRY(treat(reading, *t, e));
    return reading->edits ? edit(reading, t, e) : FRAG_OK;
}

enum frag_err reading_open(const struct trace_reading *reading,
                           const char *path, frag_progress *progress,
                           void *user, struct frag_trace **out,
                           struct frag_error *e)
{
    struct frag_read_options options = {.progress = progress,
                                        .user = user,
                                        .threads = reading->threads,
                                        .windows = reading->windows};
    struct frag_error note;
    enum frag_err err = FRAG_OK;
    struct frag_trace *t;

    FRAG_TRY(find_limit(reading, path, &options.limit, &note, e));
    FRAG_TRY(frag_trace_open(path, &options, &t, e));
    t->limit = options.limit;
    find_bounds(t);
    if (*note.text)
        err = frag_trace_note(t, note.text, e);
    if (err == FRAG_OK)
        err = note_unknown(t, e);
    if (err == FRAG_OK)
        err = reading_treat(reading, &t, e);
    if (err == FRAG_OK)
        *out = t;
    else
        frag_trace_close(t);
    return err;
}
