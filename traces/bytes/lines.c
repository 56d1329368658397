/* lines.c - splits an input into lines. It does not parse the lines; the
 * importers do. */
#include "traces/bytes/lines.h"

#include <inttypes.h>
#include <string.h>

struct reader {
    lines_line *each;
    void *user;
    uint64_t line;
};

/* Passes all complete lines of the window to r->each and sets *used to the
 * number of their bytes. `last`: the input ends with this window. */
static enum frag_err read_window(struct reader *r, const char *bytes,
                                 size_t count, bool last, size_t *used)
{
    *used = 0;
    while (*used < count) {
        const char *line = bytes + *used;
        const char *end = memchr(line, '\n', count - *used);
        const size_t whole = end ? (size_t)(end - line) : count - *used;
        size_t length = whole;

        if (!end && !last)
            return FRAG_OK;
        if (length && line[length - 1] == '\r')
            length--;
        FRAG_TRY(r->each(r->user, line, length, ++r->line));
        *used += end ? whole + 1 : whole;
    }
    return FRAG_OK;
}

enum frag_err lines_tick(struct frag_source *source,
                         const struct frag_read_options *opts,
                         struct frag_error *e)
{
    if (!opts || !opts->progress ||
        !opts->progress(opts->user, frag_source_read(source),
                        frag_source_size(source)))
        return FRAG_OK;
    return frag_fail(e, FRAG_CANCELLED, "%s: interrupted",
                     frag_source_name(source));
}

enum frag_err lines_each(struct frag_source *source,
                         const struct frag_read_options *opts, lines_line *each,
                         void *user, struct frag_error *e)
{
    struct reader r = {.each = each, .user = user};

    for (;;) {
        const unsigned char *bytes;
        enum frag_err err = FRAG_OK;
        size_t used, count = frag_source_peek(source, FRAG_SOURCE_WINDOW,
                                              &bytes, &err, e);

        FRAG_TRY(err);
        if (!count)
            return FRAG_OK;
        FRAG_TRY(read_window(&r, (const char *)bytes, count,
                             count < FRAG_SOURCE_WINDOW, &used));
        if (!used)
            return frag_fail(e, FRAG_CORRUPT,
                             "%s:%" PRIu64 ": expected a line of less than %d "
                             "bytes, found a longer one",
                             frag_source_name(source), r.line + 1,
                             FRAG_SOURCE_WINDOW);
        frag_source_skip(source, used);
        FRAG_TRY(lines_tick(source, opts, e));
    }
}
