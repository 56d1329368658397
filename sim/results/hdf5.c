/* hdf5.c - writes the result file.
 *
 * The file is built in memory (HDF5's core driver) and written with plain
 * system calls. A full disk is therefore reported with the system's error text,
 * and HDF5 never has a file open that it can neither write nor close.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/results/put.h"
#include "sim/results/superblock.h"
#include "traces/bytes/atomic_file.h"
#include "traces/file/guard.h"
#include "traces/grow.h"

enum { CORE_STEP = 1 << 20 }; /* bytes by which the image grows */

struct frag_results {
    char *path;
    struct atomic_file output;
    const struct frag_provenance *provenance;
    hid_t file;
    struct frag_result_row *rows;
    size_t count;
    uint64_t room;
};

/* HDF5 refuses to run with headers of another version, so that the version of
 * the headers is that of the library. The library is not asked: it would
 * initialize all of its types. */
const char *frag_results_library(char text[32])
{
    snprintf(text, 32, "%d.%d.%d", H5_VERS_MAJOR, H5_VERS_MINOR,
             H5_VERS_RELEASE);
    return text;
}

/* Formats a time as "2026-01-31T12:00:00Z", in UTC. */
static const char *utc(int64_t seconds, char text[32])
{
    const time_t t = (time_t)seconds;
    struct tm tm;

    if (!gmtime_r(&t, &tm) || !strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm))
        snprintf(text, 32, "unknown");
    return text;
}

/* -- one run ------------------------------------------------------------- */

static bool put_identity(hid_t at, const struct frag_run_identity *id,
                         const struct frag_run *run)
{
    const struct frag_trace_identity *t = &id->trace;

    return hdf5_put_text(at, "trace", t->name) &&
           hdf5_put_text(at, "trace_path", t->path) &&
           hdf5_put_text(at, "trace_format", t->format ? t->format : "") &&
           hdf5_put_text(at, "trace_sha256", t->sha256) &&
           put_count(at, "trace_bytes", t->file_bytes) &&
           put_count(at, "trace_events", t->events) &&
           hdf5_put_text(at, "trace_settings",
                         t->settings ? t->settings : "") &&
           put_texts(at, "trace_notes", t->notes, t->note_count) &&
           hdf5_put_text(at, "edit", t->edit ? t->edit : "") &&
           hdf5_put_text(at, "capacity", id->capacity ? id->capacity : "") &&
           hdf5_put_text(at, "start", frag_start_names[run->summary.start]) &&
           put_count(at, "device", t->device) &&
           hdf5_put_text(at, "policy", id->policy) &&
           hdf5_put_text(at, "policy_name", id->policy_used->name) &&
           hdf5_put_text(at, "policy_source", id->policy_used->source) &&
           hdf5_put_text(at, "params", run->params) &&
           put_real(at, "capacity_bytes",
                    frag_optional_real(
                        frag_bound_of(id->bound, FRAG_BOUND_CAPACITY))) &&
           put_real(at, "process_limit_bytes",
                    frag_optional_real(
                        frag_bound_of(id->bound, FRAG_BOUND_LIMIT))) &&
           put_count(at, "device_total_bytes", id->total) &&
           hdf5_put_text(at, "backend", id->backend) &&
           put_count(at, "seed", id->seed) &&
           put_count(at, "stopped_at_oom", id->stopped_at_oom) &&
           put_count(at, "checked", id->checked);
}

static bool put_run(hid_t at, const struct frag_run_identity *id,
                    const struct frag_run *run)
{
    if (!put_identity(at, id, run))
        return false;
    return id->bare ||
           (put_table(at, "series", frag_series_columns, run->points,
                      sizeof(*run->points), run->point_count) &&
            put_table(at, "oom", frag_oom_columns, run->ooms,
                      sizeof(*run->ooms), run->oom_count) &&
            put_table(at, "segments", frag_segment_columns, run->segments,
                      sizeof(*run->segments), run->segment_count));
}

/* Frees the texts of a row, which own_texts has copied. */
static void drop_row(struct frag_result_row *row)
{
    for (const struct frag_column *c = frag_summary_columns;
         c->kind != FRAG_COLUMN_END; c++) {
        if (c->kind == FRAG_COLUMN_TEXT)
            free((void *)(uintptr_t)frag_column_text(c, row));
    }
}

/* Replaces the borrowed texts of a row by copies. If it returns false, some are
 * NULL. */
static bool own_texts(struct frag_result_row *row)
{
    bool done = true;

    for (const struct frag_column *c = frag_summary_columns;
         c->kind != FRAG_COLUMN_END; c++) {
        char *text;

        if (c->kind != FRAG_COLUMN_TEXT)
            continue;
        text = strdup(frag_column_text(c, row));
        done = done && text;
        memcpy((char *)row + c->offset, &text, sizeof(text));
    }
    return done;
}

static bool keep_row(struct frag_results *r, struct frag_result_row row)
{
    if (!GROW(r->rows, r->room, r->count + 1))
        return false;
    if (!own_texts(&row)) {
        drop_row(&row);
        return false;
    }
    r->rows[r->count++] = row;
    return true;
}

enum frag_err frag_results_add(struct frag_results *r,
                               const struct frag_run_identity *id,
                               const struct frag_run *run, struct frag_error *e)
{
    char name[48];
    hid_t group;
    bool done;

    snprintf(name, sizeof(name), "/runs/%zu", r->count);
    group = hdf5_make_group(r->file, name);
    done = group >= 0 && put_run(group, id, run);
    if (group >= 0)
        done = H5Gclose(group) >= 0 && done;
    if (!done || !keep_row(r, frag_result_row(id, run)))
        return frag_no_memory(e, "%s, run %zu", r->path, r->count);
    return FRAG_OK;
}

/* -- the file ------------------------------------------------------------ */

static bool put_optional(const struct frag_results *r, const char *name,
                         const char *value)
{
    return !value || hdf5_put_text(r->file, name, value);
}

static bool put_time(const struct frag_results *r, const char *name,
                     int64_t seconds)
{
    char at[32];

    return seconds == FRAG_NO_TIME ||
           hdf5_put_text(r->file, name, utc(seconds, at));
}

static bool put_root(struct frag_results *r)
{
    const struct frag_provenance *p = r->provenance;
    const bool timed = p->started != FRAG_NO_TIME;
    size_t room = strlen(p->version) + strlen(p->commit) + strlen(p->command);
    char *text = malloc(room += 64), at[32];
    hid_t runs = -1;
    bool done = text;

    if (!text)
        return false;
    snprintf(text, room, "fragsim %s (%s)", p->version, p->commit);
    done = hdf5_put_text(r->file, "Conventions", "ACDD-1.3") &&
           hdf5_put_text(r->file, "title", "allocator policies on traces") &&
           hdf5_put_text(r->file, "source", text);
    snprintf(text, room, "%s%s%s", timed ? utc(p->started, at) : "",
             timed ? ": " : "", p->command);
    done = done && hdf5_put_text(r->file, "history", text) &&
           hdf5_put_text(r->file, "schema_name", "fragsim-results") &&
           hdf5_put_text(r->file, "schema_version", FRAG_RESULTS_SCHEMA) &&
           hdf5_put_text(r->file, "version", p->version) &&
           hdf5_put_text(r->file, "commit", p->commit) &&
           hdf5_put_text(r->file, "command", p->command) &&
           put_optional(r, "settings", p->settings) &&
           put_optional(r, "shards", p->shards) &&
           put_time(r, "started", p->started);
    if (done)
        runs = hdf5_make_group(r->file, "runs");
    free(text);
    return runs >= 0 && H5Gclose(runs) >= 0;
}

/* Creates an empty HDF5 file in memory; negative on failure. */
static hid_t image_open(const char *name)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    hid_t how = H5Pcreate(H5P_FILE_CREATE);

    if (access >= 0 && how >= 0 && H5Pset_obj_track_times(how, false) >= 0 &&
        H5Pset_fapl_core(access, CORE_STEP, false) >= 0 &&
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V110) >= 0)
        file = H5Fcreate(name, H5F_ACC_TRUNC, how, access);
    hdf5_drop(how);
    hdf5_drop(access);
    return file;
}

static bool start(struct frag_results *r)
{
    (void)hdf5_quiet_begin(NULL);
    r->file = image_open(r->path);
    return r->file >= 0 && put_root(r);
}

enum frag_err frag_results_open(const char *path,
                                const struct frag_provenance *p,
                                struct frag_results **out, struct frag_error *e)
{
    struct frag_results *r = calloc(1, sizeof(*r));
    enum frag_err err;

    if (!r)
        return frag_no_memory(e, "%s", path);
    *r = (struct frag_results){
        .path = strdup(path), .provenance = p, .file = -1};
    err = r->path && start(r) ? atomic_file_begin(&r->output, r->path, "", e)
                              : frag_no_memory(e, "%s", path);
    if (err == FRAG_OK)
        *out = r;
    else
        frag_results_abort(r);
    return err;
}

static bool write_all(int fd, const unsigned char *bytes, size_t count)
{
    while (count) {
        ssize_t n = write(fd, bytes, count);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        count -= (size_t)n;
    }
    return true;
}

static bool write_file(const struct atomic_file *file,
                       const unsigned char *bytes, size_t count)
{
    int fd = atomic_file_open(file), why;
    bool done = fd >= 0 && write_all(fd, bytes, count);

    why = errno;
    if (fd >= 0 && close(fd) < 0)
        return false;
    errno = why;
    return done;
}

static enum frag_err store(struct frag_results *r, struct frag_error *e)
{
    ssize_t size;
    unsigned char *image;
    bool done;

    if (H5Fflush(r->file, H5F_SCOPE_GLOBAL) < 0 ||
        (size = H5Fget_file_image(r->file, NULL, 0)) <= 0 ||
        !(image = malloc((size_t)size)))
        return frag_no_memory(e, "the bytes of %s", r->path);
    done = H5Fget_file_image(r->file, image, (size_t)size) == size;
    superblock_checksum(image, (size_t)size);
    done = done && write_file(&r->output, image, (size_t)size);
    if (!done)
        frag_fail(e, FRAG_IO, "%s: cannot write it: %s", r->path,
                  strerror(errno));
    free(image);
    return done ? atomic_file_commit(&r->output, e) : FRAG_IO;
}

enum frag_err frag_results_commit(struct frag_results *r, int64_t ended,
                                  struct frag_error *e)
{
    enum frag_err err = FRAG_OK;

    if (!(put_summary(r->file, r->rows, r->count) &&
          put_optional(r, "missing", r->provenance->missing) &&
          put_time(r, "ended", ended) && put_count(r->file, "complete", 1)))
        err = frag_no_memory(e, "the summary of %s", r->path);
    if (err == FRAG_OK)
        err = store(r, e);
    frag_results_abort(r);
    return err;
}

void frag_results_abort(struct frag_results *r)
{
    if (!r)
        return;
    if (r->file >= 0)
        H5Fclose(r->file);
    atomic_file_abort(&r->output);
    for (size_t i = 0; i < r->count; i++)
        drop_row(&r->rows[i]);
    free(r->rows);
    free(r->path);
    free(r);
}
