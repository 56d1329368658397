/* libFuzzer: any bytes as a trace file. What crashes within libhdf5 is HDF5's;
 * seeds that we wrote carry checksums that keep it from most. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "traces/file/trace_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

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
