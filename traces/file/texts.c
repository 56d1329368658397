/* texts.c - reads the strings, notes and stacks of a trace file. */
#include <stdio.h>

#include "traces/file/guard.h"
#include "traces/file/trace_file.h"

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

enum frag_err trace_read_texts(const struct trace_reader *r, const char *name,
                               const char *const **out, uint32_t *count)
{
    hid_t at;
    char where[32];
    const void *text, *first;
    uint64_t size, rows;
    enum frag_err err;

    if (!hdf5_has(r->file, name))
        return FRAG_OK;
    at = hdf5_group(r->fault, r->file, name);
    if (at < 0)
        return trace_expected(r, "/", name, "a group");
    snprintf(where, sizeof(where), "/%s/", name);
    err = trace_read_column(r, at, where, &trace_text, &text, &size);
    if (err == FRAG_OK)
        err = trace_read_column(r, at, where, &trace_first, &first, &rows);
    H5Gclose(at);
    FRAG_TRY(err);
    if (!rows || rows > UINT32_MAX)
        return trace_expected(r, where, "first", "1 to 2^32 - 1 rows");
    FRAG_TRY(point_at_texts(r, where, text, size, first, rows - 1, out));
    *count = (uint32_t)(rows - 1);
    return FRAG_OK;
}

enum frag_err trace_read_stacks(const struct trace_reader *r)
{
    struct frag_trace *t = r->trace;
    const void *frames, *first;
    uint64_t frame_count, rows;
    enum frag_err err;
    hid_t at;

    if (!hdf5_has(r->file, "stacks"))
        return FRAG_OK;
    at = hdf5_group(r->fault, r->file, "stacks");
    if (at < 0)
        return trace_expected(r, "/", "stacks", "a group");
    err = trace_read_table(r, at, "/stacks/", &trace_frames, &frames,
                           &frame_count);
    if (err == FRAG_OK)
        err = trace_read_column(r, at, "/stacks/", &trace_first, &first, &rows);
    H5Gclose(at);
    FRAG_TRY(err);
    if (!rows || rows > UINT32_MAX)
        return trace_expected(r, "/stacks/", "first", "1 to 2^32 - 1 rows");
    t->frames = frames;
    t->stack_first = first;
    t->stack_count = (uint32_t)(rows - 1);
    if (t->stack_first[t->stack_count] > frame_count)
        return trace_expected(r, "/stacks/", "first", "rows of frames");
    return FRAG_OK;
}
