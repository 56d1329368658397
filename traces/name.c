/* name.c - removes folders and the suffixes of known formats from a path. */
#include "traces/name.h"

#include <stdbool.h>
#include <string.h>

static bool strip_suffix(char *name)
{
    static const char *const suffixes[] = {
        ".xz", ".gz", ".zst", ".pickle", ".pkl", ".pt", ".csv", ".h5", ".json"};
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        size_t n = strlen(suffixes[i]);

        if (length > n && !strcmp(name + length - n, suffixes[i])) {
            name[length - n] = '\0';
            return true;
        }
    }
    return false;
}

char *frag_trace_name(const char *path)
{
    const char *base = strrchr(path, '/');
    char *name;

    if (!strcmp(path, "-"))
        return strdup("stdin");
    name = strdup(base && base[1] ? base + 1 : path);
    while (name && strip_suffix(name))
        continue;
    return name;
}
