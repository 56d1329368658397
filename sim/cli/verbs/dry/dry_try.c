/* dry_try.c - runs a program at several values and tells the largest that fits.
 */
#include "sim/cli/verbs/dry/dry_try.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/output/table.h"
#include "traces/grow.h"
#include "traces/printable.h"

/* ---- the values ---- */

static bool is_number(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    return length > 0 && length < 19;
}

/* Reads A..B. False if the text is something else. */
static bool read_range(const char *text, uint64_t *from, uint64_t *to)
{
    const char *dots = strstr(text, "..");

    if (!dots || !is_number(text, (size_t)(dots - text)) ||
        !is_number(dots + 2, strlen(dots + 2)))
        return false;
    *from = strtoull(text, NULL, 10);
    *to = strtoull(dots + 2, NULL, 10);
    return *from <= *to;
}

enum frag_err dry_try_check(const struct dry_try *t, struct frag_error *e)
{
    const char *v = t->values;
    uint64_t from, to;
    bool has_place = false;

    for (size_t i = 0; i < t->command->count; i++)
        has_place = has_place || strstr(t->command->items[i], "{}");
    if (!has_place)
        return frag_fail(e, FRAG_INVALID,
                         "--try: expected {} in the arguments of the program, "
                         "which each value takes the place of");
    if (read_range(v, &from, &to))
        return t->judged ? FRAG_OK
                         : frag_fail(e, FRAG_INVALID,
                                     "--try %s: expected --gpu or --memory, "
                                     "which the largest number has to fit",
                                     v);
    if (strstr(v, "..") || !*v || *v == ',' || strstr(v, ",,") ||
        v[strlen(v) - 1] == ',')
        return frag_fail(e, FRAG_INVALID,
                         "--try %s: expected VALUE,... or A..B with two "
                         "numbers, the smaller first",
                         v);
    return FRAG_OK;
}

/* ---- the runs ---- */

/* Writes the argument with `value` in place of each {}; returns its end. */
static char *put_argument(char *at, const char *argument, const char *value)
{
    const char *place;

    while ((place = strstr(argument, "{}"))) {
        at += sprintf(at, "%.*s%s", (int)(place - argument), argument, value);
        argument = place + 2;
    }
    return at + sprintf(at, "%s", argument);
}

static enum frag_err run_row(const struct dry_try *t, struct dry_row *row,
                             struct frag_error *e)
{
    const struct texts *given = t->command;
    struct texts command = {calloc(given->count, sizeof(char *)), given->count};
    size_t size = 0;
    char *texts, *at;
    enum frag_err err;

    for (size_t i = 0; i < given->count; i++)
        size += strlen(given->items[i]) * (strlen(row->value) + 1) + 1;
    at = texts = malloc(size);
    err = texts && command.items ? FRAG_OK : frag_no_memory(e, "the command");
    for (size_t i = 0; err == FRAG_OK && i < given->count; i++) {
        command.items[i] = at;
        at = put_argument(at, given->items[i], row->value) + 1;
    }
    if (err == FRAG_OK)
        err = t->run(t->user, &command, row, e);
    free(texts);
    free(command.items);
    return err;
}

/* Runs the program at the value and puts its row at this place. */
static enum frag_err try_at(struct dry_try *t, size_t at, const char *value,
                            size_t length, struct frag_error *e)
{
    struct dry_row *row;

    if (!GROW(t->rows, t->room, t->count + 1))
        return frag_no_memory(e, "the values");
    row = &t->rows[at];
    memmove(row + 1, row, (t->count++ - at) * sizeof(*row));
    *row = (struct dry_row){.value = strndup(value, length)};
    return row->value ? run_row(t, row, e) : frag_no_memory(e, "the values");
}

static enum frag_err try_number(struct dry_try *t, size_t at, uint64_t number,
                                struct frag_error *e)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    return try_at(t, at, text, strlen(text), e);
}

/* The first and the last number, and, if only the first fits, the middle of
 * the last that fits and the first that does not until they are neighbours. */
static enum frag_err try_range(struct dry_try *t, uint64_t fits, uint64_t over,
                               struct frag_error *e)
{
    size_t at = 0; /* the row of the largest that fits */

    FRAG_TRY(try_number(t, 0, fits, e));
    if (!t->rows[0].fits || fits == over)
        return FRAG_OK;
    FRAG_TRY(try_number(t, 1, over, e));
    while (!t->rows[t->count - 1].fits && fits + 1 < over) {
        const uint64_t middle = fits + (over - fits) / 2;

        FRAG_TRY(try_number(t, at + 1, middle, e));
        if (t->rows[at + 1].fits) {
            fits = middle;
            at++;
        } else {
            over = middle;
        }
    }
    return FRAG_OK;
}

enum frag_err dry_try_all(struct dry_try *t, struct frag_error *e)
{
    uint64_t from, to;

    if (read_range(t->values, &from, &to))
        return try_range(t, from, to, e);
    for (const char *v = t->values; *v; v += *v == ',') {
        FRAG_TRY(try_at(t, t->count, v, strcspn(v, ","), e));
        v += strcspn(v, ",");
    }
    return FRAG_OK;
}

void dry_try_free(struct dry_try *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->rows[i].value);
    free(t->rows);
}

void dry_row_fill(struct dry_row *row, const struct dry_answer *a)
{
    const struct dry_device *d = dry_largest(a);

    for (size_t i = 0; i < a->count; i++)
        row->died = row->died || a->devices[i].died;
    row->whole = dry_is_whole(a);
    row->need = dry_need(a, d, 0);
    row->reserved = d->ways[0].unlimited.run.peak_reserved;
    row->fits = row->whole && dry_all_fit(a, a->gpu, 0);
    for (size_t i = 0; row->whole && frag_gpus[i].id; i++)
        if (dry_all_fit(a, &frag_gpus[i], 0))
            row->fits_table |= 1U << i;
}

/* ---- the largest value ---- */

/* Whether the row fits a GPU of the table; the GPU that was asked for if `g`
 * is that. */
static bool fits(const struct dry_try *t, const struct dry_row *row,
                 const struct frag_gpu *g)
{
    return g == t->judged ? row->fits : row->fits_table >> (g - frag_gpus) & 1U;
}

static uint64_t rank_of(const struct dry_try *t, const struct dry_row *row)
{
    for (size_t i = 0; i < t->count; i++)
        if (!is_number(t->rows[i].value, strlen(t->rows[i].value)))
            return row->need;
    return strtoull(row->value, NULL, 10);
}

/* The largest value that fits the GPU; NULL: none. */
static const struct dry_row *largest(const struct dry_try *t,
                                     const struct frag_gpu *g)
{
    const struct dry_row *found = NULL;

    for (size_t i = 0; i < t->count; i++)
        if (fits(t, &t->rows[i], g) &&
            (!found || rank_of(t, &t->rows[i]) > rank_of(t, found)))
            found = &t->rows[i];
    return found;
}

bool dry_try_fits(const struct dry_try *t)
{
    /* The first GPU of the table is the largest. */
    return largest(t, t->judged ? t->judged : frag_gpus) != NULL;
}

static const struct frag_gpu *smallest(const struct dry_row *row)
{
    const struct frag_gpu *found = NULL;

    for (size_t i = 0; frag_gpus[i].id; i++)
        if (row->fits_table >> i & 1U)
            found = &frag_gpus[i];
    return found;
}

/* ---- the outputs ---- */

static void put_size(struct table *t, bool known, frag_size size)
{
    if (known && size != FRAG_UNLIMITED)
        table_size(t, size);
    else
        table_cell(t, known, "%s", known ? "none is enough" : "-");
}

static void put_row(struct table *t, const struct dry_try *tries,
                    const struct dry_row *row)
{
    const struct frag_gpu *g = smallest(row);

    table_cell(t, false, "%s", row->value);
    if (row->died)
        table_cell(t, true, "out of memory");
    else if (row->status)
        table_cell(t, true, "failed: exit code %d", row->status);
    else
        table_cell(t, false, "done");
    put_size(t, row->whole, row->need);
    put_size(t, row->whole, row->reserved);
    table_cell(t, false, "%s", g ? g->id : row->whole ? "none" : "-");
    if (tries->judged)
        table_cell(t, !row->fits, row->fits ? "fits" : "does not fit");
}

static enum frag_err put_table(struct table *t, FILE *out, bool color,
                               struct frag_error *e)
{
    return table_print(t, out, color) == FRAG_OK
               ? FRAG_OK
               : frag_no_memory(e, "the table");
}

static enum frag_err put_text(const struct dry_try *t, FILE *out,
                              struct frag_error *e)
{
    static const char heads[] = "value|run|need|peak reserved|smallest GPU";
    struct table rows = table_of(t->judged ? "llrrll" : "llrrl", heads);
    struct table gpus = table_of("lrl", "GPU|memory|largest that fits");

    if (t->judged)
        table_cell(&rows, false, "on the %s", t->judged->name);
    for (size_t i = 0; i < t->count; i++)
        put_row(&rows, t, &t->rows[i]);
    FRAG_TRY(put_table(&rows, out, t->color, e));
    for (const struct frag_gpu *g = t->judged ? t->judged : frag_gpus; g->id;
         g++) {
        const struct dry_row *row = largest(t, g);

        table_cell(&gpus, false, "%s", g == t->judged ? g->name : g->id);
        table_size(&gpus, g->total);
        table_cell(&gpus, !row, "%s", row ? row->value : "none");
        if (g == t->judged)
            break;
    }
    fputc('\n', out);
    return put_table(&gpus, out, t->color, e);
}

static void put_json(const struct dry_try *t, struct frag_json *j)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct dry_row *row = &t->rows[i];

        frag_json_new_object(j, 4, NULL);
        frag_json_text(j, "value", row->value);
        frag_json_number(j, "status", (uint64_t)row->status);
        frag_json_bool(j, "whole", row->whole);
        frag_json_bool(j, "out_of_memory", row->died);
        frag_json_count(j, "need_bytes", row->whole ? row->need : UINT64_MAX);
        frag_json_count(j, "peak_reserved_bytes",
                        row->whole ? row->reserved : UINT64_MAX);
        frag_json_bool(j, "fits", row->fits);
        frag_json_array(j, "fits_gpus");
        for (const struct frag_gpu *g = frag_gpus; g->id; g++)
            if (row->fits_table >> (g - frag_gpus) & 1U)
                frag_json_text(j, NULL, g->id);
        frag_json_end(j);
        frag_json_end(j);
    }
}

enum frag_err dry_try_put(void *user, FILE *out, struct frag_json *j,
                          struct frag_error *e)
{
    if (!j)
        return put_text(user, out, e);
    put_json(user, j);
    return FRAG_OK;
}

static void put_largest(const struct dry_try *t, const struct frag_gpu *g,
                        struct frag_json *j)
{
    const struct dry_row *row = largest(t, g);

    frag_json_new_object(j, 4, NULL);
    frag_json_text(j, "gpu", g->id);
    frag_json_number(j, "memory_bytes", g->total);
    frag_json_text(j, "value", row ? row->value : NULL);
    frag_json_end(j);
}

void dry_try_put_after(void *user, struct frag_json *j)
{
    const struct dry_try *t = user;

    frag_json_array(j, "largest");
    if (t->judged)
        put_largest(t, t->judged, j);
    for (const struct frag_gpu *g = frag_gpus; !t->judged && g->id; g++)
        put_largest(t, g, j);
    frag_json_end(j);
}
