/* edit.c - reads a list of edits, applies them one after the other, and records
 * them in the notes of the result. */
#include "traces/edit/edit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "traces/edit/edit_parts.h"
#include "traces/grow.h"
#include "traces/storage.h"
#include "traces/text.h"
#include "traces/torch_sizes.h"

struct frag_edits {
    struct edit *items;
    uint64_t count, room;
    char *text; /* all edits */
};

/* ---- the list ---- */

static enum frag_err add(struct frag_edits *list, const char *text,
                         size_t length, struct frag_error *e)
{
    if (!GROW(list->items, list->room, list->count + 1))
        return frag_no_memory(e, "the edits");
    return edit_read(text, length, &list->items[list->count++], e);
}

static enum frag_err add_all(struct frag_edits *list, const char *text,
                             struct frag_error *e)
{
    for (;; text++) {
        size_t length;

        text += strspn(text, " ");
        length = strcspn(text, ";");
        FRAG_TRY(add(list, text, length, e));
        text += length;
        if (!*text)
            return FRAG_OK;
    }
}

/* Joins the texts of all edits by semicolons. */
static enum frag_err join_texts(struct frag_edits *list, struct frag_error *e)
{
    size_t size = 1;
    char *at;

    for (uint64_t i = 0; i < list->count; i++)
        size += strlen(list->items[i].text) + 1;
    list->text = calloc(size, 1);
    if (!list->text)
        return frag_no_memory(e, "the edits");
    at = list->text;
    for (uint64_t i = 0; i < list->count; i++)
        at += snprintf(at, size - (size_t)(at - list->text), "%s%s",
                       i ? ";" : "", list->items[i].text);
    return FRAG_OK;
}

enum frag_err frag_edits_read(const char *const *texts, size_t count,
                              struct frag_edits **out, struct frag_error *e)
{
    struct frag_edits *list = calloc(1, sizeof(*list));
    enum frag_err err = list ? FRAG_OK : frag_no_memory(e, "the edits");

    for (size_t i = 0; err == FRAG_OK && i < count; i++)
        err = add_all(list, texts[i], e);
    if (err == FRAG_OK)
        err = join_texts(list, e);
    if (err == FRAG_OK)
        *out = list;
    else
        frag_edits_free(list);
    return err;
}

void frag_edits_free(struct frag_edits *list)
{
    if (!list)
        return;
    for (uint64_t i = 0; i < list->count; i++) {
        free(list->items[i].text);
        free(list->items[i].storage);
    }
    free(list->items);
    free(list->text);
    free(list);
}

const char *frag_edits_text(const struct frag_edits *list)
{
    return list->text;
}

/* ---- notes ---- */

static bool has_answers(const struct frag_trace *t)
{
    for (uint32_t i = 0; i < t->device_count; i++)
        if (t->devices[i].recorded.addr || t->devices[i].recorded.has_actions ||
            t->devices[i].recorded.has_end)
            return true;
    return false;
}

static enum frag_err copy_notes(const struct making *m)
{
    enum frag_err err = FRAG_OK;

    for (uint32_t i = 0; err == FRAG_OK && i < m->trace->note_count; i++)
        err = frag_build_note(m->build, "%s", m->trace->notes[i]);
    if (err == FRAG_OK && has_answers(m->trace))
        err = frag_build_note(
            m->build,
            "the trace was edited, so the answers of the recorded allocator "
            "(segments, addresses, failed requests) were left out: they do not "
            "apply to other requests");
    return err;
}

static enum frag_err note_edit(const struct making *m)
{
    enum frag_err err = frag_build_note(
        m->build, "edit \"%.300s\": %s: %" PRIu64 " of %" PRIu64, m->edit->text,
        m->edit->kind->counted, m->changed, m->total);

    if (err == FRAG_OK && m->edit->kind->limit)
        err = frag_build_note(m->build, "edit \"%.300s\": %s", m->edit->text,
                              m->edit->kind->limit);
    if (err == FRAG_OK && m->loses_start)
        err = frag_build_note(
            m->build,
            "edit \"%.300s\": it changes the state at the start, so that a run "
            "begins with the live blocks alone; a run of the trace as it was "
            "begins with the recorded segments, so the two differ in more than "
            "the edit",
            m->edit->text);
    return err;
}

/* ---- one edit ---- */

static enum frag_err open_track(struct edit_track *t, struct making *m,
                                const struct frag_device_trace *d)
{
    *t = (struct edit_track){.making = m,
                             .has_time = d->time,
                             .has_stack = d->stack,
                             .recorded = FRAG_NEVER};
    FRAG_TRY(build_device(m->build, d->device, &t->d, m->error));
    t->d->has_time = t->has_time;
    t->d->has_stack = t->has_stack;
    t->d->has_pool_ids = t->d->has_marks = true;
    return FRAG_OK;
}

/* What the finished trace does not know of a device. */
struct ended {
    uint64_t added;   /* events that completed the trace */
    bool keeps_start; /* the start layout of the input */
};

static enum frag_err run_opened(struct edit_job *job,
                                const struct frag_device_trace *d,
                                struct ended *ended)
{
    struct edit_track *t = &job->track;
    uint32_t stream;

    FRAG_TRY(open_track(t, job->making, d));
    FRAG_TRY(source_open(&job->source, d, t));
    FRAG_TRY(job->edit->kind->run(job));
    if (!t->d->stream_count) /* without events, one stream remains */
        FRAG_TRY(build_stream(job->making->build, t->d, d->streams[0], &stream,
                              job->making->error));
    ended->keeps_start = start_stays(t, &job->source);
    job->making->loses_start |=
        d->recorded.start.segment_count && !ended->keeps_start;
    FRAG_TRY(track_finish(t, ended->keeps_start ? &job->source : NULL));
    if (t->recorded != FRAG_NEVER)
        ended->added = track_count(t) - t->recorded;
    return FRAG_OK;
}

static enum frag_err run_device(struct making *m,
                                const struct frag_device_trace *d,
                                struct ended *ended)
{
    struct edit_job job = {.making = m, .edit = m->edit};
    const enum frag_err err = run_opened(&job, d, ended);

    source_close(&job.source);
    return err;
}

static enum frag_err check_events(const struct making *m,
                                  const struct frag_trace *t)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < t->device_count; i++)
        count += t->devices[i].count;
    return count ? FRAG_OK
                 : edit_fail(m, "no event of %.100s remains", m->trace->path);
}

/* Whether a policy can follow them: without settings, they are not those of the
 * allocator that served the requests, unless the user added them. */
static bool can_follow(const struct frag_trace *in,
                       const struct frag_device_trace *d)
{
    bool edited = false;

    for (uint64_t i = 0; i < d->change_count; i++)
        edited |= d->changes[i].origin == FRAG_CHANGE_EDITED;
    return d->change_count && (in->settings || edited);
}

/* The settings have TORCH_FOLLOWS_KEY if there are changes to follow. */
static enum frag_err copy_settings(const struct frag_trace *in,
                                   struct frag_trace *t)
{
    static const char follows[] = TORCH_FOLLOWS_KEY ":True,";
    const char *given = in->settings ? in->settings : "";
    bool has_changes = false;
    char *text;

    for (uint32_t i = 0; i < t->device_count; i++)
        has_changes |= can_follow(in, &t->devices[i]);
    if (!in->settings && !has_changes)
        return FRAG_OK;
    if (!strncmp(given, follows, sizeof(follows) - 2))
        given += strcspn(given, ",") + (strchr(given, ',') != NULL);
    text = text_make("%.*s%s",
                     has_changes ? (int)sizeof(follows) - 1 - !*given : 0,
                     follows, given);
    t->settings = text ? storage_text(t, text, strlen(text)) : NULL;
    free(text);
    return t->settings ? FRAG_OK : FRAG_NOMEM;
}

/* Gives the trace what the builder does not know. */
static enum frag_err finish(const struct making *m, const struct ended *ended,
                            struct frag_trace *t)
{
    const struct frag_trace *in = m->trace;

    memcpy(t->sha256, in->sha256, sizeof(t->sha256));
    t->file_bytes = in->file_bytes;
    for (uint32_t i = 0; i < t->device_count; i++) {
        t->devices[i].added = ended[i].added;
        if (ended[i].keeps_start)
            FRAG_TRY(start_copy(&in->devices[i], &t->devices[i], t));
    }
    FRAG_TRY(copy_settings(in, t));
    if (in->releases)
        t->releases = storage_text(t, in->releases, strlen(in->releases));
    if (in->releases && !t->releases)
        return FRAG_NOMEM;
    storage_share_settings(t);
    return check_events(m, t);
}

static enum frag_err run_devices(struct making *m, struct ended *ended,
                                 struct frag_trace **out)
{
    enum frag_err err;

    FRAG_TRY(select_open(m));
    FRAG_TRY(copy_notes(m));
    for (uint32_t i = 0; i < m->trace->device_count; i++)
        FRAG_TRY(run_device(m, &m->trace->devices[i], &ended[i]));
    FRAG_TRY(note_edit(m));
    FRAG_TRY(frag_build_finish(m->build, NULL, out, m->error));
    err = finish(m, ended, *out);
    if (err != FRAG_OK)
        frag_trace_close(*out);
    return err;
}

static enum frag_err make_trace(struct making *m, struct frag_trace **out)
{
    struct ended *ended =
        calloc((size_t)m->trace->device_count + 1, sizeof(*ended));
    struct frag_trace *made = NULL;
    enum frag_err err = FRAG_NOMEM;

    m->build = frag_build_open(m->trace->path, m->trace->format);
    if (ended && m->build)
        err = run_devices(m, ended, &made);
    if (err == FRAG_OK)
        *out = made;
    if (err == FRAG_NOMEM)
        frag_no_memory(m->error, "the edited trace");
    free(ended);
    frag_build_close(m->build);
    select_close(m);
    return err;
}

enum frag_err frag_edits_apply(const struct frag_edits *list,
                               const struct frag_trace *trace,
                               struct frag_trace **out, struct frag_error *e)
{
    const struct frag_trace *in = trace;
    struct frag_trace *made = NULL;

    for (uint64_t i = 0; i < list->count; i++) {
        struct frag_trace *last = made;
        enum frag_err err = make_trace(
            &(struct making){.edit = &list->items[i], .trace = in, .error = e},
            &made);

        frag_trace_close(last);
        FRAG_TRY(err);
        in = made;
    }
    if (!made)
        return frag_fail(e, FRAG_INVALID, "expected an edit, found none");
    *out = made;
    return FRAG_OK;
}
