/* dry_try.c - runs a program at several values and tells the largest that fits.
 */
#include "sim/cli/verbs/dry/dry_try.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cell_options.h"
#include "sim/cli/output/table.h"
#include "traces/grow.h"

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

/* The next id of the list; NULL: none. Moves *at behind it. */
static const struct frag_gpu *next_gpu(const char **at, char id[32])
{
    const size_t length = strcspn(*at, ",");

    snprintf(id, 32, "%.*s", (int)length, *at);
    *at += length;
    *at += **at == ',';
    return frag_gpu_find(id);
}

static enum frag_err check_gpus(const char *list, struct frag_error *e)
{
    char id[32], unknown[GPU_UNKNOWN];

    if (!strcmp(list, "all"))
        return FRAG_OK;
    for (const char *at = list; *at;)
        if (!next_gpu(&at, id))
            return frag_fail(e, FRAG_INVALID, "%s",
                             gpu_unknown(id, "--memory", unknown));
    return FRAG_OK;
}

enum frag_err dry_try_check(const struct dry_try *t, struct frag_error *e)
{
    const char *v = t->values;
    uint64_t from, to;
    bool has_place = false;

    if (t->gpus)
        return check_gpus(t->gpus, e);
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

/* Whether the program ran to its end, so that its numbers count. */
static bool is_whole(const struct dry_row *row)
{
    return row->answer.count && dry_is_whole(&row->answer);
}

static bool fits(const struct dry_row *row, const struct frag_gpu *g)
{
    return is_whole(row) && dry_all_fit(&row->answer, g, 0);
}

/* Runs the command with the value of the row. */
static enum frag_err run_value(const struct dry_try *t, struct dry_row *row,
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
    FRAG_THEN(err, t->run(t->user, &command, t->gpu, &row->answer, e));
    free(texts);
    free(command.items);
    return err;
}

/* Makes a row at this place. */
static enum frag_err add_row(struct dry_try *t, size_t at, const char *value,
                             size_t length, struct frag_error *e)
{
    struct dry_row *row;

    if (!GROW(t->rows, t->room, t->count + 1))
        return frag_no_memory(e, "the values");
    row = &t->rows[at];
    memmove(row + 1, row, (t->count++ - at) * sizeof(*row));
    *row = (struct dry_row){.value = strndup(value, length)};
    return row->value ? FRAG_OK : frag_no_memory(e, "the values");
}

/* Runs the program at the value and puts its row at this place. */
static enum frag_err try_at(struct dry_try *t, size_t at, const char *value,
                            size_t length, struct frag_error *e)
{
    FRAG_TRY(add_row(t, at, value, length, e));
    return run_value(t, &t->rows[at], e);
}

static enum frag_err try_gpu(struct dry_try *t, const struct frag_gpu *g,
                             struct frag_error *e)
{
    const size_t at = t->count;

    FRAG_TRY(add_row(t, at, g->id, strlen(g->id), e));
    return t->run(t->user, t->command, g, &t->rows[at].answer, e);
}

/* All GPUs of the table, or those of the list. */
static enum frag_err try_gpus(struct dry_try *t, struct frag_error *e)
{
    const bool is_all = !strcmp(t->gpus, "all");
    char id[32];

    for (const struct frag_gpu *g = frag_gpus; is_all && g->id; g++)
        FRAG_TRY(try_gpu(t, g, e));
    for (const char *at = t->gpus; !is_all && *at;)
        FRAG_TRY(try_gpu(t, next_gpu(&at, id), e));
    return FRAG_OK;
}

static enum frag_err try_number(struct dry_try *t, size_t at, uint64_t number,
                                struct frag_error *e)
{
    char text[24];
    const int n = snprintf(text, sizeof(text), "%" PRIu64, number);

    return try_at(t, at, text, (size_t)n, e);
}

/* The first and the last number, and, if only the first fits, the middle of
 * the last that fits and the first that does not until they are neighbours. */
static enum frag_err try_range(struct dry_try *t, uint64_t under, uint64_t over,
                               struct frag_error *e)
{
    size_t at = 0; /* the row of the largest that fits */

    FRAG_TRY(try_number(t, 0, under, e));
    if (!fits(&t->rows[0], t->judged) || under == over)
        return FRAG_OK;
    FRAG_TRY(try_number(t, 1, over, e));
    while (!fits(&t->rows[t->count - 1], t->judged) && under + 1 < over) {
        const uint64_t middle = under + (over - under) / 2;

        FRAG_TRY(try_number(t, at + 1, middle, e));
        if (fits(&t->rows[at + 1], t->judged)) {
            under = middle;
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

    if (t->gpus)
        return try_gpus(t, e);
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
    for (size_t i = 0; i < t->count; i++) {
        free(t->rows[i].value);
        dry_answer_free(&t->rows[i].answer);
    }
    free(t->rows);
}

/* ---- the largest value ---- */

/* The GPUs for which the largest value is told, the largest memory first: the
 * one that was asked for, or all of the table. NULL behind the last. */
static const struct frag_gpu *gpu_at(const struct dry_try *t, size_t i)
{
    if (t->judged)
        return i ? NULL : t->judged;
    return frag_gpus[i].id ? &frag_gpus[i] : NULL;
}

static frag_size need_of(const struct dry_row *row)
{
    const struct dry_answer *a = &row->answer;

    return is_whole(row) ? dry_need(a, dry_largest(a), 0) : FRAG_UNLIMITED;
}

static frag_size reserved_of(const struct dry_row *row)
{
    return is_whole(row)
               ? dry_largest(&row->answer)->ways[0].unlimited.run.peak_reserved
               : FRAG_UNLIMITED;
}

static uint64_t rank_of(const struct dry_try *t, const struct dry_row *row)
{
    for (size_t i = 0; i < t->count; i++)
        if (!is_number(t->rows[i].value, strlen(t->rows[i].value)))
            return need_of(row);
    return strtoull(row->value, NULL, 10);
}

/* The largest value that fits the GPU; NULL: none. */
static const struct dry_row *largest(const struct dry_try *t,
                                     const struct frag_gpu *g)
{
    const struct dry_row *found = NULL;

    for (size_t i = 0; i < t->count; i++)
        if (fits(&t->rows[i], g) &&
            (!found || rank_of(t, &t->rows[i]) > rank_of(t, found)))
            found = &t->rows[i];
    return found;
}

bool dry_try_fits(const struct dry_try *t)
{
    for (size_t i = 0; t->gpus && i < t->count; i++)
        if (fits(&t->rows[i], t->rows[i].answer.gpu))
            return true;
    return !t->gpus && largest(t, gpu_at(t, 0)) != NULL;
}

/* ---- the outputs ---- */

/* How the run ended. */
static void put_end(struct table *t, const struct dry_answer *a)
{
    if (dry_died(a))
        table_cell(t, true, "out of memory");
    else if (a->status)
        table_cell(t, true, "failed: exit code %d", a->status);
    else if (dry_any_lacks_memory(a))
        table_cell(t, true, "done, but the trace lacks memory");
    else
        table_cell(t, false, "done");
}

static void put_row(struct table *t, const struct frag_gpu *judged,
                    const struct dry_row *row)
{
    const struct dry_answer *a = &row->answer;
    const bool whole = is_whole(row);
    const struct frag_gpu *g = whole ? dry_smallest(a, 0) : NULL;

    table_cell(t, false, "%s", row->value);
    put_end(t, a);
    table_size_or(t, need_of(row), whole ? "none is enough" : "-");
    table_size_or(t, reserved_of(row), "-");
    table_cell(t, false, "%s", g ? g->id : whole ? "none" : "-");
    if (judged)
        table_cell(t, !fits(row, judged), "%s",
                   fits(row, judged) ? "fits" : "does not fit");
}

/* What stays free of the GPU of the row; UNLIMITED if that is not known. */
static frag_size left_of(const struct dry_row *row)
{
    const struct dry_answer *a = &row->answer;

    return is_whole(row) ? dry_left(a, dry_largest(a)) : FRAG_UNLIMITED;
}

static frag_size others_of(const struct dry_row *row)
{
    const struct dry_answer *a = &row->answer;

    return a->count ? dry_outside(a, dry_largest(a), a->gpu) : FRAG_UNLIMITED;
}

/* Whether the program asks any GPU how much memory is free. */
static bool asks(const struct dry_try *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (dry_has(&t->rows[i].answer, "room"))
            return true;
    return false;
}

/* The row of a GPU; a cache and tokens if a server told them. */
static void put_gpu(struct table *t, const struct dry_row *row)
{
    const struct dry_answer *a = &row->answer;
    const bool fit = fits(row, a->gpu), told = a->server.server != NULL;

    table_cell(t, false, "%s", row->value);
    table_size(t, a->gpu->total);
    put_end(t, a);
    table_size_or(t, need_of(row), "-");
    table_size_or(t, reserved_of(row), "-");
    table_size_or(t, others_of(row), "-");
    table_size_or(t, left_of(row), "-");
    if (told && a->server.cache != FRAG_UNLIMITED)
        table_size(t, a->server.cache);
    else
        table_cell(t, false, "%s", "");
    if (told && a->server.tokens != FRAG_UNLIMITED)
        table_count(t, a->server.tokens);
    else
        table_cell(t, false, "%s", "");
    table_cell(t, !fit, "%s",
               fit             ? "fits"
               : is_whole(row) ? "does not fit"
                               : "not known");
}

static enum frag_err put_gpus(const struct dry_try *t, FILE *out)
{
    struct table rows =
        table_of("lrlrrrrool", "GPU|memory|run|need|peak reserved|others|"
                               "stays free|cache|tokens");

    table_cell(&rows, false, "%s", "");
    for (size_t i = 0; i < t->count; i++)
        put_gpu(&rows, &t->rows[i]);
    FRAG_TRY(table_print(&rows, out, t->color));
    if (asks(t))
        fputs("\nthe program asks how much memory is free, so what it needs "
              "follows from the GPU\n",
              out);
    return FRAG_OK;
}

static enum frag_err put_values(const struct dry_try *t, FILE *out)
{
    static const char heads[] = "value|run|need|peak reserved|smallest GPU";
    struct table rows = table_of(t->judged ? "llrrll" : "llrrl", heads);
    struct table gpus = table_of("lrl", "GPU|memory|largest that fits");
    const struct frag_gpu *g;

    if (t->judged)
        table_cell(&rows, false, "on the %s", t->judged->name);
    for (size_t i = 0; i < t->count; i++)
        put_row(&rows, t->judged, &t->rows[i]);
    FRAG_TRY(table_print(&rows, out, t->color));
    for (size_t i = 0; (g = gpu_at(t, i)); i++) {
        const struct dry_row *row = largest(t, g);

        table_cell(&gpus, false, "%s", t->judged ? g->name : g->id);
        table_size(&gpus, g->total);
        table_cell(&gpus, !row, "%s", row ? row->value : "none");
    }
    fputc('\n', out);
    return table_print(&gpus, out, t->color);
}

static void json_row(struct frag_json *j, const struct dry_row *row)
{
    const struct dry_answer *a = &row->answer;

    frag_json_new_object(j, 4, NULL);
    frag_json_text(j, "value", row->value);
    frag_json_text(j, "gpu", a->gpu->id);
    frag_json_number(j, "memory_bytes", a->gpu->total);
    frag_json_number(j, "status", (uint64_t)a->status);
    frag_json_bool(j, "whole", is_whole(row));
    frag_json_bool(j, "out_of_memory", dry_died(a));
    frag_json_count(j, "need_bytes", need_of(row));
    frag_json_count(j, "peak_reserved_bytes", reserved_of(row));
    frag_json_count(j, "others_bytes", others_of(row));
    frag_json_count(j, "left_bytes", left_of(row));
    dry_put_server(a, j);
    frag_json_bool(j, "asks_free_memory", dry_has(a, "room"));
    frag_json_bool(j, "fits", fits(row, a->gpu));
    frag_json_array(j, "fits_gpus");
    for (const struct frag_gpu *g = frag_gpus; g->id; g++)
        if (dry_tells(a, g) && fits(row, g))
            frag_json_text(j, NULL, g->id);
    frag_json_end(j);
    frag_json_end(j);
}

enum frag_err dry_try_put(void *user, FILE *out, struct frag_json *j,
                          struct frag_error *e)
{
    const struct dry_try *t = user;

    (void)e;
    for (size_t i = 0; j && i < t->count; i++)
        json_row(j, &t->rows[i]);
    return j ? FRAG_OK : t->gpus ? put_gpus(t, out) : put_values(t, out);
}

void dry_try_put_after(void *user, struct frag_json *j)
{
    const struct dry_try *t = user;
    const struct frag_gpu *g;

    frag_json_array(j, "largest");
    for (size_t i = 0; !t->gpus && (g = gpu_at(t, i)); i++) {
        const struct dry_row *row = largest(t, g);

        frag_json_new_object(j, 4, NULL);
        frag_json_text(j, "gpu", g->id);
        frag_json_number(j, "memory_bytes", g->total);
        frag_json_text(j, "value", row ? row->value : NULL);
        frag_json_end(j);
    }
    frag_json_end(j);
}
