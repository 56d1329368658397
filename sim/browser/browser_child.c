/* browser_child.c - in place of sim/cli/child.c, in a page: there is no program
 * but the tool, and no process but this one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

enum { STREAMS = 2 }; /* stdout, stderr */

/* Has file `to` in place of both streams, and keeps them in `kept`. */
static void turn_streams(int to, int kept[STREAMS])
{
    fflush(NULL);
    for (int i = 0; i < STREAMS; i++) {
        kept[i] = dup(STDOUT_FILENO + i);
        dup2(to, STDOUT_FILENO + i);
    }
    close(to);
}

static void turn_back(const int kept[STREAMS])
{
    fflush(NULL);
    for (int i = 0; i < STREAMS; i++) {
        dup2(kept[i], STDOUT_FILENO + i);
        close(kept[i]);
    }
}

/* The work is done at once. Its exit code stands in the number of the process.
 */
enum frag_err child_copy(const struct child_work *w, pid_t *process,
                         struct frag_error *e)
{
    const int to = open(w->output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int kept[STREAMS];

    if (to < 0)
        return frag_fail(e, FRAG_IO, "%s: %s", w->output, strerror(errno));
    for (const struct setting *s = w->settings; s && s->name; s++)
        setenv(s->name, s->value, 1);
    turn_streams(to, kept);
    *process = 1 + w->work(w->user);
    turn_back(kept);
    return FRAG_OK;
}

bool child_copy_is_apart(void)
{
    return false;
}

enum frag_err child_wait(pid_t process, int *code, struct frag_error *e)
{
    (void)e;
    *code = process - 1;
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
