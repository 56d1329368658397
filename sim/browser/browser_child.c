/* browser_child.c - in place of sim/cli/child.c, in a page: there is no program
 * but the tool. */
#include <errno.h>
#include <string.h>

#include "sim/cli/child.h"

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
    (void)c;
    (void)e;
    *code = CHILD_MISSING;
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
