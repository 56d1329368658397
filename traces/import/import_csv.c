/* import_csv.c - reads events as text: a header, then one line for each event.
 *
 *   op,id,bytes,stream
 *   alloc,1,4096,0
 *   free,1,,
 *   empty_cache,,,
 *
 * The columns may be in any order. The columns bytes and stream may be absent,
 * or empty where the op does not need them. Ids are any 64-bit numbers; streams
 * are raw handles. Lines end in LF or CRLF. Fields may have quotes or blanks
 * around them (RFC 4180).
 */
#include <inttypes.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/fields.h"
#include "traces/bytes/lines.h"
#include "traces/import/importers.h"
#include "traces/trace.h"

enum name { OP, ID, BYTES, STREAM, NAMES };

static const char *const names[NAMES] = {"op", "id", "bytes", "stream"};

struct csv {
    struct frag_source *source;
    struct frag_build *build;
    struct frag_error *e;
    uint64_t line;
    int column[NAMES]; /* index of each column in a line; -1: absent */
    int columns;       /* of the header; 0: the header was not read yet */
};

static enum frag_err wrong(const struct csv *c, const char *expected,
                           struct field found)
{
    return field_wrong(c->source, c->line, expected, found, c->e);
}

/* Reads the header. Returns NULL if it is valid, or else what was expected;
 * then *f is the field that is wrong, or the last field. */
static const char *read_header(struct csv *c, struct field line,
                               struct field *f)
{
    const struct field text = field_unmarked(line);
    struct fields fields = fields_of(text.text, text.length);

    for (int k = 0; k < NAMES; k++)
        c->column[k] = -1;
    c->columns = 0;
    while (fields_next(&fields, ',', f)) {
        int k = field_among(*f, names, NAMES);

        if (k < 0)
            return "one of the columns op, id, bytes, stream in the header";
        if (c->column[k] >= 0)
            return "each column once in the header";
        c->column[k] = c->columns++;
    }
    if (c->column[OP] < 0 || c->column[ID] < 0)
        return "a header with the columns op and id";
    return NULL;
}

/* Reads a number. An empty field is 0, unless the op needs the field. */
static enum frag_err read_field(const struct csv *c, struct field f,
                                bool needed, const char *expected,
                                uint64_t *value)
{
    *value = 0;
    if ((!f.length && !needed) || field_decimal(f, value))
        return FRAG_OK;
    return wrong(c, expected, f);
}

static enum frag_err read_event(const struct csv *c,
                                const struct field fields[NAMES])
{
    int op = field_among(fields[OP], frag_op_names, FRAG_OP_COUNT);
    uint64_t id, bytes, stream;

    if (op < 0)
        return wrong(c,
                     "alloc, free, free_requested, record_stream or "
                     "empty_cache",
                     fields[OP]);
    FRAG_TRY(read_field(c, fields[ID], op != FRAG_EMPTY_CACHE,
                        "an id, 0 to 2^64 - 1", &id));
    FRAG_TRY(read_field(c, fields[BYTES], op == FRAG_ALLOC,
                        "a size in bytes, 1 to 2^63 - 1", &bytes));
    FRAG_TRY(read_field(c, fields[STREAM], op == FRAG_RECORD_STREAM,
                        "a stream, 0 to 2^64 - 1", &stream));
    return frag_build_event(c->build, 0, (enum frag_op)op, id, bytes, stream,
                            c->line, c->e);
}

static enum frag_err read_line(void *user, const char *line, size_t length,
                               uint64_t number)
{
    struct csv *c = user;
    const struct field whole = {line, length}, all = field_trimmed(whole);
    struct field fields[NAMES], f;

    c->line = number;
    if (!all.length)
        return FRAG_OK;
    if (!c->columns) {
        const char *expected = read_header(c, whole, &f);

        return expected ? wrong(c, expected, f) : FRAG_OK;
    }
    if (fields_pick(whole, c->column, NAMES, fields) > c->columns)
        return wrong(c, "no more fields than the header has", all);
    return read_event(c, fields);
}

static enum frag_err csv_read(struct frag_source *source,
                              struct frag_build *build,
                              const struct frag_read_options *opts,
                              struct frag_error *e)
{
    struct csv c = {.source = source, .build = build, .e = e};

    FRAG_TRY(frag_build_device(build, 0, e));
    return lines_each(source, opts, read_line, &c, e);
}

/* A first line with a field op is a header. Other errors of the header are
 * reported when it is read. */
static bool csv_recognize(const unsigned char *bytes, size_t count)
{
    const struct field line = field_unmarked(field_first_line(bytes, count));
    struct fields fields = fields_of(line.text, line.length);
    struct field f;

    while (fields_next(&fields, ',', &f))
        if (field_is(f, names[OP]))
            return true;
    return false;
}

const struct frag_importer frag_importer_csv = {
    .name = "csv",
    .summary = "events as text; the header is op,id,bytes,stream",
    .made = "fragsim export TRACE -o events.csv, or a script of the user",
    .lacks = "times, stacks, pools, streams of frees, what the recorded "
             "allocator did",
    .recognize = csv_recognize,
    .read = csv_read,
};
