/* reading.c - opens a trace, and completes it or says how far it reaches;
 * then edits it. */
#include "sim/experiments/reading.h"

#include <string.h>

#include "sim/experiments/found.h"
#include "sim/experiments/recording.h"
#include "sim/experiments/release.h"
#include "sim/validate/stats_file.h"
#include "traces/storage.h"

static enum frag_err treat(const struct trace_reading *reading,
                           struct frag_trace *t, struct frag_error *e)
{
    struct frag_completion *devices =
        storage_array(t, t->device_count, sizeof(*devices));
    struct frag_completion_options options = reading->completion;
    struct recording *known = t->known;
    enum frag_err err;

    if (!devices)
        return frag_no_memory(e, "the devices of %s", t->path);
    options.only_reach = reading->kind == READING_RECORDED;
    err = frag_trace_complete(t, &options, devices, e);
    for (uint32_t i = 0; i < t->device_count; i++)
        known[i].completion = devices[i];
    return err;
}

/* Keeps what the trace `from' shows, or is known of it; how far it reaches is
 * found later. */
static enum frag_err keep_known(const struct frag_trace *from,
                                struct frag_trace *to, struct frag_error *e)
{
    struct recording *known =
        storage_array(to, to->device_count, sizeof(*known));

    if (!known)
        return frag_no_memory(e, "the devices of %s", to->path);
    for (uint32_t i = 0; i < to->device_count; i++) {
        known[i] = recording_of(from, &to->devices[i]);
        known[i].completion = (struct frag_completion){0};
    }
    to->known = known;
    return FRAG_OK;
}

/* Replaces the trace by its edited form. On error *t is unchanged. */
static enum frag_err edit(const struct trace_reading *reading,
                          struct frag_trace **t, struct frag_error *e)
{
    struct frag_trace *edited;
    enum frag_err err;

    FRAG_TRY(frag_edits_apply(reading->edits, *t, &edited, e));
    edited->limit = (*t)->limit;
    err = keep_known(*t, edited, e);
    frag_trace_close(err == FRAG_OK ? *t : edited);
    *t = err == FRAG_OK ? edited : *t;
    return err;
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

enum frag_err reading_open(const struct trace_reading *reading,
                           const char *path, frag_progress *progress,
                           void *user, struct frag_trace **out,
                           struct frag_error *e)
{
    struct frag_read_options options = {
        .progress = progress, .user = user, .threads = reading->threads};
    struct frag_error note;
    struct frag_trace *t;
    enum frag_err err;

    FRAG_TRY(find_limit(reading, path, &options.limit, &note, e));
    FRAG_TRY(frag_trace_open(path, &options, &t, e));
    t->limit = options.limit;
    err = reading->holds_alone ? FRAG_OK : found_changes(path, &options, &t, e);
    FRAG_THEN(err, keep_known(t, t, e));
    if (err == FRAG_OK && *note.text)
        err = frag_trace_note(t, note.text, e);
    FRAG_THEN(err, note_unknown(t, e));
    if (reading->kind != READING_RAW)
        FRAG_THEN(err, treat(reading, t, e));
    if (reading->edits)
        FRAG_THEN(err, edit(reading, &t, e));
    if (err == FRAG_OK)
        *out = t;
    else
        frag_trace_close(t);
    return err;
}
