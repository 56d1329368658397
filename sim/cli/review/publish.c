/* publish.c - writes a page to its place. */
#include "sim/cli/review/publish.h"

#include <string.h>

#include "traces/bytes/sink.h"

bool publish_can(const char *path)
{
    const char *dot = path ? strrchr(path, '.') : NULL;

    return dot && !strcmp(dot, ".html");
}

enum frag_err publish(const char *path,
                      enum frag_err (*write)(void *user, FILE *out,
                                             struct frag_error *e),
                      void *user, struct frag_error *e)
{
    struct sink page;
    enum frag_err err;

    FRAG_TRY(sink_open(&page, path, e));
    err = write(user, page.out, e);
    if (err == FRAG_OK)
        return sink_commit(&page, e);
    sink_abort(&page);
    return err;
}
