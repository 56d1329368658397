/* fuzz_text.c - fuzzes every importer of text formats, and the builder
 * (libFuzzer), on any bytes. */
#include <stddef.h>
#include <stdint.h>

#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/import/importers.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void import(const struct frag_importer *importer, const uint8_t *bytes,
                   size_t size)
{
    struct frag_build *build = frag_build_open("fuzz", importer->name);
    struct frag_source *source = NULL;
    struct frag_trace *trace = NULL;
    struct frag_error e;

    if (build &&
        frag_source_open_memory("fuzz", bytes, size, &source, &e) == FRAG_OK &&
        importer->read(source, build, NULL, &e) == FRAG_OK &&
        frag_build_finish(build, NULL, &trace, &e) == FRAG_OK)
        frag_trace_close(trace);
    frag_source_close(source);
    frag_build_close(build);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    import(&frag_importer_csv, bytes, size);
    import(&frag_importer_static, bytes, size);
    import(&frag_importer_android, bytes, size);
    import(&frag_importer_kineto, bytes, size);
    import(&frag_importer_umpire, bytes, size);
    import(&frag_importer_mtrace, bytes, size);
    import(&frag_importer_heaptrack, bytes, size);
    import(&frag_importer_rmm, bytes, size);
    import(&frag_importer_rocprof, bytes, size);
    return 0;
}
