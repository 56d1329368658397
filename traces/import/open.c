/* open.c - opens any supported input. The content decides the format; the name
 * of the file does not matter. A trace file is not imported: traces/file/ reads
 * it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/file/trace_file.h"
#include "traces/import/importers.h"
#include "traces/import/missing.h"

/* Finds the first importer that recognizes the first bytes. */
static enum frag_err recognize(struct frag_source *source, const char *path,
                               const struct frag_importer **found,
                               struct frag_error *e)
{
    const unsigned char *bytes;
    enum frag_err err = FRAG_OK;
    size_t count =
        frag_source_peek(source, FRAG_SOURCE_WINDOW, &bytes, &err, e);

    FRAG_TRY(err);
    if (trace_file_is(bytes, count))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s:0: expected a trace file that is opened by its "
                         "name, found one that is compressed or comes from "
                         "stdin; write it to an uncompressed file first",
                         path);
    for (size_t i = 0; frag_importers[i]; i++)
        if (frag_importers[i]->recognize(bytes, count)) {
            *found = frag_importers[i];
            return FRAG_OK;
        }
    return mistaken_explain(source, e);
}

/* A trace ends where its input ends: bytes after it would be ignored. */
static enum frag_err expect_end(struct frag_source *source,
                                struct frag_error *e)
{
    const unsigned char *bytes;
    enum frag_err err;

    if (!frag_source_knows_end(source))
        return FRAG_OK;
    if (!frag_source_peek(source, 1, &bytes, &err, e) || err != FRAG_OK)
        return err;
    return frag_fail(e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected the end of the input after the "
                     "trace, found more data, such as a second trace; pass "
                     "each trace as a file of its own",
                     frag_source_name(source), frag_source_offset(source));
}

/* Imports the source; on success *out is the trace with the SHA-256 and the
 * size of the source. */
static enum frag_err import(struct frag_source *source,
                            const struct frag_importer *importer,
                            struct frag_build *build,
                            const struct frag_read_options *opts,
                            struct frag_trace **out, struct frag_error *e)
{
    struct frag_trace *t;
    char sha256[sizeof(t->sha256)];
    enum frag_err err;

    if (!opts || opts->threads != 1)
        frag_source_read_ahead(source);
    FRAG_TRY(importer->read(source, build, opts, e));
    if (importer->note)
        FRAG_TRY(frag_build_note(build, "%s", importer->note));
    FRAG_TRY(expect_end(source, e));
    FRAG_TRY(frag_source_sha256(source, sha256, e));
    err = frag_build_finish(build, opts, &t, e);
    if (err != FRAG_OK)
        return err;
    memcpy(t->sha256, sha256, sizeof(sha256));
    t->file_bytes = frag_source_read(source);
    *out = t;
    return FRAG_OK;
}

static enum frag_err import_any(const char *path,
                                const struct frag_read_options *opts,
                                struct frag_trace **out, struct frag_error *e)
{
    const struct frag_importer *importer = NULL;
    struct frag_source *source;
    struct frag_build *build;
    enum frag_err err;

    FRAG_TRY(frag_source_open(path, &source, e));
    err = recognize(source, path, &importer, e);
    if (err != FRAG_OK)
        goto close_source;
    build = frag_build_open(path, importer->name);
    err = build ? import(source, importer, build, opts, out, e) : FRAG_NOMEM;
    frag_build_close(build);
close_source:
    frag_source_close(source);
    return err;
}

enum frag_trace_form frag_trace_form(const char *path)
{
    unsigned char bytes[8];
    struct stat st;
    size_t count;
    FILE *file;

    /* A pipe is not opened here: it would lose the bytes that are read. */
    if (!strcmp(path, "-") || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return FRAG_FORM_PLAIN;
    file = fopen(path, "rbe");
    if (!file)
        return FRAG_FORM_PLAIN;
    count = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    if (trace_file_is(bytes, count))
        return FRAG_FORM_TRACE_FILE;
    return frag_source_is_packed(bytes, count) ? FRAG_FORM_PACKED
                                               : FRAG_FORM_PLAIN;
}

enum frag_err frag_trace_open(const char *path,
                              const struct frag_read_options *opts,
                              struct frag_trace **out, struct frag_error *e)
{
    enum frag_err err;

    FRAG_TRY(missing_check(path, e));
    if (frag_trace_form(path) == FRAG_FORM_TRACE_FILE)
        err = trace_file_read(path, out, e);
    else
        err = import_any(path, opts, out, e);
    if (err == FRAG_NOMEM)
        return frag_no_memory(e, "%s", path);
    return err;
}
