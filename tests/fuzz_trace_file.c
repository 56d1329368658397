/* fuzz_trace_file.c - fuzzes the reader of trace files (libFuzzer), on any
 * bytes. A crash inside libhdf5 is a fault of HDF5; seeds written by fragsim
 * have checksums, which prevent most such crashes. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    char path[] = "/tmp/frag_fuzz_XXXXXX";
    int file = mkstemp(path);
    struct frag_trace *trace = NULL;
    struct frag_error e;

    if (file < 0)
        return 0;
    if (write(file, bytes, size) == (ssize_t)size &&
        trace_file_read(path, NULL, &trace, &e) == FRAG_OK)
        frag_trace_close(trace);
    close(file);
    unlink(path);
    return 0;
}
