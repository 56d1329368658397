/* record_changes.c - the changes of settings in a recorder log. They are those
 * of PyTorch's allocator, whose segments are among the requests. */
#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"
#include "traces/import/record/import_record.h"

enum { FRAMES = 64 }; /* of a stack, at most */

enum frag_err log_text(struct log_reader *r, const struct record_call *call)
{
    const size_t part = strnlen(call->name, sizeof(call->name));

    if (!part || part == sizeof(call->name))
        return log_wrong(r, "a part of a text", (uint8_t)call->name[0]);
    if (!GROW(r->text, r->text_room, r->text_length + part + 1))
        return FRAG_NOMEM;
    memcpy(r->text + r->text_length, call->name, part + 1);
    r->text_length += part;
    return FRAG_OK;
}

static uint32_t store(struct log_reader *r, const char *text)
{
    return frag_build_string(r->build, text ? text : "",
                             text ? strlen(text) : 0);
}

/* The stack of the lines, each with a line number, a function and a file. */
static uint32_t stack_of(struct log_reader *r, char *lines)
{
    struct frag_frame frames[FRAMES];
    uint32_t count = 0;
    char *line;

    while (count < FRAMES && (line = strsep(&lines, "\n"))) {
        struct frag_frame *f = &frames[count++];

        f->line = (uint32_t)strtoul(line, NULL, 10);
        strsep(&line, "\t");
        f->function = store(r, strsep(&line, "\t"));
        f->file = store(r, line);
        if (f->function == UINT32_MAX || f->file == UINT32_MAX)
            return UINT32_MAX;
    }
    return count ? frag_build_stack(r->build, frames, count) : 0;
}

enum frag_err log_change(struct log_reader *r, const struct record_call *call)
{
    const bool sets = call->device == RECORD_NO_DEVICE;
    char *rest = r->text_length ? r->text : NULL;
    struct log_change c = {
        .device = call->device,
        .x = {.kind = sets ? FRAG_CHANGE_SETTINGS : FRAG_CHANGE_LIMIT,
              .limit = sets ? 0 : call->bytes,
              .time = call->time},
    };

    r->text_length = 0;
    c.x.text = store(r, strsep(&rest, "\n"));
    c.x.stack = stack_of(r, rest);
    if (c.x.text == UINT32_MAX || c.x.stack == UINT32_MAX ||
        !GROW(r->change, r->change_room, r->change_count + 1))
        return FRAG_NOMEM;
    r->change[r->change_count++] = c;
    return FRAG_OK;
}

enum frag_err log_changes(const struct log_reader *r)
{
    static const struct frag_recorded_settings unknown;

    for (uint64_t i = 0; i < r->change_count; i++)
        for (int32_t at = 0; at < DEVICES; at++) {
            const struct log_change *c = &r->change[i];

            if (r->is_used[at] && (c->device < 0 || c->device == at))
                FRAG_TRY(frag_build_change(r->build, (uint32_t)at, &c->x,
                                           &unknown, UINT64_MAX, r->e));
        }
    return FRAG_OK;
}
