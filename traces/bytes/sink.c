/* sink.c - writes text to an atomic file, or collects it in memory for an
 * output that cannot be renamed. */
#include "traces/bytes/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/bytes/input.h"

bool sink_is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

static enum frag_err failed(const char *path, const char *what,
                            struct frag_error *e)
{
    return frag_fail(e, FRAG_IO, "%s: cannot %s it: %s",
                     sink_is_stdout(path) ? "stdout" : path, what,
                     strerror(errno));
}

enum frag_err sink_open(struct sink *s, const char *path, struct frag_error *e)
{
    enum frag_err err;
    int fd;

    *s = (struct sink){.path = path};
    if (!path)
        return FRAG_OK;
    if (sink_is_stdout(path) || !atomic_file_can_replace(path)) {
        s->out = open_memstream(&s->text, &s->size);
        return s->out ? FRAG_OK : frag_no_memory(e, "%s", path);
    }
    FRAG_TRY(atomic_file_begin(&s->file, path, "", e));
    fd = atomic_file_open(&s->file);
    s->out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (s->out)
        return FRAG_OK;
    err = failed(path, "create", e);
    if (fd >= 0)
        close(fd);
    sink_abort(s);
    return err;
}

/* Closes `out` and returns whether everything was written. If an earlier write
 * failed, its errno is lost, and errno is set to EIO. */
static bool closed(FILE *out)
{
    bool failed_before = ferror(out);

    if (fclose(out) != 0)
        return false;
    if (failed_before)
        errno = EIO;
    return !failed_before;
}

/* Opens a pipe or a device. A named pipe that no program reads is an error
 * after INPUT_WAIT seconds. NULL with errno set. */
static FILE *open_device(const char *path)
{
    FILE *to = NULL;
    int fd, waited = 0;

    while (
        (fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) < 0 &&
        errno == ENXIO && waited++ < INPUT_WAIT * 10 && poll(NULL, 0, 100) == 0)
        errno = ENXIO;
    if (fd >= 0 && fcntl(fd, F_SETFL, O_WRONLY) == 0)
        to = fdopen(fd, "w");
    if (fd >= 0 && !to)
        close(fd);
    return to;
}

static bool put_text(const struct sink *s)
{
    FILE *to = sink_is_stdout(s->path) ? stdout : open_device(s->path);
    bool done = to && fwrite(s->text, 1, s->size, to) == s->size;

    if (to == stdout)
        return fflush(to) == 0 && done;
    return to && closed(to) && done;
}

enum frag_err sink_commit(struct sink *s, struct frag_error *e)
{
    FILE *out = s->out;
    enum frag_err err = FRAG_OK;

    if (!out)
        return FRAG_OK;
    errno = 0;
    s->out = NULL;
    if (!closed(out) || (!s->file.partial && !put_text(s)))
        err = failed(s->path, "write", e);
    else if (s->file.partial)
        err = atomic_file_commit(&s->file, e);
    sink_abort(s);
    return err;
}

void sink_abort(struct sink *s)
{
    if (s->out)
        fclose(s->out);
    atomic_file_abort(&s->file);
    free(s->text);
    *s = (struct sink){0};
}
