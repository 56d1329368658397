/* fuzz_import.c - fuzzes the importer that the environment variable FUZZ_FORMAT
 * names (see traces/import/import_list.h), with the unpacking before it and the
 * builder behind it (libFuzzer), on any bytes. Without the variable, the bytes
 * are opened as a file whose content decides the format. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz_file.h"
#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/import/importers.h"
#include "traces/trace.h"

const char *__lsan_default_suppressions(void);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* HDF5 does not free all of its memory when it refuses a damaged file. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

static const struct frag_importer *chosen;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("FUZZ_FORMAT");

    (void)argc;
    (void)argv;
    if (!name)
        return 0;
    for (size_t i = 0; frag_importers[i]; i++)
        if (!strcmp(frag_importers[i]->name, name))
            chosen = frag_importers[i];
    if (!chosen) {
        fprintf(stderr, "fuzz_import: no importer has the name %s\n", name);
        exit(2);
    }
    return 0;
}

/* A message that a user cannot read is a fault too. */
static void expect_message(enum frag_err err, const struct frag_error *e)
{
    if (err != FRAG_OK && err != FRAG_NOMEM && !e->text[0])
        abort();
}

static enum frag_err import(const uint8_t *bytes, size_t size,
                            struct frag_error *e)
{
    struct frag_build *build = frag_build_open("fuzz", chosen->name);
    struct frag_source *source = NULL;
    struct frag_trace *trace = NULL;
    enum frag_err err =
        build ? frag_source_open_memory("fuzz", bytes, size, &source, e)
              : FRAG_NOMEM;
    char hex[65];

    if (err == FRAG_OK)
        err = chosen->read(source, build, NULL, e);
    if (err == FRAG_OK)
        err = frag_source_sha256(source, hex, e);
    if (err == FRAG_OK)
        err = frag_build_finish(build, NULL, &trace, e);
    if (err == FRAG_OK)
        frag_trace_close(trace);
    frag_source_close(source);
    frag_build_close(build);
    return err;
}

static enum frag_err open_any(const uint8_t *bytes, size_t size,
                              struct frag_error *e)
{
    struct frag_trace *trace = NULL;
    enum frag_err err = FRAG_OK;
    struct fuzz_file input;

    if (fuzz_file_make(&input, bytes, size)) {
        err = frag_trace_open(input.path, NULL, &trace, e);
        if (err == FRAG_OK)
            frag_trace_close(trace);
    }
    fuzz_file_remove(&input);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct frag_error e = {""};

    expect_message((chosen ? import : open_any)(bytes, size, &e), &e);
    return 0;
}
