/* fuzz_trace_file.c - fuzzes the reader of trace files (libFuzzer), on any
 * bytes. A crash inside libhdf5 is a fault of HDF5; seeds written by fragsim
 * have checksums, which prevent most such crashes. */
#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/hdf5_mutator.h"
#include "traces/file/trace_file.h"

const char *__lsan_default_suppressions(void);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* HDF5 does not free all of its memory when it refuses a damaged file. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct frag_trace *trace = NULL;
    struct fuzz_file input;
    struct frag_error e;

    if (fuzz_file_make(&input, bytes, size) &&
        trace_file_read(input.path, &trace, &e) == FRAG_OK)
        frag_trace_close(trace);
    fuzz_file_remove(&input);
    return 0;
}
