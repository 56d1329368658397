/* libFuzzer: any bytes through the CSV importer and the builder. */
#include <stddef.h>
#include <stdint.h>

#include "traces/importer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct frag_build *build = frag_build_open("fuzz", "csv");
    struct frag_source *source = NULL;
    struct frag_trace *trace = NULL;
    struct frag_error e;

    if (build &&
        frag_source_open_memory("fuzz", bytes, size, &source, &e) == FRAG_OK &&
        frag_importer_csv.read(source, build, NULL, &e) == FRAG_OK &&
        frag_build_finish(build, NULL, &trace, &e) == FRAG_OK)
        frag_trace_close(trace);
    frag_source_close(source);
    frag_build_close(build);
    return 0;
}
