/* fuzz_files.c - fuzzes two readers (libFuzzer): any bytes as a file of
 * memory_stats and as a file of costs. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policies/device/costs.h"
#include "sim/validate/stats_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_stats(const char *path)
{
    struct frag_stats_file *file;
    struct frag_error e;
    uint64_t value;

    if (frag_stats_file_open(path, &file, &e) != FRAG_OK)
        return;
    frag_stats_file_cap(file);
    frag_stats_file_total(file);
    frag_stats_file_get(file, 0, "num_ooms", &value);
    frag_stats_file_get(file, 1, "reserved_bytes.all.peak", &value);
    frag_stats_file_close(file);
}

static void read_costs(const char *path)
{
    struct frag_costs costs;
    struct frag_error e;

    if (frag_costs_read(path, &costs, &e) != FRAG_OK)
        return;
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        if (!(costs.call[i].fixed_ns >= 0 && costs.call[i].ns_per_mib >= 0))
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const int file = memfd_create("fuzz", 0);
    char path[40];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    if (file >= 0 && write(file, bytes, size) == (ssize_t)size) {
        read_stats(path);
        read_costs(path);
    }
    close(file);
    return 0;
}
