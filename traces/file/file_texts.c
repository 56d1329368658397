/* file_texts.c - reads the strings, notes and stacks of a trace file. */
#include <stdio.h>

#include "traces/file/file_parts.h"
#include "traces/file/guard.h"

static enum frag_err point_at_texts(const struct trace_reader *r,
                                    const char *where, const char *text,
                                    uint64_t size, const uint64_t *first,
                                    uint64_t count, const char *const **out)
{
    const char **texts = storage_array(r->trace, count, sizeof(*texts));

    if (!texts)
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < count; i++) {
        if (first[i] >= first[i + 1] || first[i + 1] > size ||
            text[first[i + 1] - 1])
            return trace_expected(r, where, "first",
                                  "ascending rows, each text ended by a 0");
        texts[i] = text + first[i];
    }
    *out = texts;
    return FRAG_OK;
}

/* Reads the rows of a group of the root, and where its items begin in them:
 * *count items, and one row of *first more. A group that is absent has no
 * items; then *first is NULL. */
static enum frag_err read_items(const struct trace_reader *r, const char *name,
                                const char *where, bool is_text,
                                const void **rows, uint64_t *row_count,
                                const void **first, uint32_t *count)
{
    uint64_t found;
    enum frag_err err;
    hid_t at;

    *first = NULL;
    if (!hdf5_has(r->file, name))
        return FRAG_OK;
    at = hdf5_group(r->fault, r->file, name);
    if (at < 0)
        return trace_expected(r, "/", name, "a group");
    err = is_text
              ? trace_read_column(r, at, where, &trace_text, rows, row_count)
              : trace_read_table(r, at, where, &trace_frames, rows, row_count);
    if (err == FRAG_OK)
        err = trace_read_column(r, at, where, &trace_first, first, &found);
    H5Gclose(at);
    FRAG_TRY(err);
    if (!found || found > UINT32_MAX)
        return trace_expected(r, where, "first", "1 to 2^32 - 1 rows");
    *count = (uint32_t)(found - 1);
    return FRAG_OK;
}

enum frag_err trace_read_texts(const struct trace_reader *r, const char *name,
                               const char *const **out, uint32_t *count)
{
    const void *text, *first;
    uint64_t size;
    char where[32];

    snprintf(where, sizeof(where), "/%s/", name);
    FRAG_TRY(read_items(r, name, where, true, &text, &size, &first, count));
    return first ? point_at_texts(r, where, text, size, first, *count, out)
                 : FRAG_OK;
}

enum frag_err trace_read_stacks(const struct trace_reader *r)
{
    struct frag_trace *t = r->trace;
    const void *frames, *first;
    uint64_t frame_count;

    FRAG_TRY(read_items(r, "stacks", "/stacks/", false, &frames, &frame_count,
                        &first, &t->stack_count));
    if (!first)
        return FRAG_OK;
    t->frames = frames;
    t->stack_first = first;
    if (t->stack_first[t->stack_count] > frame_count)
        return trace_expected(r, "/stacks/", "first", "rows of frames");
    return FRAG_OK;
}
