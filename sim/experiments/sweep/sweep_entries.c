/* sweep_entries.c - makes the header of a trace, and converts a run to the
 * bytes of a journal entry and back. */
#include "sim/experiments/sweep/sweep_entries.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/devices.h"
#include "sim/experiments/recording.h"
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

/* -- to bytes and back: values in the byte order of the machine ---------- */

static void pack_number(FILE *out, uint64_t n)
{
    fwrite(&n, sizeof(n), 1, out);
}

static void pack_text(FILE *out, const char *text)
{
    const size_t n = text ? strlen(text) + 1 : 0;

    pack_number(out, n);
    if (n)
        fwrite(text, 1, n, out);
}

static void pack_items(FILE *out, const void *items, uint64_t count,
                       size_t item)
{
    pack_number(out, count);
    if (count)
        fwrite(items, item, count, out);
}

/* Bytes that are read. */
struct unpack {
    const char *at, *end;
    bool failed; /* an item was missing or malformed */
};

static struct unpack unpack_from(const void *bytes, size_t size)
{
    return (struct unpack){bytes, (const char *)bytes + size, false};
}

/* The next bytes; NULL if there are fewer. */
static const char *consume(struct unpack *u, uint64_t size)
{
    const char *at = u->at;

    if (u->failed || size > (uint64_t)(u->end - u->at)) {
        u->failed = true;
        return NULL;
    }
    u->at += size;
    return at;
}

static void unpack_raw(struct unpack *u, void *out, size_t size)
{
    const char *at = consume(u, size);

    if (at)
        memcpy(out, at, size);
}

static uint64_t unpack_number(struct unpack *u)
{
    uint64_t n = 0;

    unpack_raw(u, &n, sizeof(n));
    return n;
}

/* A pointer into the bytes; NULL if NULL was packed, or on failure: a text ends
 * with a 0. */
static const char *unpack_text(struct unpack *u)
{
    uint64_t n = unpack_number(u);
    const char *text = consume(u, n);

    if (!text || !n)
        return NULL;
    if (memchr(text, '\0', n) == text + n - 1)
        return text;
    u->failed = true;
    return NULL;
}

/* A copy of `count` items, which the caller frees, also if count is 0. NULL if
 * the items are missing, or if the host has no memory (*no_memory). */
static void *unpack_items(struct unpack *u, uint64_t count, size_t item,
                          bool *no_memory)
{
    const char *at = NULL;
    void *items;

    if (count <= SIZE_MAX / item)
        at = consume(u, count * item);
    if (!at) {
        u->failed = true;
        return NULL;
    }
    items = malloc(count * item + 1);
    if (!items)
        *no_memory = true;
    else
        memcpy(items, at, count * item);
    return items;
}

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
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, size);
    bool fine;

    if (!out)
        return NULL;
    pack_text(out, key);
    pack_number(out, total);
    pack_number(out, notes->count);
    for (size_t i = 0; i < notes->count; i++)
        pack_text(out, notes->texts[i]);
    pack_text(out, run->params);
    fwrite(&run->summary, sizeof(run->summary), 1, out);
    pack_items(out, run->ooms, run->oom_count, sizeof(*run->ooms));
    pack_items(out, run->points, run->point_count, sizeof(*run->points));
    pack_items(out, run->segments, run->segment_count, sizeof(*run->segments));
    fine = !ferror(out);
    if (fclose(out) == 0 && fine)
        return bytes;
    free(bytes);
    return NULL;
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
    if (!no_memory && !u.failed && u.at == u.end && params) {
        *out = run;
        return FRAG_OK;
    }
    frag_run_free(&run);
    return no_memory ? FRAG_NOMEM : FRAG_CORRUPT;
}
