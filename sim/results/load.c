/* load.c - reads a result file, by the same tables of columns that wrote it. */
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/results/columns.h"

/* The text of an attribute; the caller frees it. NULL if there is no such text
 * or no memory. */
static char *get_text(hid_t at, const char *name)
{
    hid_t attribute = H5Aopen(at, name, H5P_DEFAULT), type = H5Tcopy(H5T_C_S1);
    char *text = NULL, *copy = NULL;

    if (attribute >= 0 && type >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0 &&
        H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
        H5Aread(attribute, type, &text) >= 0 && text) {
        copy = strdup(text);
        H5free_memory(text);
    }
    if (type >= 0)
        H5Tclose(type);
    if (attribute >= 0)
        H5Aclose(attribute);
    return copy;
}

/* As get_text, but "" if there is no such attribute. */
static char *get_text_or_none(hid_t at, const char *name)
{
    return H5Aexists(at, name) > 0 ? get_text(at, name) : strdup("");
}

/* The number of an attribute; 0 if there is none. */
static uint64_t get_count(hid_t at, const char *name)
{
    hid_t attribute = H5Aopen(at, name, H5P_DEFAULT);
    int64_t value = 0;

    if (attribute >= 0) {
        if (H5Aread(attribute, H5T_NATIVE_INT64, &value) < 0)
            value = 0;
        H5Aclose(attribute);
    }
    return (uint64_t)value;
}

/* Reads an array of texts. The caller frees *texts, and each text with
 * H5free_memory. */
static bool get_texts(hid_t at, const char *name, char ***texts,
                      uint64_t *count)
{
    hid_t attribute = H5Aopen(at, name, H5P_DEFAULT);
    hid_t space = attribute >= 0 ? H5Aget_space(attribute) : -1;
    hid_t type = H5Tcopy(H5T_C_S1);
    hssize_t n = space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    bool done = false;

    if (n >= 0 && type >= 0) {
        *texts = calloc((size_t)n + 1, sizeof(**texts));
        done = *texts && H5Tset_size(type, H5T_VARIABLE) >= 0 &&
               H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
               (!n || H5Aread(attribute, type, *texts) >= 0);
        *count = done ? (uint64_t)n : 0;
    }
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    if (attribute >= 0)
        H5Aclose(attribute);
    return done;
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

/* Number of rows of a one-dimensional dataset; -1 if it is not one. */
static hssize_t rows_of(hid_t data)
{
    hid_t space = H5Dget_space(data);
    hssize_t count = -1;

    if (space >= 0 && H5Sget_simple_extent_ndims(space) == 1)
        count = H5Sget_simple_extent_npoints(space);
    if (space >= 0)
        H5Sclose(space);
    return count;
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

static hid_t row_type(void)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct frag_result_row));

    for (const struct frag_column *c = frag_summary_columns;
         type >= 0 && c->kind != FRAG_COLUMN_END; c++)
        if (c->kind != FRAG_COLUMN_TEXT)
            H5Tinsert(type, c->name, c->offset, memory_type(c->kind));
    return type;
}

/* Reads the numbers of /summary. The texts are read from the runs instead. */
static enum frag_err get_summary(hid_t file, struct frag_result_row **rows,
                                 uint64_t *count)
{
    hid_t data = H5Dopen2(file, "/summary", H5P_DEFAULT), type = row_type();
    struct frag_result_row *table = NULL;
    enum frag_err err = FRAG_CORRUPT;
    hssize_t n = data >= 0 ? rows_of(data) : -1;

    if (n >= 0 && type >= 0) {
        table = calloc((size_t)n + 1, sizeof(*table));
        err = table ? FRAG_CORRUPT : FRAG_NOMEM;
        if (table &&
            H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, table) >= 0 &&
            settle(frag_summary_columns, (char *)table, sizeof(*table),
                   (size_t)n)) {
            *rows = table;
            *count = (uint64_t)n;
            table = NULL;
            err = FRAG_OK;
        }
    }
    free(table);
    if (type >= 0)
        H5Tclose(type);
    if (data >= 0)
        H5Dclose(data);
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

static bool get_column(hid_t group, const struct frag_column *c, char *rows,
                       size_t row_size, size_t count, char *values)
{
    hid_t data = H5Dopen2(group, c->name, H5P_DEFAULT);
    bool done;

    if (data < 0)
        return false;
    done = rows_of(data) == (hssize_t)count &&
           (!count || H5Dread(data, memory_type(c->kind), H5S_ALL, H5S_ALL,
                              H5P_DEFAULT, values) >= 0);
    H5Dclose(data);
    if (done)
        scatter(c, rows, row_size, count, values);
    return done;
}

static hssize_t table_rows(hid_t group, const struct frag_column *columns)
{
    hid_t data = H5Dopen2(group, columns->name, H5P_DEFAULT);
    hssize_t count = data >= 0 ? rows_of(data) : -1;

    if (data >= 0)
        H5Dclose(data);
    return count;
}

/* Reads the rows of a table; the caller frees them. NULL on failure; then *err
 * is set, unless the table does not exist. */
static void *get_table(hid_t run, const char *name,
                       const struct frag_column *columns, size_t row_size,
                       uint64_t *count, enum frag_err *err)
{
    hid_t group = H5Gopen2(run, name, H5P_DEFAULT);
    hssize_t n = group >= 0 ? table_rows(group, columns) : -1;
    char *rows = NULL, *values = NULL;
    bool done = false;

    if (n >= 0) {
        rows = calloc((size_t)n + 1, row_size);
        values = calloc((size_t)n + 1, sizeof(uint64_t));
        done = rows && values;
        *err = done ? FRAG_CORRUPT : FRAG_NOMEM;
    }
    for (const struct frag_column *c = columns;
         done && c->kind != FRAG_COLUMN_END; c++)
        done = get_column(group, c, rows, row_size, (size_t)n, values);
    done = done && settle(columns, rows, row_size, (size_t)n);
    if (group >= 0)
        H5Gclose(group);
    free(values);
    if (!done) {
        free(rows);
        return NULL;
    }
    *count = (uint64_t)n;
    *err = FRAG_OK;
    return rows;
}

/* The texts of a run: name of the attribute, offset of the member. */
static const struct text_field {
    const char *name;
    size_t offset;
} run_texts[] = {
#define TEXT(field)                                     \
    {                                                   \
#field, offsetof(struct frag_loaded_run, field) \
    }
    TEXT(trace),          TEXT(policy),      TEXT(params),
    TEXT(backend),        TEXT(trace_path),  TEXT(trace_format),
    TEXT(trace_settings), TEXT(policy_name), TEXT(policy_source),
    TEXT(trace_sha256),
#undef TEXT
};

enum { RUN_TEXTS = sizeof(run_texts) / sizeof(*run_texts) };

static char **text_at(struct frag_loaded_run *r, size_t i)
{
    return (char **)(void *)((char *)r + run_texts[i].offset);
}

static void drop_run(struct frag_loaded_run *r)
{
    for (size_t i = 0; i < RUN_TEXTS; i++)
        free(*text_at(r, i));
    free(r->edit);
    for (uint64_t i = 0; i < r->note_count; i++)
        H5free_memory(r->trace_notes[i]);
    free(r->trace_notes);
    frag_run_free(&r->run);
}

/* Reads the word of frag_start_names; files before 2.2 have none. */
static bool get_start(hid_t at, uint64_t *start)
{
    char *word = get_text_or_none(at, "start");
    bool found = false;

    for (*start = 0; word && !found && *start < FRAG_START_COUNT; ++*start)
        found = !strcmp(word, frag_start_names[*start]);
    *start -= found;
    free(word);
    return found;
}

static bool get_identity(hid_t at, struct frag_loaded_run *r)
{
    for (size_t i = 0; i < RUN_TEXTS; i++) {
        *text_at(r, i) = get_text(at, run_texts[i].name);
        if (!*text_at(r, i))
            return false;
    }
    r->edit = get_text_or_none(at, "edit");
    if (!r->edit || !get_start(at, &r->run.summary.start))
        return false;
    snprintf(r->run.params, sizeof(r->run.params), "%s", r->params);
    r->trace_bytes = get_count(at, "trace_bytes");
    r->trace_events = get_count(at, "trace_events");
    r->stopped_at_oom = get_count(at, "stopped_at_oom");
    r->checked = H5Aexists(at, "checked") > 0 && get_count(at, "checked");
    r->bare = H5Lexists(at, "series", H5P_DEFAULT) == 0;
    return get_texts(at, "trace_notes", &r->trace_notes, &r->note_count);
}

static enum frag_err get_tables(hid_t at, struct frag_run *run)
{
    enum frag_err err = FRAG_CORRUPT;

    run->points = get_table(at, "series", frag_series_columns,
                            sizeof(*run->points), &run->point_count, &err);
    if (!run->points)
        return err;
    run->ooms = get_table(at, "oom", frag_oom_columns, sizeof(*run->ooms),
                          &run->oom_count, &err);
    if (!run->ooms)
        return err;
    run->segments =
        get_table(at, "segments", frag_segment_columns, sizeof(*run->segments),
                  &run->segment_count, &err);
    return run->segments ? FRAG_OK : err;
}

static enum frag_err get_run(hid_t at, const struct frag_result_row *row,
                             struct frag_loaded_run *out)
{
    struct frag_loaded_run r = {
        .device = row->device,
        .capacity = row->capacity,
        .total = row->total,
        .seed = row->seed,
        .run.summary = row->summary,
    };
    enum frag_err err = get_identity(at, &r) ? FRAG_OK : FRAG_CORRUPT;

    if (err == FRAG_OK && !r.bare)
        err = get_tables(at, &r.run);
    if (err == FRAG_OK)
        *out = r;
    else
        drop_run(&r);
    return err;
}

static enum frag_err get_runs(hid_t file, const struct frag_result_row *rows,
                              struct frag_loaded *l, uint64_t count)
{
    enum frag_err err = FRAG_OK;

    l->runs = calloc(count + 1, sizeof(*l->runs));
    if (!l->runs)
        return FRAG_NOMEM;
    while (err == FRAG_OK && l->count < count) {
        char name[48];
        hid_t at;

        snprintf(name, sizeof(name), "/runs/%llu",
                 (unsigned long long)l->count);
        at = H5Gopen2(file, name, H5P_DEFAULT);
        if (at < 0)
            return FRAG_CORRUPT;
        err = get_run(at, &rows[l->count], &l->runs[l->count]);
        H5Gclose(at);
        l->count += err == FRAG_OK;
    }
    return err;
}

/* Whether the file calls itself a result file. */
static bool is_named_results(hid_t file)
{
    char *name = get_text(file, "schema_name");
    bool is = name && !strcmp(name, "fragsim-results");

    free(name);
    return is;
}

static enum frag_err check_schema(hid_t file, const char *path,
                                  struct frag_error *e)
{
    char *version;
    enum frag_err err = FRAG_OK;

    if (!is_named_results(file) && H5Lexists(file, "devices", H5P_DEFAULT) > 0)
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: expected a result file, found a trace file; make "
                         "results of it first: fragsim replay %s -o results.h5",
                         path, path);
    if (!is_named_results(file))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: expected a fragsim result file, found another "
                         "HDF5 file",
                         path);
    version = get_text(file, "schema_version");
    if (!version || (strncmp(version, "1.", 2) != 0 &&
                     strncmp(version, FRAG_RESULTS_SCHEMA, 2) != 0))
        err = frag_fail(e, FRAG_CORRUPT,
                        "%s: expected a schema_version up to "
                        "" FRAG_RESULTS_SCHEMA ", found \"%s\"; use the "
                        "fragsim that wrote the file, or a later one",
                        path, version ? version : "");
    free(version);
    return err;
}

/* Checks that the file is a result file, and complete. */
static enum frag_err check_file(hid_t file, const char *path,
                                struct frag_error *e)
{
    FRAG_TRY(check_schema(file, path, e));
    if (H5Aexists(file, "complete") <= 0)
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: the file is incomplete: the attribute `complete` "
                         "is missing; repeat the command that wrote it",
                         path);
    return FRAG_OK;
}

/* Reads the attributes that describe the program that made the file. */
static bool get_provenance(hid_t file, struct frag_loaded *l)
{
    l->version = get_text(file, "version");
    l->commit = get_text(file, "commit");
    l->command = get_text(file, "command");
    l->started = get_text_or_none(file, "started");
    l->ended = get_text_or_none(file, "ended");
    l->settings = get_text(file, "settings");
    l->missing = get_text(file, "missing");
    return l->version && l->commit && l->command && l->started && l->ended;
}

static enum frag_err load(hid_t file, const char *path,
                          struct frag_loaded *loaded, struct frag_error *e)
{
    struct frag_result_row *rows = NULL;
    enum frag_err err;
    uint64_t count;

    FRAG_TRY(check_file(file, path, e));
    if (!get_provenance(file, loaded))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: an attribute is missing: version, commit or "
                         "command of the program that made the file",
                         path);
    err = get_summary(file, &rows, &count);
    if (err == FRAG_CORRUPT)
        return frag_fail(e, err,
                         "%s: /summary is missing, or a number in it is "
                         "malformed; repeat the command that wrote the file",
                         path);
    if (err == FRAG_OK)
        err = get_runs(file, rows, loaded, count);
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

static bool begins_as_hdf5(const char *path)
{
    static const char mark[] = {'\x89', 'H',  'D',    'F',
                                '\r',   '\n', '\x1a', '\n'};
    char bytes[sizeof(mark)];
    FILE *file = fopen(path, "rbe");
    const size_t count = file ? fread(bytes, 1, sizeof(bytes), file) : 0;

    if (file)
        fclose(file);
    return count == sizeof(mark) && !memcmp(bytes, mark, sizeof(mark));
}

bool frag_results_is(const char *path)
{
    bool is;
    hid_t file;

    if (!begins_as_hdf5(path))
        return false;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    is = file >= 0 && is_named_results(file);
    if (file >= 0)
        H5Fclose(file);
    return is;
}

/* Reports why HDF5 could not open the file: the file is missing or locked, or
 * is not HDF5. */
static enum frag_err unopened(const char *path, struct frag_error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool free_to_read = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;
    int why = errno;
    struct stat st;

    if (fd >= 0)
        close(fd);
    if (fd < 0)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(why));
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return frag_fail(e, FRAG_IO,
                         "%s: expected a fragsim result file, found a folder",
                         path);
    if (!free_to_read && why == EWOULDBLOCK)
        return frag_fail(e, FRAG_IO,
                         "%s: another program has locked the file for writing; "
                         "wait until that program has ended, or set "
                         "HDF5_USE_FILE_LOCKING=FALSE",
                         path);
    if (!free_to_read)
        return frag_fail(e, FRAG_IO,
                         "%s: the file system cannot lock the file (%s); set "
                         "HDF5_USE_FILE_LOCKING=FALSE",
                         path, strerror(why));
    if (begins_as_hdf5(path))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: expected a complete result file, found one that "
                         "is damaged or ends too early; copy it again, or "
                         "repeat the command that wrote it",
                         path);
    return frag_fail(e, FRAG_CORRUPT,
                     "%s: expected a fragsim result file, found no HDF5; if it "
                     "is a trace, make results of it first: fragsim replay %s "
                     "-o results.h5",
                     path, path);
}

enum frag_err frag_results_load(const char *path, struct frag_loaded *out,
                                struct frag_error *e)
{
    struct frag_loaded loaded = {0};
    enum frag_err err;
    hid_t file;

    if (access(path, R_OK) < 0)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0)
        return unopened(path, e);
    err = load(file, path, &loaded, e);
    H5Fclose(file);
    if (err != FRAG_OK) {
        frag_results_unload(&loaded);
        return err;
    }
    *out = loaded;
    return FRAG_OK;
}

void frag_results_unload(struct frag_loaded *loaded)
{
    for (uint64_t i = 0; i < loaded->count; i++)
        drop_run(&loaded->runs[i]);
    free(loaded->runs);
    free(loaded->version);
    free(loaded->commit);
    free(loaded->command);
    free(loaded->started);
    free(loaded->ended);
    free(loaded->settings);
    free(loaded->missing);
    *loaded = (struct frag_loaded){0};
}
