/* fuzz_results.c - fuzzes the reader of result files (libFuzzer), on any bytes.
 * A crash inside libhdf5 is a fault of HDF5; seeds written by fragsim have
 * checksums, and a file without checksums is read by a child process first. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/results/results.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
const char *__lsan_default_suppressions(void);

/* HDF5 loses memory of its own on files it finds damaged. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const int file = memfd_create("fuzz", 0);
    struct frag_loaded loaded;
    struct frag_error e;
    char path[40];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    if (file >= 0 && write(file, bytes, size) == (ssize_t)size &&
        frag_results_load(path, &loaded, &e) == FRAG_OK)
        frag_results_unload(&loaded);
    close(file);
    return 0;
}
