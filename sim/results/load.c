/* load.c - reads a result file, by the same tables of columns that wrote it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/results/columns.h"
#include "traces/file/guard.h"

/* The open file, and its size in bytes, which bounds the sizes in it. */
struct input {
    hid_t file;
    uint64_t bytes;
    struct hdf5_fault *fault;
    struct hdf5_quiet quiet;
};

/* The text of an attribute; the caller frees it. NULL if there is no such text
 * or no memory. */
static char *get_text(const struct input *in, hid_t at, const char *name)
{
    char *text;

    return hdf5_text(at, name, in->bytes, &text) == FRAG_OK ? text : NULL;
}

/* As get_text, but "" if there is no such attribute. */
static char *get_text_or_none(const struct input *in, hid_t at,
                              const char *name)
{
    return H5Aexists(at, name) > 0 ? get_text(in, at, name) : strdup("");
}

/* The number of an attribute; 0 if there is none. */
static uint64_t get_count(hid_t at, const char *name)
{
    uint64_t value = 0;

    return hdf5_number(at, name, &value) ? value : 0;
}

/* The HDF5 type of a field in memory. An optional count is read as a double,
 * also from a file of schema 1, and then becomes a count (settle). */
static hid_t memory_type(enum frag_column_kind kind)
{
    switch (kind) {
    case FRAG_COLUMN_REAL:
    case FRAG_COLUMN_OPTIONAL:
        return H5T_NATIVE_DOUBLE;
    case FRAG_COLUMN_COUNT32:
        return H5T_NATIVE_UINT32;
    case FRAG_COLUMN_ADDRESS:
        return H5T_NATIVE_UINT64;
    default:
        return H5T_NATIVE_INT64;
    }
}

/* Sets the optional counts, which a file of an earlier schema may lack, to the
 * double that means none. */
static void preset(const struct frag_column *columns, char *rows,
                   size_t row_size, size_t count)
{
    const double none = NAN;

    for (const struct frag_column *c = columns; c->kind != FRAG_COLUMN_END; c++)
        for (size_t i = 0; c->kind == FRAG_COLUMN_OPTIONAL && i < count; i++)
            memcpy(rows + i * row_size + c->offset, &none, sizeof(none));
}

/* Replaces the doubles that were read for optional counts by the counts. False
 * if one of them is no count. */
static bool settle(const struct frag_column *columns, char *rows,
                   size_t row_size, size_t count)
{
    for (const struct frag_column *c = columns; c->kind != FRAG_COLUMN_END; c++)
        for (size_t i = 0; c->kind == FRAG_COLUMN_OPTIONAL && i < count; i++) {
            char *at = rows + i * row_size + c->offset;
            uint64_t n;
            double x;

            memcpy(&x, at, sizeof(x));
            if (!frag_optional_count(x, &n))
                return false;
            memcpy(at, &n, sizeof(n));
        }
    return true;
}

/* -- the summary --------------------------------------------------------- */

/* The columns that schema 3 renamed. */
static const struct {
    const char *name, *before;
} RENAMED[] = {
    {"overhead_at_peak_requested", "overhead_at_live_peak"},
    {"overhead_at_peak_reserved", "overhead_at_held_peak"},
};

/* The name of a column in the table of a file: an earlier one if only that is
 * there. */
static const char *name_in(hid_t table, const char *name)
{
    for (size_t i = 0; i < sizeof(RENAMED) / sizeof(RENAMED[0]); i++)
        if (!strcmp(RENAMED[i].name, name) &&
            H5Tget_member_index(table, RENAMED[i].before) >= 0)
            return RENAMED[i].before;
    return name;
}

/* The type of a row in memory, with the names that the table has. */
static hid_t row_type(hid_t data)
{
    hid_t table = data < 0 ? -1 : H5Dget_type(data);
    hid_t type = table < 0
                     ? -1
                     : H5Tcreate(H5T_COMPOUND, sizeof(struct frag_result_row));

    for (const struct frag_column *c = frag_summary_columns;
         type >= 0 && c->kind != FRAG_COLUMN_END; c++)
        if (c->kind != FRAG_COLUMN_TEXT)
            H5Tinsert(type, name_in(table, c->name), c->offset,
                      memory_type(c->kind));
    hdf5_drop(table);
    return type;
}

/* Opens a dataset of a table that the file can hold. Negative if there is
 * none. */
static hid_t open_data(const struct input *in, hid_t at, const char *name,
                       size_t item, uint64_t *rows)
{
    hid_t data = hdf5_dataset(in->fault, at, name);

    if (data >= 0 && !hdf5_rows(data, item, in->bytes, rows)) {
        H5Dclose(data);
        data = -1;
    }
    return data;
}

/* Reads the numbers of /summary. The texts are read from the runs instead. */
static enum frag_err get_summary(const struct input *in,
                                 struct frag_result_row **rows, uint64_t *count)
{
    struct frag_result_row *table = NULL;
    enum frag_err err = FRAG_CORRUPT;
    uint64_t n = 0;
    hid_t data = open_data(in, in->file, "summary", sizeof(*table), &n);
    hid_t type =
        data >= 0 && hdf5_holds(data, H5T_COMPOUND) ? row_type(data) : -1;

    if (type >= 0) {
        table = calloc((size_t)n + 1, sizeof(*table));
        err = table ? FRAG_CORRUPT : FRAG_NOMEM;
        if (table)
            preset(frag_summary_columns, (char *)table, sizeof(*table),
                   (size_t)n);
        if (table &&
            H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, table) >= 0 &&
            settle(frag_summary_columns, (char *)table, sizeof(*table),
                   (size_t)n)) {
            *rows = table;
            *count = n;
            table = NULL;
            err = FRAG_OK;
        }
    }
    free(table);
    hdf5_drop(type);
    hdf5_drop(data);
    return err;
}

/* -- the tables of a run ------------------------------------------------- */

static void scatter(const struct frag_column *c, char *rows, size_t row_size,
                    size_t count, const char *values)
{
    size_t wide = c->kind == FRAG_COLUMN_COUNT32 ? 4 : 8;

    for (size_t i = 0; i < count; i++)
        memcpy(rows + i * row_size + c->offset, values + i * wide, wide);
}

/* Reads a column of the table into values and from there into the rows. */
static bool get_column(const struct input *in, hid_t group,
                       const struct frag_column *c, char *rows, size_t row_size,
                       size_t count, char *values)
{
    uint64_t n = 0;
    hid_t data = open_data(in, group, c->name, sizeof(uint64_t), &n);
    bool done;

    if (data < 0)
        return false;
    done = n == count &&
           (hdf5_holds(data, H5T_INTEGER) || hdf5_holds(data, H5T_FLOAT)) &&
           (!count || H5Dread(data, memory_type(c->kind), H5S_ALL, H5S_ALL,
                              H5P_DEFAULT, values) >= 0);
    H5Dclose(data);
    if (done)
        scatter(c, rows, row_size, count, values);
    return done;
}

/* Sets *count to the rows of the table; false if it does not exist. */
static bool table_rows(const struct input *in, hid_t group,
                       const struct frag_column *columns, uint64_t *count)
{
    hid_t data = group >= 0 ? open_data(in, group, columns->name,
                                        sizeof(uint64_t), count)
                            : -1;

    hdf5_drop(data);
    return data >= 0;
}

/* Reads the rows of a table; the caller frees them. NULL on failure; then *err
 * is set, unless the table does not exist. */
static void *get_table(const struct input *in, hid_t run, const char *name,
                       const struct frag_column *columns, size_t row_size,
                       uint64_t *count, enum frag_err *err)
{
    hid_t group = hdf5_group(in->fault, run, name);
    char *rows = NULL, *values = NULL;
    bool done = false;
    uint64_t n;

    if (table_rows(in, group, columns, &n)) {
        rows = calloc((size_t)n + 1, row_size);
        values = calloc((size_t)n + 1, sizeof(uint64_t));
        done = rows && values;
        *err = done ? FRAG_CORRUPT : FRAG_NOMEM;
    }
    for (const struct frag_column *c = columns;
         done && c->kind != FRAG_COLUMN_END; c++)
        done = get_column(in, group, c, rows, row_size, (size_t)n, values);
    done = done && settle(columns, rows, row_size, (size_t)n);
    hdf5_drop(group);
    free(values);
    if (!done) {
        free(rows);
        return NULL;
    }
    *count = n;
    *err = FRAG_OK;
    return rows;
}

/* ---- texts ---- */

/* What stands for an attribute that is not there. */
enum lack { REFUSED, EMPTY, NOTHING };

/* The texts of an object: the attribute, and the offset of the member. */
struct text_field {
    const char *name; /* NULL ends a table */
    size_t offset;
    enum lack lack;
};

/* clang-format off */
#define TEXT(name, field, lack)                                                \
    {name, offsetof(struct frag_loaded_run, field), lack}
static const struct text_field run_texts[] = {
    TEXT("trace", id.trace.name, REFUSED), TEXT("policy", id.policy, REFUSED),
    TEXT("backend", id.backend, REFUSED),
    TEXT("trace_path", id.trace.path, REFUSED),
    TEXT("trace_format", id.trace.format, REFUSED),
    TEXT("trace_settings", id.trace.settings, REFUSED),
    TEXT("policy_name", policy_used.name, REFUSED),
    TEXT("policy_source", policy_used.source, REFUSED),
    TEXT("params", run.params, REFUSED), TEXT("edit", id.trace.edit, EMPTY),
    TEXT("capacity", id.capacity, EMPTY), {NULL, 0, REFUSED},
};
#undef TEXT
#define TEXT(field, lack) {#field, offsetof(struct frag_loaded, field), lack}
static const struct text_field file_texts[] = {
    {"schema_version", offsetof(struct frag_loaded, schema), REFUSED},
    TEXT(version, REFUSED), TEXT(commit, REFUSED), TEXT(command, REFUSED),
    TEXT(started, EMPTY), TEXT(ended, EMPTY), TEXT(settings, NOTHING),
    TEXT(missing, NOTHING), TEXT(shards, NOTHING), {NULL, 0, REFUSED},
};
#undef TEXT
/* clang-format on */

static char **text_at(void *of, const struct text_field *f)
{
    return (char **)(void *)((char *)of + f->offset);
}

static bool get_texts(const struct input *in, hid_t at,
                      const struct text_field *fields, void *to)
{
    bool done = true;

    for (const struct text_field *f = fields; f->name; f++) {
        char *text = f->lack == EMPTY ? get_text_or_none(in, at, f->name)
                                      : get_text(in, at, f->name);

        *text_at(to, f) = text;
        done = done && (text || f->lack == NOTHING);
    }
    return done;
}

static void free_texts(const struct text_field *fields, void *of)
{
    for (const struct text_field *f = fields; f->name; f++)
        free(*text_at(of, f));
}

static void drop_run(struct frag_loaded_run *r)
{
    frag_run_free(&r->run);
    free_texts(run_texts, r); /* run.params is NULL by now */
    free((void *)(uintptr_t)r->id.trace.notes);
}

/* Reads the word of frag_start_names; files before 2.2 have none. */
static bool get_start(const struct input *in, hid_t at, uint64_t *start)
{
    char *word = get_text_or_none(in, at, "start");
    bool found = false;

    for (*start = 0; word && !found && *start < FRAG_START_COUNT; ++*start)
        found = !strcmp(word, frag_start_names[*start]);
    *start -= found;
    free(word);
    return found;
}

static bool get_identity(const struct input *in, hid_t at,
                         struct frag_loaded_run *r)
{
    char **notes = NULL, *sha256 = get_text(in, at, "trace_sha256");
    uint64_t count = 0;
    bool done = sha256 != NULL;

    snprintf(r->id.trace.sha256, sizeof(r->id.trace.sha256), "%s",
             done ? sha256 : "");
    free(sha256);
    if (!get_texts(in, at, run_texts, r) || !done ||
        !get_start(in, at, &r->run.summary.start))
        return false;
    r->id.trace.file_bytes = get_count(at, "trace_bytes");
    r->id.trace.events = get_count(at, "trace_events");
    r->id.stopped_at_oom = get_count(at, "stopped_at_oom");
    r->id.checked = H5Aexists(at, "checked") > 0 && get_count(at, "checked");
    r->id.bare = !hdf5_has(at, "series");
    done = hdf5_texts(at, "trace_notes", in->bytes, &notes, &count) == FRAG_OK;
    r->id.trace.notes = (const char *const *)notes;
    r->id.trace.note_count = (uint32_t)count;
    return done;
}

static enum frag_err get_tables(const struct input *in, hid_t at,
                                struct frag_run *run)
{
    enum frag_err err = FRAG_CORRUPT;

    run->points = get_table(in, at, "series", frag_series_columns,
                            sizeof(*run->points), &run->point_count, &err);
    if (!run->points)
        return err;
    run->ooms = get_table(in, at, "oom", frag_oom_columns, sizeof(*run->ooms),
                          &run->oom_count, &err);
    if (!run->ooms)
        return err;
    run->segments =
        get_table(in, at, "segments", frag_segment_columns,
                  sizeof(*run->segments), &run->segment_count, &err);
    return run->segments ? FRAG_OK : err;
}

static enum frag_err get_run(const struct input *in, hid_t at,
                             const struct frag_result_row *row,
                             struct frag_loaded_run *out)
{
    struct frag_loaded_run r = {
        .id.trace.device = (uint32_t)row->device,
        .id.bound = row->limit == FRAG_UNLIMITED
                        ? frag_capacity_bound(row->capacity)
                        : (struct frag_bound){.bytes = row->limit,
                                              .kind = FRAG_BOUND_LIMIT},
        .id.total = row->total,
        .id.seed = row->seed,
        .run.summary = row->summary,
    };
    enum frag_err err = get_identity(in, at, &r) ? FRAG_OK : FRAG_CORRUPT;

    if (err == FRAG_OK && !r.id.bare)
        err = get_tables(in, at, &r.run);
    if (err == FRAG_OK)
        *out = r;
    else
        drop_run(&r);
    return err;
}

static enum frag_err get_nth_run(const struct input *in, hid_t runs,
                                 const struct frag_result_row *rows,
                                 struct frag_loaded *l)
{
    enum frag_err err;
    char name[24];
    hid_t at;

    snprintf(name, sizeof(name), "%llu", (unsigned long long)l->count);
    at = hdf5_group(in->fault, runs, name);
    if (at < 0)
        return FRAG_CORRUPT;
    err = get_run(in, at, &rows[l->count], &l->runs[l->count]);
    H5Gclose(at);
    if (err == FRAG_OK) {
        l->runs[l->count].id.policy_used = &l->runs[l->count].policy_used;
        l->count++;
    }
    return err;
}

static enum frag_err get_runs(const struct input *in,
                              const struct frag_result_row *rows,
                              struct frag_loaded *l, uint64_t count)
{
    hid_t runs = hdf5_group(in->fault, in->file, "runs");
    enum frag_err err = runs < 0 ? FRAG_CORRUPT : FRAG_OK;

    l->runs = calloc(count + 1, sizeof(*l->runs));
    if (!l->runs)
        err = FRAG_NOMEM;
    while (err == FRAG_OK && l->count < count)
        err = get_nth_run(in, runs, rows, l);
    hdf5_drop(runs);
    return err;
}

/* Whether the file calls itself a result file. */
static bool is_named_results(const struct input *in)
{
    char *name = get_text(in, in->file, "schema_name");
    bool is = name && !strcmp(name, "fragsim-results");

    free(name);
    return is;
}

static enum frag_err check_schema(const struct input *in, const char *path,
                                  struct frag_error *e)
{
    char *version;
    enum frag_err err = FRAG_OK;

    if (!is_named_results(in) && hdf5_has(in->file, "devices"))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: expected a result file, found a trace file; make "
                         "results of it first: fragsim replay %s -o results.h5",
                         path, path);
    if (!is_named_results(in))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: expected a fragsim result file, found another "
                         "HDF5 file",
                         path);
    version = get_text(in, in->file, "schema_version");
    if (!version || strspn(version, "123") != 1 || version[1] != '.')
        err = frag_fail(e, FRAG_CORRUPT,
                        "%s: expected a schema_version up to "
                        "" FRAG_RESULTS_SCHEMA ", found \"%s\"; use the "
                        "fragsim that wrote the file, or a later one",
                        path, version ? version : "");
    free(version);
    return err;
}

/* Checks that the file is a result file, and complete. */
static enum frag_err check_file(const struct input *in, const char *path,
                                struct frag_error *e)
{
    FRAG_TRY(check_schema(in, path, e));
    if (H5Aexists(in->file, "complete") <= 0)
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: the file is incomplete: the attribute `complete` "
                         "is missing; repeat the command that wrote it",
                         path);
    return FRAG_OK;
}

static enum frag_err load(const struct input *in, const char *path,
                          struct frag_loaded *loaded, struct frag_error *e)
{
    struct frag_result_row *rows = NULL;
    enum frag_err err;
    uint64_t count;

    FRAG_TRY(check_file(in, path, e));
    if (!get_texts(in, in->file, file_texts, loaded))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: an attribute is missing: version, commit or "
                         "command of the program that made the file",
                         path);
    err = get_summary(in, &rows, &count);
    if (err == FRAG_CORRUPT)
        return frag_fail(e, err,
                         "%s: /summary is missing, or a number in it is "
                         "malformed; repeat the command that wrote the file",
                         path);
    if (err == FRAG_OK)
        err = get_runs(in, rows, loaded, count);
    free(rows);
    if (err == FRAG_NOMEM)
        return frag_no_memory(e, "%s", path);
    if (err != FRAG_OK)
        return frag_fail(e, err,
                         "%s: cannot read run %llu: its tables or attributes "
                         "are missing or malformed",
                         path, (unsigned long long)loaded->count);
    return FRAG_OK;
}

/* Opens the file. False if HDF5 cannot; call close_input in any case. */
static bool open_input(const char *path, struct input *in,
                       struct hdf5_fault *fault)
{
    struct stat info = {0};

    *fault = (struct hdf5_fault){0};
    *in = (struct input){.fault = fault, .quiet = hdf5_quiet_begin(fault)};
    in->file = hdf5_open(fault, path);
    (void)stat(path, &info);
    in->bytes = (uint64_t)info.st_size;
    return in->file >= 0;
}

static void close_input(struct input *in)
{
    if (in->file >= 0)
        H5Fclose(in->file);
    hdf5_quiet_end(in->quiet);
}

static bool is_results(const char *path)
{
    struct hdf5_fault fault;
    struct input in;
    const bool is = open_input(path, &in, &fault) && is_named_results(&in);

    close_input(&in);
    return is;
}

static void try_is(const char *path)
{
    (void)is_results(path);
}

bool frag_results_is(const char *path)
{
    return hdf5_is(path) && hdf5_survives(path, try_is) && is_results(path);
}

static enum frag_err damaged(const char *path, struct frag_error *e)
{
    return frag_fail(e, FRAG_CORRUPT,
                     "%s: expected a complete result file, found one that is "
                     "damaged or ends too early; copy it again, or repeat the "
                     "command that wrote it",
                     path);
}

/* Reports why HDF5 could not open the file: it is no file, or no HDF5. */
static enum frag_err unopened(const char *path, struct frag_error *e)
{
    struct stat at;

    if (stat(path, &at) < 0)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(at.st_mode))
        return frag_fail(
            e, FRAG_IO, "%s: expected a fragsim result file, found %s", path,
            S_ISDIR(at.st_mode) ? "a folder" : "a pipe or a device");
    if (hdf5_is(path))
        return damaged(path, e);
    return frag_fail(e, FRAG_CORRUPT,
                     "%s: expected a fragsim result file, found no HDF5; if it "
                     "is a trace, make results of it first: fragsim replay %s "
                     "-o results.h5",
                     path, path);
}

static enum frag_err load_file(const char *path, struct frag_loaded *out,
                               struct frag_error *e)
{
    struct frag_loaded loaded = {0};
    struct hdf5_fault fault;
    struct input in;
    enum frag_err err;

    err = open_input(path, &in, &fault) ? load(&in, path, &loaded, e)
                                        : unopened(path, e);
    close_input(&in);
    err = hdf5_explain(&fault, path, err, e);
    if (err != FRAG_OK) {
        frag_results_unload(&loaded);
        return err;
    }
    *out = loaded;
    return FRAG_OK;
}

/* A trial in a child process: see hdf5_survives. */
static void try_load(const char *path)
{
    struct frag_loaded loaded;
    struct frag_error e;

    if (load_file(path, &loaded, &e) == FRAG_OK)
        frag_results_unload(&loaded);
}

enum frag_err frag_results_load(const char *path, struct frag_loaded *out,
                                struct frag_error *e)
{
    if (access(path, R_OK) < 0)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    if (hdf5_is(path) && !hdf5_survives(path, try_load))
        return damaged(path, e);
    return load_file(path, out, e);
}

void frag_results_unload(struct frag_loaded *loaded)
{
    for (uint64_t i = 0; i < loaded->count; i++)
        drop_run(&loaded->runs[i]);
    free(loaded->runs);
    free_texts(file_texts, loaded);
    *loaded = (struct frag_loaded){0};
}
