/* entries.c - makes the header of a trace, and converts a run to the bytes of a
 * journal entry and back. */
#include "sim/experiments/sweep/entries.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/devices.h"
#include "sim/experiments/recording.h"
#include "sim/experiments/sweep/pack.h"
#include "traces/name.h"

/* -- making a header ----------------------------------------------------- */

void trace_header_free(struct trace_header *s)
{
    free(s->texts);
    free(s->devices);
    *s = (struct trace_header){0};
}

static size_t room_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Copies the text to *to, and moves *to behind the copy. */
static const char *keep(char **to, const char *text)
{
    char *mine = *to;

    if (!text)
        return NULL;
    *to = stpcpy(mine, text) + 1;
    return mine;
}

/* Copies all texts of the trace, which are borrowed, to one block of host
 * memory. */
static bool own_texts(struct trace_header *s)
{
    struct frag_trace_identity *t = &s->trace;
    const char **const single[] = {&t->name, &t->path, &t->format,
                                   &t->settings};
    const size_t singles = sizeof(single) / sizeof(*single);
    size_t room = (t->note_count + 1) * sizeof(char *);
    const char **notes;
    char *at;

    for (size_t i = 0; i < singles; i++)
        room += room_of(*single[i]);
    for (uint32_t i = 0; i < t->note_count; i++)
        room += room_of(t->notes[i]);
    notes = s->texts = malloc(room);
    if (!notes)
        return false;
    at = (char *)(notes + t->note_count);
    for (size_t i = 0; i < singles; i++)
        *single[i] = keep(&at, *single[i]);
    for (uint32_t i = 0; i < t->note_count; i++)
        notes[i] = keep(&at, t->notes[i]);
    t->notes = notes;
    return true;
}

/* Allocates the devices; false if the host has no memory. */
static bool has_devices(struct trace_header *s, uint32_t count)
{
    s->device_count = count;
    s->devices = calloc((size_t)count + 1, sizeof(*s->devices));
    return s->devices;
}

static enum frag_err copy_devices(struct trace_header *s,
                                  const struct frag_trace *t)
{
    if (!has_devices(s, t->device_count))
        return FRAG_NOMEM;
    for (uint32_t i = 0; i < t->device_count; i++) {
        const struct frag_device_trace *d = &t->devices[i];

        s->devices[i] = (struct trace_header_device){
            d->device,
            d->count,
            input_replays(&(const struct input){t, d, NULL}, INPUT_ANY_DEVICE),
            {0}};
        FRAG_TRY(recording_facts(t, d, &s->devices[i].facts, NULL));
    }
    return FRAG_OK;
}

enum frag_err trace_header_make(const struct frag_trace *t,
                                const char *file_sha256,
                                struct trace_header *out, struct frag_error *e)
{
    char *name = frag_trace_name(t->path);
    struct trace_header s = {.trace = frag_trace_identify(t, NULL, name)};
    const bool done = name && own_texts(&s) && copy_devices(&s, t) == FRAG_OK;

    free(name);
    snprintf(s.file_sha256, sizeof(s.file_sha256), "%s", file_sha256);
    if (done) {
        *out = s;
        return FRAG_OK;
    }
    trace_header_free(&s);
    return frag_no_memory(e, "the facts of %s", t->path);
}

/* -- to bytes and back --------------------------------------------------- */

/* These structs have no padding, so that every byte of an entry is set. */
static_assert(sizeof(struct frag_oom) == 17 * sizeof(uint64_t),
              "an OOM has padding");
static_assert(sizeof(struct frag_point) == 13 * sizeof(uint64_t),
              "a point has padding");
static_assert(sizeof(struct frag_segment_row) == 5 * sizeof(uint64_t),
              "a segment's row has padding");

static void unpack_cell_notes(struct unpack *u, struct cell_notes *notes)
{
    const uint64_t count = unpack_number(u);

    notes->count = 0;
    u->failed = u->failed || count > CELL_NOTES;
    for (uint64_t i = 0; !u->failed && i < count; i++) {
        const char *text = unpack_text(u);

        u->failed = !text || strlen(text) >= sizeof(notes->texts[i]);
        if (!u->failed)
            snprintf(notes->texts[notes->count++], sizeof(notes->texts[i]),
                     "%s", text);
    }
}

void *run_pack(const char *key, frag_size total, const struct cell_notes *notes,
               const struct frag_run *run, size_t *size)
{
    struct pack p = {.bytes = NULL};

    pack_text(&p, key);
    pack_number(&p, total);
    pack_number(&p, notes->count);
    for (size_t i = 0; i < notes->count; i++)
        pack_text(&p, notes->texts[i]);
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
                         struct cell_notes *notes, struct frag_run *out)
{
    struct unpack u = unpack_from(bytes, size);
    struct frag_run run = {.oom_count = 0};
    bool no_memory = false;
    const char *params;

    (void)unpack_text(&u);
    *total = unpack_number(&u);
    unpack_cell_notes(&u, notes);
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
    run.params = params ? strdup(params) : NULL;
    no_memory |= params && !run.params;
    if (!no_memory && unpack_done(&u) && params) {
        *out = run;
        return FRAG_OK;
    }
    frag_run_free(&run);
    return no_memory ? FRAG_NOMEM : FRAG_CORRUPT;
}
