/* scratch.c - temporary folders under TMPDIR. */
#include "sim/cli/scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/bytes/temporary.h"

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
    char *head;

    place = place && *place ? place : "/tmp";
    head = scratch_path(place, "fragsim-", "");
    if (!head)
        return FRAG_NOMEM;
    *folder = temporary_folder(head, "");
    free(head);
    if (*folder)
        return FRAG_OK;
    return frag_fail(e, FRAG_IO, "TMPDIR: cannot create a folder in %.256s: %s",
                     place, strerror(errno));
}
