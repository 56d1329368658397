/* outputs.c - checks output paths before a command starts: no path twice, no
 * HDF5 on stdout, no existing file without --force. */
#include "sim/cli/output/outputs.h"

#include <string.h>

#include "traces/bytes/sink.h"
#include "traces/text.h"

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

/* The option whose format the name of the HDF5 file means; NULL: none, or the
 * file is an input, which has a message of its own. */
static const char *other_option(const struct call *call, const char *path)
{
    for (size_t i = 0; i < call->args->count; i++)
        if (!strcmp(call->args->items[i], path))
            return NULL;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (text_ends_with(path, others[i].suffix))
            return others[i].option;
    return NULL;
}

int outputs_misused(const struct call *call, const struct outputs *o)
{
    const char *paths[ALL], *option;

    list(o, paths);
    for (size_t i = 0; i < ALL; i++)
        for (size_t k = 0; k < i; k++)
            if (paths[i] && paths[k] && !strcmp(paths[i], paths[k]))
                return cli_misuse(call, "two outputs have the same path");
    if (o->hdf5 && (option = other_option(call, o->hdf5)))
        return cli_misuse(call, "-o writes HDF5; did you mean --%s %s?", option,
                          o->hdf5);
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
