/* dry_setup.c - starts fragsim_dry_setup.py, which makes the environment. */
#include "sim/cli/verbs/dry/dry_setup.h"

#include <stdlib.h>

#include "sim/cli/program.h"

enum frag_err dry_module(const char *name, char path[PATH_MAX],
                         struct frag_error *e)
{
    static const char *const places[] = {
        "../share/fragsim", "..", /* the second: Python package */
        FRAG_DRY_SOURCE, FRAG_DRY_INSTALLED, NULL};

    if (program_find(name, places, path))
        return FRAG_OK;
    return frag_fail(e, FRAG_IO,
                     "expected %s in %s, found none: install fragsim again",
                     name, FRAG_DRY_INSTALLED);
}

enum frag_err dry_setup(const char *folder, const struct texts *requirements,
                        struct frag_error *e)
{
    const char **argv = calloc(requirements->count + 4, sizeof(*argv));
    char module[PATH_MAX];
    enum frag_err err;

    if (!argv)
        return frag_no_memory(e, "the command of the setup");
    err = dry_module("fragsim_dry_setup.py", module, e);
    argv[0] = "python3";
    argv[1] = module;
    argv[2] = folder;
    for (size_t i = 0; i < requirements->count; i++)
        argv[3 + i] = requirements->items[i];
    if (err == FRAG_OK)
        err = child_become(&(const struct child){.argv = argv}, e);
    free(argv);
    return err;
}
