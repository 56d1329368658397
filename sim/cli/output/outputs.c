/* outputs.c - checks output paths before a command starts: no path twice, no
 * HDF5 on stdout, no existing file without --force. */
#include "sim/cli/output/outputs.h"

#include <string.h>

#include "traces/bytes/sink.h"

enum { TEXTS = 2 + OUTPUTS_OWN, ALL = 1 + TEXTS };

/* All paths in one array, the HDF5 file first. */
static void list(const struct outputs *o, const char *paths[ALL])
{
    paths[0] = o->hdf5;
    paths[1] = o->json;
    paths[2] = o->csv;
    memcpy(paths + 3, o->own, sizeof(o->own));
}

/* Names that mean another format than HDF5, and its option. */
static const struct {
    const char *suffix, *option;
} others[] = {{".csv", "csv"}, {".json", "json"}};

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);

    return n >= k && !strcmp(text + n - k, end);
}

int outputs_misused(const struct call *call, const struct outputs *o)
{
    const char *paths[ALL];

    list(o, paths);
    for (size_t i = 0; i < ALL; i++)
        for (size_t k = 0; k < i; k++)
            if (paths[i] && paths[k] && !strcmp(paths[i], paths[k]))
                return cli_misuse(call, "two outputs have the same path");
    for (size_t i = 0; o->hdf5 && i < sizeof(others) / sizeof(*others); i++)
        if (ends_with(o->hdf5, others[i].suffix))
            return cli_misuse(call,
                              "-o writes HDF5, found a name that ends with "
                              "%s; did you mean --%s %s?",
                              others[i].suffix, others[i].option, o->hdf5);
    if (sink_is_stdout(o->hdf5))
        return cli_misuse(call, "an HDF5 file cannot be written to stdout");
    return EXIT_DONE;
}

int outputs_exist(const struct call *call, const struct outputs *o, bool mine)
{
    const bool force = o->force || mine;
    int code = cli_may_replace(call, o->hdf5, force);
    const char *paths[ALL];

    list(o, paths);
    for (size_t i = 1; code == EXIT_DONE && i < ALL; i++)
        code = cli_may_write(call, paths[i], force);
    return code;
}

int outputs_check(const struct call *call, const struct outputs *o)
{
    const int code = outputs_misused(call, o);

    return code == EXIT_DONE ? outputs_exist(call, o, false) : code;
}
