/* host_memory.c - reads the memory limits of the host. */
#include "sim/experiments/sweep/host_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static frag_size lesser(frag_size a, frag_size b)
{
    return a < b ? a : b;
}

/* The number at the start of a small file; FRAG_UNLIMITED if there is none (as
 * in "max"). */
static frag_size number_in(const char *path)
{
    uint64_t n = FRAG_UNLIMITED;
    FILE *in = fopen(path, "r");

    if (!in)
        return FRAG_UNLIMITED;
    if (fscanf(in, "%" SCNu64, &n) != 1)
        n = FRAG_UNLIMITED;
    fclose(in);
    return n;
}

/* The lowest limit of a cgroup and of the cgroups above it. Version 2 has
 * memory.max in a common root; version 1 has memory.limit_in_bytes in a root of
 * its own. */
static frag_size limit_of_group(const char *root, const char *name, char *path)
{
    char file[4608];
    frag_size least = FRAG_UNLIMITED;

    for (;;) {
        char *slash;

        snprintf(file, sizeof(file), "%s%s/%s", root, path, name);
        least = lesser(least, number_in(file));
        slash = strrchr(path, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

static frag_size limit_of_groups(void)
{
    FILE *in = fopen("/proc/self/cgroup", "r");
    frag_size least = FRAG_UNLIMITED;
    char line[4300];

    if (!in)
        return least;
    while (fgets(line, sizeof(line), in)) {
        char *path = strchr(line, '/');

        line[strcspn(line, "\n")] = '\0';
        if (path && !strncmp(line, "0::", 3))
            least = lesser(
                least, limit_of_group("/sys/fs/cgroup", "memory.max", path));
        else if (path && strstr(line, ":memory:"))
            least =
                lesser(least, limit_of_group("/sys/fs/cgroup/memory",
                                             "memory.limit_in_bytes", path));
    }
    fclose(in);
    return least;
}

static frag_size available(void)
{
    FILE *in = fopen("/proc/meminfo", "r");
    frag_size kib = 0;
    char line[256];

    if (!in)
        return FRAG_UNLIMITED;
    while (!kib && fgets(line, sizeof(line), in))
        (void)sscanf(line, "MemAvailable: %" SCNu64, &kib);
    fclose(in);
    return kib ? kib * FRAG_KIB : FRAG_UNLIMITED;
}

static frag_size limit_of(int resource)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return FRAG_UNLIMITED;
    return limit.rlim_cur;
}

frag_size host_memory(void)
{
    frag_size least = lesser(available(), limit_of_groups());

    least = lesser(least, limit_of(RLIMIT_AS));
    least = lesser(least, limit_of(RLIMIT_DATA));
    return least == FRAG_UNLIMITED ? least : least / 4 * 3;
}
