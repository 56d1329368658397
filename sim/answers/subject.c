/* subject.c - keeps the device, the trace and the notes of an answer. */
#include "sim/answers/subject.h"

#include <stdlib.h>
#include <string.h>

#include "traces/steps/complete.h"

static enum frag_err copy(const char *text, char **out, struct frag_error *e)
{
    *out = strdup(text);
    return *out ? FRAG_OK : frag_no_memory(e, "the texts of a trace");
}

enum frag_err subject_copy(const struct input *in, const char *policy,
                           struct subject *out, struct frag_error *e)
{
    const struct frag_trace *t = in->trace;

    *out = (struct subject){.device = in->device->device,
                            .died_at = frag_fatal_request(in->device)};
    FRAG_TRY(copy(in->name, &out->trace, e));
    FRAG_TRY(copy(t->path, &out->path, e));
    FRAG_TRY(copy(policy, &out->policy, e));
    out->notes = calloc((size_t)t->note_count + 1, sizeof(*out->notes));
    if (!out->notes)
        return frag_no_memory(e, "the notes of a trace");
    for (; out->note_count < t->note_count; out->note_count++)
        FRAG_TRY(
            copy(t->notes[out->note_count], &out->notes[out->note_count], e));
    return FRAG_OK;
}

void subject_free(struct subject *s)
{
    for (uint32_t i = 0; i < s->note_count; i++)
        free(s->notes[i]);
    free(s->notes);
    free(s->trace);
    free(s->path);
    free(s->policy);
    *s = (struct subject){.trace = NULL};
}

void subject_json(struct frag_json *j, const struct subject *s)
{
    frag_json_text(j, "trace", s->trace);
    frag_json_text(j, "path", s->path);
    frag_json_number(j, "device", s->device);
    frag_json_text(j, "policy", s->policy);
    frag_json_count(j, "died_at_event", s->died_at);
}

void subject_json_notes(struct frag_json *j, const struct subject *s)
{
    frag_json_texts(j, "notes", (const char *const *)s->notes, s->note_count);
}
