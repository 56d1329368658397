/* fuzz_results.c - fuzzes the reader of result files (libFuzzer), on any bytes.
 * A crash inside libhdf5 is a fault of HDF5. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/results/results.h"

const char *__lsan_default_suppressions(void);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* HDF5 does not free all of its memory when it refuses a damaged file. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

/* HDF5 needs a file with a name. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[] = "/tmp/frag_fuzz_XXXXXX";
    const int file = mkstemp(path);
    struct frag_loaded loaded;
    struct frag_error e;

    if (file < 0)
        return 0;
    if (write(file, bytes, size) == (ssize_t)size &&
        frag_results_load(path, &loaded, &e) == FRAG_OK)
        frag_results_unload(&loaded);
    close(file);
    unlink(path);
    return 0;
}
