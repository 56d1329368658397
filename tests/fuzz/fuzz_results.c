/* fuzz_results.c - fuzzes the reader of result files (libFuzzer), on any bytes.
 * A crash inside libhdf5 is a fault of HDF5; seeds written by fragsim have
 * checksums, and a file without checksums is read by a child process first. */
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/results/results.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/hdf5_mutator.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
const char *__lsan_default_suppressions(void);

/* HDF5 loses memory of its own on files it finds damaged. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

/* In a child process: a crash there is what hdf5_survives is for, and is no
 * fault. libFuzzer also handles signals. */
static void keep_no_input(void)
{
    static const int ends[] = {SIGABRT, SIGALRM, SIGXCPU, SIGXFSZ};

    __sanitizer_set_death_callback(NULL);
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        signal(ends[i], SIG_DFL);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return pthread_atfork(NULL, NULL, keep_no_input);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct frag_error e = {""};
    struct frag_loaded loaded;
    struct fuzz_file input;
    enum frag_err err;

    if (fuzz_file_make(&input, bytes, size)) {
        err = frag_results_load(input.path, &loaded, &e);
        if (err == FRAG_OK)
            frag_results_unload(&loaded);
        else if (err != FRAG_NOMEM && !e.text[0])
            abort(); /* a message that a user cannot read is a fault too */
    }
    fuzz_file_remove(&input);
    return 0;
}
