/* python.c - programs of Python that load modules of fragsim (python.h). */
#include "sim/cli/verbs/python.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/program.h"
#include "traces/text.h"

enum frag_err python_output(const char *out, char name[2 * PATH_MAX],
                            struct frag_error *e)
{
    char folder[PATH_MAX] = "", copy[2 * PATH_MAX];

    if (*out != '/' && !getcwd(folder, sizeof(folder)))
        return frag_fail(e, FRAG_IO, "the current folder: %s", strerror(errno));
    if (snprintf(name, 2 * PATH_MAX, "%s%s%s", folder, *folder ? "/" : "",
                 out) >= PATH_MAX)
        return frag_fail(e, FRAG_IO, "%s: %s", out, strerror(ENAMETOOLONG));
    snprintf(copy, sizeof(copy), "%s", name);
    strcat(dirname(copy), "/."); /* the name of the file made room */
    if (!strstr(copy, "%p") && access(copy, W_OK) < 0)
        return frag_fail(e, FRAG_IO, "%s: %s", out, strerror(errno));
    return FRAG_OK;
}

enum frag_err python_start(char **path, struct frag_error *e)
{
    static const char *const places[] = {
        "../share/fragsim/start", "../start", /* the second: Python package */
        FRAG_START_SOURCE, FRAG_START_INSTALLED, NULL};
    const char *before = getenv("PYTHONPATH");
    char file[PATH_MAX];
    const char *folder;

    if (!program_find("sitecustomize.py", places, file))
        return frag_fail(e, FRAG_IO,
                         "expected the folder start with sitecustomize.py in "
                         "%s, found none: install fragsim again",
                         FRAG_START_INSTALLED);
    folder = dirname(file);
    if (strchr(folder, ':'))
        return frag_fail(e, FRAG_IO,
                         "%s: expected a path without colons, because "
                         "PYTHONPATH accepts no others",
                         folder);
    *path = text_make("%s%s%s", folder, before && *before ? ":" : "",
                      before ? before : "");
    return *path ? FRAG_OK : FRAG_NOMEM;
}
