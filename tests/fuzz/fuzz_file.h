/* fuzz_file.h - an input of a fuzz program as a file with a real path. libhdf5
 * cannot open a memfd, because H5Fopen needs the path that realpath returns. */
#ifndef FRAG_TESTS_FUZZ_FUZZ_FILE_H
#define FRAG_TESTS_FUZZ_FUZZ_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fuzz_file {
    char path[32];
    int file;
};

/* Writes the bytes to a new file in memory, or in /tmp. False if the file
 * cannot be written. Call fuzz_file_remove in any case. */
static bool fuzz_file_make(struct fuzz_file *f, const uint8_t *bytes,
                           size_t size)
{
    strcpy(f->path, access("/dev/shm", W_OK) == 0 ? "/dev/shm/fuzz_XXXXXX"
                                                  : "/tmp/fuzz_XXXXXX");
    f->file = mkstemp(f->path);
    return f->file >= 0 && write(f->file, bytes, size) == (ssize_t)size;
}

static void fuzz_file_remove(const struct fuzz_file *f)
{
    if (f->file < 0)
        return;
    close(f->file);
    unlink(f->path);
}

#endif
