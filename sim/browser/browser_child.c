/* browser_child.c - in place of sim/cli/child.c, in a page: the only program
 * there is the tool itself, which runs in a worker of its own (worker.js).
 * Every other program does not exist. */
#include <errno.h>
#include <string.h>

#include "sim/cli/child.h"

/* In worker.js: runs the tool with these words, and appends what it prints to
 * the file `output`. The exit code; CHILD_MISSING for another program. */
int browser_run(const char *const *argv, const char *output);

pid_t child_start(const struct child *c, int *error)
{
    (void)c;
    *error = ENOSYS;
    return 0;
}

int child_exit_code(int status)
{
    return status;
}

enum frag_err child_cannot(const struct child *c, int error,
                           struct frag_error *e)
{
    return frag_fail(e, FRAG_UNSUPPORTED, "%s cannot be run in a page: %s",
                     c->argv[0], strerror(error));
}

enum frag_err child_run(const struct child *c, int *code, struct frag_error *e)
{
    (void)e;
    *code = browser_run(c->argv, c->output);
    return FRAG_OK;
}

void child_end(int number)
{
    (void)number;
}

enum frag_err child_become(const struct child *c, struct frag_error *e)
{
    return child_cannot(c, ENOSYS, e);
}
