#include "sim/experiments/sweep/subject.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/experiments/sweep/pack.h"
#include "traces/facts.h"

/* -- making one ---------------------------------------------------------- */

void subject_free(struct subject *s)
{
    struct frag_trace *t = &s->trace;
    char **notes;

    memcpy(&notes, &t->notes, sizeof(notes)); /* ours, const to all others */
    for (uint32_t i = 0; notes && i < t->note_count; i++)
        free(notes[i]);
    free(notes);
    free(t->path);
    memcpy(&notes, &t->format, sizeof(notes));
    free(notes);
    free(t->settings);
    free(t->devices);
    free(s->name);
    free(s->peak_requested);
    *s = (struct subject){0};
}

/* A copy; *good becomes false if there is no memory for it. */
static char *copy(const char *text, bool *good)
{
    char *mine = text ? strdup(text) : NULL;

    *good = *good && (mine || !text);
    return mine;
}

static void copy_notes(struct subject *s, const struct frag_trace *t,
                       bool *good)
{
    char **notes = calloc((size_t)t->note_count + 1, sizeof(*notes));

    memcpy(&s->trace.notes, &notes, sizeof(notes));
    *good = *good && notes;
    s->trace.note_count = notes ? t->note_count : 0;
    for (uint32_t i = 0; i < s->trace.note_count; i++)
        notes[i] = copy(t->notes[i], good);
}

/* Room for the devices. */
static bool has_devices(struct subject *s, uint32_t count)
{
    s->trace.device_count = count;
    s->trace.devices = calloc((size_t)count + 1, sizeof(*s->trace.devices));
    s->peak_requested = calloc((size_t)count + 1, sizeof(*s->peak_requested));
    return s->trace.devices && s->peak_requested;
}

static enum frag_err copy_devices(struct subject *s, const struct frag_trace *t)
{
    struct facts facts;

    if (!has_devices(s, t->device_count))
        return FRAG_NOMEM;
    for (uint32_t i = 0; i < t->device_count; i++) {
        FRAG_TRY(facts_gather(&t->devices[i], &facts));
        s->trace.devices[i].device = t->devices[i].device;
        s->trace.devices[i].count = t->devices[i].count;
        s->peak_requested[i] = facts.peak_requested;
    }
    return FRAG_OK;
}

enum frag_err subject_make(const struct frag_trace *t, const char *file_sha256,
                           struct subject *out, struct frag_error *e)
{
    bool good = true;
    struct subject s = {
        .name = cli_trace_name(t->path),
        .trace = {.path = copy(t->path, &good),
                  .format = copy(t->format, &good),
                  .settings = copy(t->settings, &good),
                  .file_bytes = t->file_bytes},
    };

    snprintf(s.file_sha256, sizeof(s.file_sha256), "%s", file_sha256);
    memcpy(s.trace.sha256, t->sha256, sizeof(t->sha256));
    copy_notes(&s, t, &good);
    if (good && s.name && copy_devices(&s, t) == FRAG_OK) {
        *out = s;
        return FRAG_OK;
    }
    subject_free(&s);
    return frag_fail(e, FRAG_NOMEM, "%s: no memory for what is known of it",
                     t->path);
}

/* -- to bytes and back --------------------------------------------------- */

void *subject_pack(const struct subject *s, size_t *size)
{
    const struct frag_trace *t = &s->trace;
    struct pack p = {.bytes = NULL};

    pack_text(&p, s->file_sha256);
    pack_text(&p, s->name);
    pack_text(&p, t->path);
    pack_text(&p, t->format);
    pack_text(&p, t->sha256);
    pack_text(&p, t->settings);
    pack_number(&p, t->file_bytes);
    pack_number(&p, t->note_count);
    for (uint32_t i = 0; i < t->note_count; i++)
        pack_text(&p, t->notes[i]);
    pack_number(&p, t->device_count);
    for (uint32_t i = 0; i < t->device_count; i++) {
        pack_number(&p, t->devices[i].device);
        pack_number(&p, t->devices[i].count);
        pack_number(&p, s->peak_requested[i]);
    }
    return pack_done(&p, size);
}

static void unpack_sha256(struct unpack *u, char hex[65])
{
    const char *text = unpack_text(u);

    if (!text || strlen(text) > 64)
        u->failed = true;
    else
        snprintf(hex, 65, "%s", text);
}

/* A count of things that take at least `least` bytes each. */
static uint32_t unpack_count(struct unpack *u, size_t least)
{
    uint64_t n = unpack_number(u);

    if (n > UINT32_MAX - 1 || n > (uint64_t)(u->end - u->at) / least)
        u->failed = true;
    return u->failed ? 0 : (uint32_t)n;
}

static void unpack_devices(struct unpack *u, struct subject *s, bool *good)
{
    uint32_t count = unpack_count(u, 3 * sizeof(uint64_t));

    if (!has_devices(s, count)) {
        *good = false;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        s->trace.devices[i].device = (uint32_t)unpack_number(u);
        s->trace.devices[i].count = unpack_number(u);
        s->peak_requested[i] = unpack_number(u);
    }
}

static void unpack_notes(struct unpack *u, struct subject *s, bool *good)
{
    struct frag_trace found = {.note_count = unpack_count(u, sizeof(uint64_t))};
    const char **texts = calloc((size_t)found.note_count + 1, sizeof(*texts));

    *good = *good && texts;
    for (uint32_t i = 0; texts && i < found.note_count; i++) {
        texts[i] = unpack_text(u);
        u->failed = u->failed || !texts[i];
    }
    found.notes = texts;
    if (texts && !u->failed)
        copy_notes(s, &found, good);
    free(texts);
}

enum frag_err subject_unpack(const void *bytes, size_t size,
                             struct subject *out)
{
    struct unpack u = unpack_from(bytes, size);
    struct subject s = {.name = NULL};
    bool good = true;

    unpack_sha256(&u, s.file_sha256);
    s.name = copy(unpack_text(&u), &good);
    s.trace.path = copy(unpack_text(&u), &good);
    s.trace.format = copy(unpack_text(&u), &good);
    unpack_sha256(&u, s.trace.sha256);
    s.trace.settings = copy(unpack_text(&u), &good);
    s.trace.file_bytes = unpack_number(&u);
    unpack_notes(&u, &s, &good);
    unpack_devices(&u, &s, &good);
    if (good && unpack_done(&u) && s.name && s.trace.path && s.trace.format) {
        *out = s;
        return FRAG_OK;
    }
    subject_free(&s);
    return good ? FRAG_CORRUPT : FRAG_NOMEM;
}

/* Without padding, so that every byte of a record is set. */
static_assert(sizeof(struct frag_oom) == 17 * sizeof(uint64_t),
              "an OOM has a hole");
static_assert(sizeof(struct frag_point) == 13 * sizeof(uint64_t),
              "a point has a hole");
static_assert(sizeof(struct frag_segment_row) == 5 * sizeof(uint64_t),
              "a segment's row has a hole");

void *run_pack(const char *key, frag_size total, const struct frag_run *run,
               size_t *size)
{
    struct pack p = {.bytes = NULL};

    pack_text(&p, key);
    pack_number(&p, total);
    pack_text(&p, run->params);
    pack_raw(&p, &run->summary, sizeof(run->summary));
    pack_number(&p, run->oom_count);
    pack_raw(&p, run->ooms, run->oom_count * sizeof(*run->ooms));
    pack_number(&p, run->point_count);
    pack_raw(&p, run->points, run->point_count * sizeof(*run->points));
    pack_number(&p, run->segment_count);
    pack_raw(&p, run->segments, run->segment_count * sizeof(*run->segments));
    return pack_done(&p, size);
}

const char *run_key(const void *bytes, size_t size)
{
    struct unpack u = unpack_from(bytes, size);

    return unpack_text(&u);
}

enum frag_err run_unpack(const void *bytes, size_t size, frag_size *total,
                         struct frag_run *out)
{
    struct unpack u = unpack_from(bytes, size);
    struct frag_run run = {.oom_count = 0};
    bool no_memory = false;
    const char *params;

    (void)unpack_text(&u);
    *total = unpack_number(&u);
    params = unpack_text(&u);
    unpack_raw(&u, &run.summary, sizeof(run.summary));
    run.oom_count = unpack_number(&u);
    run.ooms = unpack_items(&u, run.oom_count, sizeof(*run.ooms), &no_memory);
    run.point_count = unpack_number(&u);
    run.points =
        unpack_items(&u, run.point_count, sizeof(*run.points), &no_memory);
    run.segment_count = unpack_number(&u);
    run.segments =
        unpack_items(&u, run.segment_count, sizeof(*run.segments), &no_memory);
    if (!no_memory && unpack_done(&u) && params &&
        strlen(params) < sizeof(run.params)) {
        snprintf(run.params, sizeof(run.params), "%s", params);
        *out = run;
        return FRAG_OK;
    }
    frag_run_free(&run);
    return no_memory ? FRAG_NOMEM : FRAG_CORRUPT;
}
