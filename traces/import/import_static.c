/* import_static.c - reads instances of static storage allocation as text: a
 * header, then one line for each buffer.
 *
 *   id,lower,upper,size
 *   0,44032,282624,34816
 *
 * A buffer is live in [lower, upper). At equal times, ends come before begins,
 * and begins keep the order of the lines. A column `end` may replace `upper`:
 * then the buffer is live in [lower, end]. These columns are required, in any
 * order. Ids may be any different words. The reader does not check the ids,
 * because it numbers the lines. The reader ignores other columns, such as
 * minimalloc's `offset` of a solved instance, and adds a note.
 *
 * A column `alignment` is optional: the address of the buffer must be a
 * multiple of so many units. A trace has no alignments. All sizes
 * are multiples of 512 bytes, so policies place all blocks at such multiples,
 * and alignments that divide 512 bytes are respected; a note counts the others.
 *
 * Units: instances made by compilers may count scratchpad words or other units.
 * If every size is a multiple of 512, a unit counts as one byte. If not, a unit
 * counts as 512 bytes, a multiple of each policy's quantum, so that no rounding
 * changes the instance. Then a note of the trace states the unit, and every
 * result in bytes must be divided by 512.
 *
 * Source: the files of minimalloc (github.com/google/minimalloc, benchmarks/)
 * and idealloc (github.com/cappadokes/idealloc, benchmarks/).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/fields.h"
#include "traces/bytes/lines.h"
#include "traces/grow.h"
#include "traces/import/importers.h"
#include "traces/text.h"
#include "traces/trace.h"

enum { ID, LOWER, UPPER, END, SIZE, ALIGNMENT, NAMES };

static const char *const names[NAMES] = {"id",  "lower", "upper",
                                         "end", "size",  "alignment"};

/* Bytes: the largest quantum of a policy; the others divide it. */
enum { QUANTUM = 512 };

struct buffer {
    uint64_t lower, upper, size, alignment;
};

struct header {
    int column[NAMES]; /* index of each column in a line; -1: absent */
    int columns;
    char others[200]; /* names of the columns that are not read, cut to
                         this length */
};

struct instance {
    struct frag_source *source;
    struct frag_error *e;
    uint64_t line;
    struct header header;
    struct buffer *buffers;
    uint64_t count, room;
};

static enum frag_err wrong(const struct instance *in, const char *expected,
                           struct field found)
{
    return field_wrong(in->source, in->line, expected, found, in->e);
}

static void add_other(struct header *h, struct field name)
{
    text_add(h->others, sizeof(h->others), ", ", "%.*s",
             name.length < 60 ? (int)name.length : 60, name.text);
}

/* Returns whether the line is the header of an instance; *h is its columns. */
static bool read_header(const char *line, size_t length, struct header *h)
{
    struct fields rest = fields_of(line, length);
    struct field w;

    *h = (struct header){.columns = 0};
    for (int k = 0; k < NAMES; k++)
        h->column[k] = -1;
    for (; fields_next(&rest, ',', &w); h->columns++) {
        const int k = field_among(w, names, NAMES);

        if (k < 0)
            add_other(h, w);
        else if (h->column[k] >= 0)
            return false;
        else
            h->column[k] = h->columns;
    }
    return h->column[ID] >= 0 && h->column[LOWER] >= 0 &&
           h->column[SIZE] >= 0 &&
           (h->column[UPPER] >= 0) != (h->column[END] >= 0);
}

static bool read_number(struct field w, uint64_t *value)
{
    return field_decimal(w, value) && *value >> 63 == 0;
}

static enum frag_err add(struct instance *in, const struct buffer *b)
{
    if (!GROW(in->buffers, in->room, in->count + 1))
        return FRAG_NOMEM;
    in->buffers[in->count++] = *b;
    return FRAG_OK;
}

static enum frag_err read_buffer(struct instance *in, const char *line,
                                 size_t length)
{
    const struct field whole = {line, length};
    struct fields rest = fields_of(line, length);
    const struct header *h = &in->header;
    struct field fields[NAMES], w;
    struct buffer b = {.alignment = 1};

    if (fields_pick(whole, h->column, NAMES, fields) != h->columns) {
        while (fields_next(&rest, ',', &w))
            continue; /* to the last one */
        return wrong(in, "as many fields as the header has", w);
    }
    if (!read_number(fields[LOWER], &b.lower))
        return wrong(in, "a time, 0 to 2^63 - 1", fields[LOWER]);
    w = fields[h->column[END] >= 0 ? END : UPPER];
    if (!read_number(w, &b.upper))
        return wrong(in, "a time, 0 to 2^63 - 1", w);
    b.upper += h->column[END] >= 0;
    if (b.upper <= b.lower)
        return wrong(in, "a buffer that ends after it begins", w);
    if (!read_number(fields[SIZE], &b.size) || !b.size)
        return wrong(in, "a size, 1 to 2^63 - 1", fields[SIZE]);
    if (h->column[ALIGNMENT] >= 0 &&
        (!read_number(fields[ALIGNMENT], &b.alignment) || !b.alignment))
        return wrong(in, "an alignment, 1 to 2^63 - 1", fields[ALIGNMENT]);
    return add(in, &b);
}

static enum frag_err read_line(void *user, const char *line, size_t length,
                               uint64_t number)
{
    struct instance *in = user;

    in->line = number;
    if (!field_trimmed((struct field){line, length}).length)
        return FRAG_OK;
    if (in->header.columns)
        return read_buffer(in, line, length);
    return read_header(line, length, &in->header)
               ? FRAG_OK
               : wrong(in, "a header with id, lower, upper (or end) and size",
                       (struct field){line, length});
}

/* A birth or a death. */
struct moment {
    uint64_t time;
    uint64_t buffer;
    bool is_birth;
};

static int by_time(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->is_birth != y->is_birth)
        return x->is_birth ? 1 : -1;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* Finds the bytes of a unit: 1 or QUANTUM. Adds a note for QUANTUM. */
static enum frag_err find_unit(const struct instance *in,
                               struct frag_build *build, frag_size *unit)
{
    uint64_t largest = 0;
    bool whole = true;

    for (uint64_t i = 0; i < in->count; i++) {
        whole = whole && in->buffers[i].size % QUANTUM == 0;
        largest = in->buffers[i].size > largest ? in->buffers[i].size : largest;
    }
    *unit = whole ? 1 : QUANTUM;
    if (whole)
        return FRAG_OK;
    if (largest > (uint64_t)INT64_MAX / QUANTUM)
        return frag_fail(in->e, FRAG_CORRUPT,
                         "%s:0: expected only sizes below 2^54, or only "
                         "multiples of %d, found the size %" PRIu64,
                         frag_source_name(in->source), QUANTUM, largest);
    return frag_build_note(build,
                           "not all sizes are multiples of %d: one unit of "
                           "the file counts as %d bytes here; divide all "
                           "results in bytes by %d",
                           QUANTUM, QUANTUM, QUANTUM);
}

/* Adds notes on the parts of the instance that the trace does not hold. */
static enum frag_err note_missing(const struct instance *in,
                                  struct frag_build *build, frag_size unit)
{
    uint64_t lost = 0;

    for (uint64_t i = 0; i < in->count; i++)
        lost += QUANTUM / unit % in->buffers[i].alignment != 0;
    if (lost)
        FRAG_TRY(frag_build_note(build,
                                 "the alignment of %" PRIu64 " of the %" PRIu64
                                 " buffers is ignored: addresses are only "
                                 "multiples of %d bytes (units of the file: "
                                 "%d)",
                                 lost, in->count, QUANTUM,
                                 (int)(QUANTUM / unit)));
    if (!in->header.others[0])
        return FRAG_OK;
    return frag_build_note(build, "these columns of the file are not read: %s",
                           in->header.others);
}

static enum frag_err put_moments(const struct instance *in,
                                 struct frag_build *build,
                                 const struct moment *moments, frag_size unit)
{
    for (uint64_t k = 0; k < 2 * in->count; k++) {
        const struct moment *m = &moments[k];

        FRAG_TRY(frag_build_event(
            build, 0, m->is_birth ? FRAG_ALLOC : FRAG_FREE, m->buffer,
            m->is_birth ? in->buffers[m->buffer].size * unit : 0, 0, 0,
            in->e)); /* only NOMEM is left: the lines were checked */
    }
    return FRAG_OK;
}

static enum frag_err put_events(const struct instance *in,
                                struct frag_build *build)
{
    struct moment *moments = malloc((2 * in->count + 1) * sizeof(*moments));
    enum frag_err err;
    frag_size unit;

    if (!moments)
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < in->count; i++) {
        moments[2 * i] = (struct moment){in->buffers[i].lower, i, true};
        moments[2 * i + 1] = (struct moment){in->buffers[i].upper, i, false};
    }
    qsort(moments, 2 * in->count, sizeof(*moments), by_time);
    err = find_unit(in, build, &unit);
    if (err == FRAG_OK)
        err = note_missing(in, build, unit);
    if (err == FRAG_OK)
        err = put_moments(in, build, moments, unit);
    free(moments);
    return err;
}

static enum frag_err static_read(struct frag_source *source,
                                 struct frag_build *build,
                                 const struct frag_read_options *opts,
                                 struct frag_error *e)
{
    struct instance in = {.source = source, .e = e};
    enum frag_err err = frag_build_device(build, 0, e);

    if (err == FRAG_OK)
        err = lines_each(source, opts, read_line, &in, e);
    if (err == FRAG_OK)
        err = put_events(&in, build);
    free(in.buffers);
    return err;
}

static bool static_recognize(const unsigned char *bytes, size_t count)
{
    const struct field line = field_first_line(bytes, count);
    struct header header;

    return read_header(line.text, line.length, &header);
}

const struct frag_importer frag_importer_static = {
    .name = "static",
    .summary = "static instances (minimalloc, idealloc); the header is "
               "id,lower,upper,size",
    .made = "a compiler that plans memory, or the benchmarks of minimalloc and "
            "idealloc",
    .lacks = "streams, times, stacks, what the recorded allocator did",
    .recognize = static_recognize,
    .read = static_read,
};
