/* input.c - opens files and pipes without waiting in open(). tee() needs the
 * GNU part of the C library. */
#define _GNU_SOURCE
#include "traces/bytes/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK = 50 }; /* milliseconds between two looks for a writer */

/* Whether a program writes the pipe, or has written it. tee() takes nothing out
 * of the pipe, and only a pipe with a writer makes it wait. */
static bool has_writer(int fd)
{
    struct pollfd pipe = {.fd = fd, .events = POLLIN};
    int copy[2];
    bool has = poll(&pipe, 1, 0) != 0;

    if (has || pipe2(copy, O_CLOEXEC) < 0)
        return true;
    errno = 0;
    has = tee(fd, copy[1], 1, SPLICE_F_NONBLOCK) > 0 || errno == EAGAIN;
    close(copy[0]);
    close(copy[1]);
    return has;
}

/* Returns 0, or the errno of the failure: ETIMEDOUT if no writer came. */
static int wait_for_writer(int fd)
{
    for (int waited = 0; !has_writer(fd); waited += LOOK) {
        if (waited >= INPUT_WAIT * 1000)
            return ETIMEDOUT;
        if (poll(NULL, 0, LOOK) < 0)
            return errno;
    }
    return 0;
}

/* Returns 0 or the errno of the failure. */
static int open_input(const char *path, int *fd)
{
    struct stat at;
    int error;

    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0 || fstat(*fd, &at) < 0)
        return errno;
    error = S_ISDIR(at.st_mode)    ? EISDIR
            : S_ISFIFO(at.st_mode) ? wait_for_writer(*fd)
                                   : 0;
    if (!error && fcntl(*fd, F_SETFL, O_RDONLY) < 0)
        error = errno;
    return error;
}

enum frag_err input_fd(const char *path, int *fd, struct frag_error *e)
{
    const int error = open_input(path, fd);

    if (!error)
        return FRAG_OK;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    if (error == ETIMEDOUT)
        return frag_fail(e, FRAG_IO,
                         "%s: expected a program that writes into the pipe, "
                         "found none within %d s; start the writer first, or "
                         "pass a file",
                         path, INPUT_WAIT);
    return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(error));
}

enum frag_err input_file(const char *path, FILE **in, struct frag_error *e)
{
    int fd;

    FRAG_TRY(input_fd(path, &fd, e));
    *in = fdopen(fd, "r");
    if (*in)
        return FRAG_OK;
    close(fd);
    return frag_no_memory(e, "%s", path);
}
