/* inputs.c - opens traces with a progress bar and visits their devices. */
#include "sim/cli/output/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/cli/cli.h"
#include "sim/export/export_notes.h"
#include "traces/import/missing.h"
#include "traces/name.h"
#include "traces/printable.h"

/* Returns INVALID if the name that no file has is an option's value. */
static enum frag_err check_meaning(const char *path, struct frag_error *e)
{
    char name[64];
    frag_size size;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, ":@"), path);
    if (frag_policy_find(name))
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a trace, found the name of a policy; a "
                         "policy follows -p: -p %s",
                         path, path);
    if (frag_size_parse(path, &size) == FRAG_OK)
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a trace, found a size; a capacity "
                         "follows -c: -c %s",
                         path, path);
    return FRAG_OK;
}

enum frag_err input_check_name(const char *path, struct frag_error *e)
{
    if (!missing_exists(path))
        FRAG_TRY(check_meaning(path, e));
    return missing_check(path, e);
}

enum frag_err unread_add(struct unread *u, enum frag_err err,
                         const struct frag_error *e)
{
    if ((err != FRAG_CORRUPT && err != FRAG_IO) || !u->call ||
        u->paths->count < 2 || cli_interrupted())
        return err;
    cli_fail(u->call, err, e);
    u->count++;
    if (u->first == FRAG_OK)
        u->first = err;
    return FRAG_OK;
}

static enum frag_err check_names(struct unread *u, struct frag_error *e)
{
    size_t stdins = 0;

    for (size_t i = 0; i < u->paths->count; i++) {
        const char *path = u->paths->items[i];
        const enum frag_err err = input_check_name(path, e);

        if (err != FRAG_OK)
            FRAG_TRY(unread_add(u, err, e));
        stdins += !strcmp(path, "-");
    }
    return stdins <= 1 ? FRAG_OK
                       : frag_fail(e, FRAG_INVALID,
                                   "-: expected stdin once, found it %zu times",
                                   stdins);
}

enum frag_err unread_each(struct unread *u,
                          enum frag_err (*visit)(void *user, const char *path,
                                                 struct frag_error *e),
                          void *user, struct frag_error *e)
{
    const struct texts *paths = u->paths;

    FRAG_TRY(check_names(u, e));
    for (size_t i = 0; i < paths->count; i++)
        if (paths->count == 1 ||
            missing_check(paths->items[i], NULL) == FRAG_OK)
            FRAG_TRY(visit(user, paths->items[i], e));
    if (u->count < u->paths->count)
        return FRAG_OK;
    return frag_fail(e, u->first, "none of the %zu traces could be used",
                     u->count);
}

int unread_exit(const struct unread *u, int code)
{
    struct frag_error e;

    if (!u->count ||
        (code != EXIT_DONE && code != EXIT_NO && code != EXIT_UNKNOWN))
        return code;
    snprintf(e.text, sizeof(e.text),
             "%zu of %zu traces could not be used; the answers are those of "
             "the others",
             u->count, u->paths->count);
    return cli_fail(u->call, u->first, &e);
}

enum frag_err input_open(const char *path, const struct trace_reading *reading,
                         struct progress *progress, struct frag_trace **out,
                         struct frag_error *e)
{
    enum frag_err err;

    FRAG_TRY(input_check_name(path, e));
    progress_step(progress, 0, 0, "B", 1, path);
    err = reading_open(reading, path, progress_tick, progress, out, e);
    progress_clear(progress);
    return err;
}

void input_say_start(const char *path, const struct frag_device_trace *d)
{
    const char *note = export_start_note(d);

    if (note)
        printable_line(stderr, "%s: %s: the figure: %s", path,
                       FRAG_DEVICE_NAME(d->device), note);
}

void input_say_notes(const char *path, const struct frag_trace *t)
{
    for (uint32_t i = 0; i < t->note_count; i++)
        printable_line(stderr, "%s: %s", path, t->notes[i]);
}

/* The number of notes in [from, to) with the text of `note`. */
static size_t count_equal(const struct cell_note_list *notes, size_t from,
                          size_t to, const char *note)
{
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        n += !strcmp(notes->items[i].text, note);
    return n;
}

void input_say_cells(const struct cell_note_list *notes)
{
    char text[CELL_NOTE_TEXT];

    for (size_t i = 0; i < notes->count; i++) {
        const struct cell_note *n = &notes->items[i];
        const size_t more = count_equal(notes, i + 1, notes->count, n->text);

        if (count_equal(notes, 0, i, n->text))
            continue;
        cell_note_text(n, text);
        if (more)
            printable_line(stderr, "%s, and %zu more: %s", n->trace, more,
                           text);
        else
            printable_line(stderr, "%s: %s", n->trace, text);
    }
}

/* Visits the devices of an open trace. */
static enum frag_err visit_trace(const struct inputs *in,
                                 const struct frag_trace *trace,
                                 input_visit *visit, void *user,
                                 struct frag_error *e)
{
    char *name = frag_trace_name(trace->path);
    enum frag_err err = FRAG_NOMEM;

    if (in->says_notes)
        input_say_notes(trace->path, trace);
    if (name)
        err = input_each_device(trace, name, in->device, visit, user, e);
    progress_clear(in->progress);
    free(name);
    return err;
}

/* The visits of the devices of a file. */
struct visits {
    const struct inputs *in;
    struct unread *unread;
    input_visit *visit;
    void *user;
};

/* An IO error of a visit is one of an output. */
static enum frag_err visit_file(void *user, const char *path,
                                struct frag_error *e)
{
    const struct visits *v = user;
    struct frag_trace *trace;
    enum frag_err err =
        input_open(path, &v->in->reading, v->in->progress, &trace, e);

    if (err != FRAG_OK)
        return unread_add(v->unread, err, e);
    err = visit_trace(v->in, trace, v->visit, v->user, e);
    frag_trace_close(trace);
    return err == FRAG_CORRUPT ? unread_add(v->unread, err, e) : err;
}

enum frag_err inputs_each(const struct inputs *in, input_visit *visit,
                          void *user, struct frag_error *e)
{
    struct unread none = {.paths = in->paths};
    struct visits v = {in, in->unread ? in->unread : &none, visit, user};

    return unread_each(v.unread, visit_file, &v, e);
}
