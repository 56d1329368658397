/* scratch.c - temporary folders under TMPDIR. */
#include "sim/cli/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/bytes/temporary.h"
#include "traces/text.h"

char *scratch_path(const char *folder, const char *name, const char *suffix)
{
    return text_make("%s/%s%s", folder, name, suffix);
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
