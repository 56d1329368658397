/* scratch.c - temporary folders under TMPDIR. nftw needs the X/Open part of
 * POSIX. */
#define _XOPEN_SOURCE 700

#include "sim/cli/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *scratch_path(const char *folder, const char *name, const char *suffix)
{
    size_t room = strlen(folder) + strlen(name) + strlen(suffix) + 2;
    char *path = malloc(room);

    if (path)
        snprintf(path, room, "%s/%s%s", folder, name, suffix);
    return path;
}

enum frag_err scratch_make(char **folder, struct frag_error *e)
{
    const char *place = getenv("TMPDIR");
    enum frag_err err;
    char *path;

    place = place && *place ? place : "/tmp";
    path = *folder = scratch_path(place, "fragsim-XXXXXX", "");
    if (!path)
        return FRAG_NOMEM;
    if (mkdtemp(path))
        return FRAG_OK;
    err = frag_fail(e, FRAG_IO, "TMPDIR: cannot create a folder in %.256s: %s",
                    place, strerror(errno));
    *folder = NULL;
    free(path);
    return err;
}

static int remove_one(const char *path, const struct stat *status, int kind,
                      struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    remove(path);
    return 0;
}

void scratch_remove(char *folder)
{
    enum { OPEN_FOLDERS = 16 };

    if (folder)
        nftw(folder, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
    free(folder);
}
