#include "sim/cli/output/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sink_is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

/* A device or a pipe cannot be renamed into place. */
static bool is_renamed(const char *path)
{
    struct stat at;

    return !sink_is_stdout(path) &&
           (stat(path, &at) < 0 || S_ISREG(at.st_mode));
}

enum frag_err sink_open(struct sink *s, const char *path, struct frag_error *e)
{
    size_t room = strlen(path) + 40;

    *s = (struct sink){.path = path};
    if (!is_renamed(path)) {
        s->out = open_memstream(&s->text, &s->size);
        return s->out ? FRAG_OK
                      : frag_fail(e, FRAG_NOMEM, "%s: no memory", path);
    }
    s->partial = malloc(room);
    if (!s->partial)
        return frag_fail(e, FRAG_NOMEM, "%s: no memory", path);
    snprintf(s->partial, room, "%s.partial-%ld", path, (long)getpid());
    s->out = fopen(s->partial, "w");
    if (s->out)
        return FRAG_OK;
    frag_fail(e, FRAG_IO, "%s: cannot create it: %s", path, strerror(errno));
    free(s->partial);
    *s = (struct sink){0};
    return FRAG_IO;
}

/* Closes `out` and says whether all of it was written. */
static bool flushed(FILE *out, bool to_disk)
{
    bool done = !ferror(out) &&
                (!to_disk || (fflush(out) == 0 && fsync(fileno(out)) == 0));
    int why = errno;

    done = fclose(out) == 0 && done;
    errno = why ? why : errno;
    return done;
}

static bool pour(const struct sink *s)
{
    FILE *to = sink_is_stdout(s->path) ? stdout : fopen(s->path, "w");
    bool done = to && fwrite(s->text, 1, s->size, to) == s->size;

    if (to == stdout)
        return fflush(to) == 0 && done;
    return to && flushed(to, false) && done;
}

enum frag_err sink_commit(struct sink *s, struct frag_error *e)
{
    FILE *out = s->out;
    bool done;

    errno = 0;
    s->out = NULL;
    if (s->partial)
        done = flushed(out, true) && rename(s->partial, s->path) == 0;
    else
        done = fclose(out) == 0 && pour(s);
    if (!done)
        frag_fail(e, FRAG_IO, "%s: cannot write it: %s",
                  sink_is_stdout(s->path) ? "stdout" : s->path,
                  strerror(errno));
    sink_abort(s);
    return done ? FRAG_OK : FRAG_IO;
}

void sink_abort(struct sink *s)
{
    if (s->out)
        fclose(s->out);
    if (s->partial)
        unlink(s->partial); /* gone already where it was renamed */
    free(s->partial);
    free(s->text);
    *s = (struct sink){0};
}
