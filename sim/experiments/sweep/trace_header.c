/* trace_header.c - makes the header of a trace. */
#include "sim/experiments/sweep/trace_header.h"

#include <stdlib.h>
#include <string.h>

#include "sim/experiments/devices.h"
#include "sim/experiments/recording.h"

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
    const char **const single[] = {&t->format, &t->settings};
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

static enum frag_err copy_devices(struct trace_header *s,
                                  const struct frag_trace *t)
{
    s->device_count = t->device_count;
    s->devices = calloc((size_t)t->device_count + 1, sizeof(*s->devices));
    if (!s->devices)
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
    struct trace_header s = {.trace = frag_trace_identify(t, NULL, NULL)};
    const bool done = own_texts(&s) && copy_devices(&s, t) == FRAG_OK;

    snprintf(s.file_sha256, sizeof(s.file_sha256), "%s", file_sha256);
    if (done) {
        *out = s;
        return FRAG_OK;
    }
    trace_header_free(&s);
    return frag_no_memory(e, "the facts of %s", t->path);
}
