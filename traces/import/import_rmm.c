/* import_rmm.c - reads the log of RAPIDS RMM's logging_resource_adaptor: one
 * row for each call, in the order in which the calls reached the adaptor.
 *
 *   Thread,Time,Action,Pointer,Size,Stream
 *   2342,15:47:02.841961,allocate,0x10012400000,1048576,0
 *   2342,15:47:02.841977,free,0x10012400000,1048576,0x2
 *   2342,15:47:03.120005,allocate failure,(nil),8589934592,0
 *
 * Columns are found by the names in the header: RMM before 0.14 wrote no
 * Thread. A log that a program sends to stderr may lack the header and have
 * other lines between its rows, which are counted and skipped. A row is a line
 * with as many fields as the header, the first of which is a number or a time.
 * The last line may be incomplete, because RMM buffers the log.
 *
 * A null pointer, (nil) or 0x0, is no block: RMM's pools return it for 0 bytes.
 * A free of an address that no row allocated shows a block that was live before
 * the log. Times have no date: a step back by more than half a day is midnight.
 * Before RMM 21.06 the microseconds follow a colon.
 *
 * Source: rapidsai/rmm at 5d50a37, cpp/src/mr/detail/
 * logging_resource_adaptor_impl.cpp, and its history.
 */
#include <inttypes.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/fields.h"
#include "traces/bytes/lines.h"
#include "traces/bytes/source.h"
#include "traces/import/importers.h"
#include "traces/live.h"

enum column { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, COLUMNS };

static const char *const names[] = {"Thread", "Time",   "Action", "Pointer",
                                    "Size",   "Stream", NULL};

enum action { ALLOCATE, FREE, FAILURE, ACTIONS };

static const char *const actions[ACTIONS] = {"allocate", "free",
                                             "allocate failure"};

static const frag_time day = (frag_time)86400 * 1000000000;

struct rmm_row {
    int action;     /* enum action */
    frag_time time; /* ns since midnight */
    uint64_t pointer, size, stream;
};

struct layout {
    int column[COLUMNS]; /* index of each column in a line; -1: absent */
    int count;           /* fields in a row */
};

/* Something that a note counts. */
struct tally {
    uint64_t count, first; /* first: the line */
};

struct rmm {
    struct frag_source *source;
    struct frag_build *build;
    struct frag_error *e;
    uint64_t line;
    struct layout layout;
    struct live live; /* the sizes of the live blocks, see put_live */
    frag_time midnight, last;
    uint64_t torn; /* a line that starts like a row and is none: an error,
                      unless it is the last one. 0: none */
    const char *expected; /* in the torn line */
    struct field found;
    char text[64]; /* of `found` */
    struct tally skipped, lost, zero, other_size;
};

/* ---- rows ---- */

/* Reads a number below `end` and the separator after it, and moves *f past
 * both. */
static bool take_digits(struct field *f, char separator, uint64_t end,
                        uint64_t *value)
{
    const char *stop = memchr(f->text, separator, f->length);
    const struct field digits = {f->text,
                                 stop ? (size_t)(stop - f->text) : f->length};

    if (!stop || !field_decimal(digits, value) || *value >= end)
        return false;
    f->length -= digits.length + 1;
    f->text = stop + 1;
    return true;
}

/* Reads HH:MM:SS and microseconds after a dot or a colon. */
static bool read_time(struct field f, frag_time *out)
{
    uint64_t hours, minutes, seconds, fraction;
    const char separator = memchr(f.text, '.', f.length) ? '.' : ':';

    if (!take_digits(&f, ':', 24, &hours) ||
        !take_digits(&f, ':', 60, &minutes) ||
        !take_digits(&f, separator, 61, &seconds) || f.length != 6 ||
        !field_decimal(f, &fraction))
        return false;
    *out = (frag_time)(((hours * 60 + minutes) * 60 + seconds) * 1000000 +
                       fraction) *
           1000;
    return true;
}

/* Reads the fields of a row. Returns NULL, or what was expected in *wrong. */
static const char *read_row(const struct field f[COLUMNS], struct rmm_row *row,
                            struct field *wrong)
{
    *wrong = f[TIME];
    if (!read_time(f[TIME], &row->time))
        return "a time such as 05:50:42.600038";
    *wrong = f[ACTION];
    row->action = field_among(f[ACTION], actions, ACTIONS);
    if (row->action < 0)
        return "allocate, free or \"allocate failure\"";
    *wrong = f[POINTER];
    if (!field_pointer(f[POINTER], &row->pointer))
        return "a pointer, 0x... or (nil)";
    *wrong = f[SIZE];
    if (!field_decimal(f[SIZE], &row->size) || row->size >> 63)
        return "a size in bytes, 0 to 2^63 - 1";
    if (row->action == ALLOCATE && row->size && !row->pointer)
        return "0 bytes for a null pointer";
    *wrong = f[STREAM];
    if (!field_number(f[STREAM], &row->stream))
        return "a stream, 0 or 0x...";
    return NULL;
}

/* Sets *out if the line is a header, which has all columns but Thread. */
static bool read_header(struct field line, struct layout *out)
{
    struct layout l;

    l.count = fields_columns(field_unmarked(line), names, l.column);
    for (int k = TIME; k < COLUMNS; k++)
        if (l.column[k] < 0)
            return false;
    *out = l;
    return true;
}

/* Whether a line starts as a row does: with a number, or with a time. */
static bool starts_like_row(struct field line)
{
    struct fields rest = fields_of(line.text, line.length);
    struct field f;
    frag_time time;
    uint64_t number;

    return fields_next(&rest, ',', &f) && rest.at &&
           (field_decimal(f, &number) || read_time(f, &time));
}

static struct layout usual_layout(void)
{
    struct layout l = {.count = COLUMNS};

    for (int k = 0; k < COLUMNS; k++)
        l.column[k] = k;
    return l;
}

/* ---- events ---- */

/* The size of a block is in its row of the table: the low 31 bits are the slot,
 * because a slot of UINT32_MAX is an empty row, and the others are the state.
 */
static frag_size size_of(const struct live_row *row)
{
    return (frag_size)row->state << 31 | row->slot;
}

static bool put_live(struct live *t, uint64_t pointer, frag_size size)
{
    if (!live_put(t, pointer, (uint32_t)(size & INT32_MAX)))
        return false;
    live_find(t, pointer)->state = (uint32_t)(size >> 31);
    return true;
}

static void count(const struct rmm *r, struct tally *t)
{
    if (!t->count++)
        t->first = r->line;
}

static enum frag_err put(const struct rmm *r, enum frag_entry_kind kind,
                         const struct rmm_row *row, bool frees_on)
{
    const struct frag_entry entry = {.kind = kind,
                                     .frees_on = frees_on,
                                     .addr = row->pointer,
                                     .size = row->size ? row->size : 1,
                                     .stream = row->stream,
                                     .time = r->midnight + row->time};

    return frag_build_entry(r->build, 0, &entry, r->line, r->e);
}

/* The free of a block whose address is allocated again is not in the log. */
static enum frag_err free_lost(struct rmm *r, const struct rmm_row *row,
                               struct live_row *live)
{
    count(r, &r->lost);
    live_remove(&r->live, live);
    return put(r, FRAG_ENTRY_FREE_COMPLETED, row, false);
}

static enum frag_err on_allocate(struct rmm *r, const struct rmm_row *row)
{
    struct live_row *live = live_find(&r->live, row->pointer);

    if (!row->pointer)
        return FRAG_OK;
    if (live)
        FRAG_TRY(free_lost(r, row, live));
    if (!row->size)
        count(r, &r->zero);
    if (!put_live(&r->live, row->pointer, row->size))
        return FRAG_NOMEM;
    return put(r, FRAG_ENTRY_ALLOC, row, false);
}

static enum frag_err on_free(struct rmm *r, const struct rmm_row *row)
{
    struct live_row *live = live_find(&r->live, row->pointer);

    if (!row->pointer)
        return FRAG_OK;
    if (live && size_of(live) != row->size)
        count(r, &r->other_size);
    if (live)
        live_remove(&r->live, live);
    else if (!row->size)
        count(r, &r->zero);
    return put(r, FRAG_ENTRY_FREE_COMPLETED, row, true);
}

static enum frag_err on_failure(struct rmm *r, const struct rmm_row *row)
{
    return row->size ? put(r, FRAG_ENTRY_FAILED, row, false) : FRAG_OK;
}

static enum frag_err put_row(struct rmm *r, const struct rmm_row *row)
{
    static enum frag_err (*const on[ACTIONS])(struct rmm *,
                                              const struct rmm_row *) = {
        [ALLOCATE] = on_allocate,
        [FREE] = on_free,
        [FAILURE] = on_failure,
    };

    if (row->time + day / 2 < r->last)
        r->midnight += day;
    r->last = row->time;
    return on[row->action](r, row);
}

/* ---- lines ---- */

/* Keeps the error of a line that starts like a row, until another line shows
 * that it was not the last one. */
static void keep_torn(struct rmm *r, const char *expected, struct field found)
{
    r->torn = r->line;
    r->expected = expected;
    r->found = (struct field){r->text, found.length < sizeof(r->text)
                                           ? found.length
                                           : sizeof(r->text)};
    memcpy(r->text, found.text, r->found.length);
}

static enum frag_err read_line(void *user, const char *line, size_t length,
                               uint64_t number)
{
    struct rmm *r = user;
    const struct field whole = {line, length};
    struct field fields[COLUMNS], wrong;
    const char *expected;
    struct rmm_row row;

    if (!field_trimmed(whole).length)
        return FRAG_OK;
    if (r->torn && r->expected)
        return field_wrong(r->source, r->torn, r->expected, r->found, r->e);
    if (r->torn)
        count(r, &r->skipped);
    r->torn = 0;
    r->line = number;
    if (read_header(whole, &r->layout))
        return FRAG_OK;
    if (!starts_like_row(whole)) {
        count(r, &r->skipped);
        return FRAG_OK;
    }
    if (fields_pick(whole, r->layout.column, COLUMNS, fields) !=
        r->layout.count) {
        keep_torn(r, NULL, whole);
        return FRAG_OK;
    }
    expected = read_row(fields, &row, &wrong);
    if (!expected)
        return put_row(r, &row);
    keep_torn(r, expected, wrong);
    return FRAG_OK;
}

static enum frag_err put_notes(const struct rmm *r)
{
    const struct {
        struct tally tally;
        const char *text;
    } notes[] = {
        {r->skipped, "lines that are no rows of the log were skipped"},
        {{r->torn != 0, r->torn},
         "row at the end of the log is incomplete and was skipped: the end of "
         "the log is lost, as with a process that was killed"},
        {r->lost,
         "allocations returned an address that was live: the log lacks "
         "the frees, which were added"},
        {r->zero, "blocks of 0 bytes count as 1 byte"},
        {r->other_size,
         "frees state another size than the allocation; the size "
         "of the allocation counts"},
    };

    for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
        if (notes[i].tally.count)
            FRAG_TRY(frag_build_note(
                r->build, "%" PRIu64 " %s (first at line %" PRIu64 ")",
                notes[i].tally.count, notes[i].text, notes[i].tally.first));
    return FRAG_OK;
}

static enum frag_err rmm_read(struct frag_source *source,
                              struct frag_build *build,
                              const struct frag_read_options *opts,
                              struct frag_error *e)
{
    struct rmm r = {
        .source = source, .build = build, .e = e, .layout = usual_layout()};
    enum frag_err err = frag_build_device(build, 0, e);

    if (err == FRAG_OK)
        err = lines_each(source, opts, read_line, &r, e);
    if (err == FRAG_OK)
        err = put_notes(&r);
    live_fini(&r.live);
    return err;
}

/* A header or a row decides; a row needs no header before it. */
static bool rmm_recognize(const unsigned char *bytes, size_t count)
{
    struct fields lines = fields_of((const char *)bytes, count);
    struct layout layout = usual_layout();
    struct field line, fields[COLUMNS], wrong;
    struct rmm_row row;

    while (fields_next(&lines, '\n', &line)) {
        uint64_t thread;

        if (read_header(line, &layout))
            return true;
        if (fields_pick(line, layout.column, COLUMNS, fields) == COLUMNS &&
            field_decimal(fields[THREAD], &thread) &&
            !read_row(fields, &row, &wrong))
            return true;
    }
    return false;
}

const struct frag_importer frag_importer_rmm = {
    .name = "rmm",
    .summary = "CSV log of RAPIDS RMM's logging_resource_adaptor",
    .made = "rmm.reinitialize(logging=True, log_file_name=\"rmm.csv\"), one "
            "file a device (rmm.devN.csv): pass each as a trace of its own",
    .lacks = "dates, stacks, alignments, what the recorded allocator did",
    .note = "the sizes in the log are those at the place of RMM's logging "
            "adaptor: above a pool they are the requests of the program, below "
            "a pool they are the growth of the pool, and the log does not "
            "state which",
    .recognize = rmm_recognize,
    .read = rmm_read,
};
