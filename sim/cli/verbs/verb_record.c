/* verb_record.c - the command record: runs a program under the recorder, and
 * makes traces of the program's calls of the CUDA driver. The recorder itself
 * is in real/recorder/. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/cli.h"
#include "sim/cli/program.h"
#include "sim/cli/verbs/python.h"
#include "traces/printable.h"
#include "traces/record_log.h"
#include "traces/trace.h"

enum { ROOM = PATH_MAX + NAME_MAX + 2 }; /* bytes for the path of a log */

struct record_values {
    struct common common;
    const char *out;
    bool force, keep;
};

/* The logs and traces of all processes, one of each per process. */
struct recording {
    char folder[PATH_MAX]; /* of the logs */
    struct dirent **logs;  /* log_count logs, sorted by name */
    int log_count;
    struct frag_trace **traces; /* NULL: the process requested no memory */
    size_t count;               /* of the traces that are not NULL */
};

/* ---- the library ---- */

static enum frag_err find_library(char path[PATH_MAX], struct frag_error *e)
{
    FRAG_TRY(program_library("libfragsim_record.so", path, e));
    return strpbrk(path, " :") ? frag_fail(e, FRAG_IO,
                                           "%s: expected a path without blanks "
                                           "and colons, because LD_PRELOAD "
                                           "accepts no others",
                                           path)
                               : FRAG_OK;
}

/* ---- the logs ---- */

static enum frag_err make_folder(const char *out, struct recording *r,
                                 struct frag_error *e)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s.logs-XXXXXX", out) >= PATH_MAX)
        return frag_fail(e, FRAG_IO,
                         "%s: expected a shorter name, found one that is too "
                         "long for the folder of the logs",
                         out);
    if (!mkdtemp(path) || !realpath(path, r->folder))
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    return FRAG_OK;
}

static int is_log(const struct dirent *entry)
{
    return strstr(entry->d_name, RECORD_SUFFIX) != NULL;
}

static void name_log(const struct recording *r, int i, char path[ROOM])
{
    snprintf(path, ROOM, "%s/%s", r->folder, r->logs[i]->d_name);
}

static void say_notes(const char *name, const struct frag_trace *t)
{
    for (uint32_t i = 0; i < t->note_count; i++)
        printable_line(stderr, "%s: %s", name, t->notes[i]);
}

/* Reads the trace of a log. If it has no events, *out stays NULL and its notes
 * are printed, because no file will contain them. */
static enum frag_err read_log(const char *path, struct frag_trace **out,
                              struct frag_error *e)
{
    uint64_t events = 0;
    struct frag_trace *t;

    FRAG_TRY(frag_trace_open(path, NULL, &t, e));
    for (uint32_t i = 0; i < t->device_count; i++)
        events += t->devices[i].count;
    if (events) {
        *out = t;
        return FRAG_OK;
    }
    say_notes("no trace", t);
    frag_trace_close(t);
    return FRAG_OK;
}

static enum frag_err read_logs(struct recording *r, struct frag_error *e)
{
    char path[ROOM];

    r->log_count = scandir(r->folder, &r->logs, is_log, alphasort);
    if (r->log_count < 0) {
        r->log_count = 0;
        return frag_fail(e, FRAG_IO, "%s: %s", r->folder, strerror(errno));
    }
    r->traces = calloc((size_t)r->log_count + 1, sizeof(struct frag_trace *));
    if (!r->traces)
        return FRAG_NOMEM;
    for (int i = 0; i < r->log_count; i++) {
        name_log(r, i, path);
        FRAG_TRY(read_log(path, &r->traces[i], e));
        r->count += r->traces[i] != NULL;
    }
    return FRAG_OK;
}

static void remove_logs(const struct recording *r)
{
    char path[ROOM];

    for (int i = 0; i < r->log_count; i++) {
        name_log(r, i, path);
        unlink(path);
    }
    rmdir(r->folder);
}

static void close_all(struct recording *r)
{
    for (int i = 0; i < r->log_count; i++) {
        if (r->traces)
            frag_trace_close(r->traces[i]);
        free(r->logs[i]);
    }
    free(r->traces);
    free(r->logs);
}

/* ---- the traces ---- */

/* The name of the trace of log i: OUT; if there are several traces, OUT with
 * the number of the process before its suffix. */
static void name_trace(const struct record_values *v, const struct recording *r,
                       int i, char name[ROOM])
{
    const char *log = r->logs[i]->d_name;
    const char *base = strrchr(v->out, '/');
    const char *suffix = strrchr(base ? base : v->out, '.');
    int process = (int)strcspn(log, ".");

    if (process > 2 && !memcmp(log + process - 2, "-0", 2))
        process -= 2;
    if (!suffix || suffix == base)
        suffix = v->out + strlen(v->out);
    if (r->count == 1)
        snprintf(name, ROOM, "%s", v->out);
    else
        snprintf(name, ROOM, "%.*s.%.*s%s", (int)(suffix - v->out), v->out,
                 process, log, suffix);
}

static void say(const struct record_values *v, const char *name,
                const struct frag_trace *t)
{
    if (v->common.quiet)
        return;
    for (uint32_t i = 0; i < t->device_count; i++)
        printable_line(stderr, "%s: %s, %llu events", name,
                       FRAG_DEVICE_NAME(t->devices[i].device),
                       (unsigned long long)t->devices[i].count);
    say_notes(name, t);
}

static int write_traces(const struct call *call, const struct record_values *v,
                        const struct recording *r, struct frag_error *e)
{
    char name[ROOM];
    int code = EXIT_DONE;

    for (int i = 0; i < r->log_count && code == EXIT_DONE; i++)
        if (r->traces[i]) {
            name_trace(v, r, i, name);
            code = cli_may_replace(call, name, v->force);
        }
    for (int i = 0; i < r->log_count && code == EXIT_DONE; i++)
        if (r->traces[i]) {
            name_trace(v, r, i, name);
            code = cli_fail(call, frag_trace_write(r->traces[i], name, e), e);
            if (code == EXIT_DONE)
                say(v, name, r->traces[i]);
        }
    return code;
}

/* ---- the command ---- */

static enum frag_err run_program(const struct record_values *v,
                                 struct recording *r, int *status,
                                 struct frag_error *e)
{
    const char *loaded = getenv("LD_PRELOAD");
    char library[PATH_MAX], preload[2 * PATH_MAX], *path = NULL;
    enum frag_err err;

    FRAG_TRY(find_library(library, e));
    FRAG_TRY(python_start(&path, e));
    snprintf(preload, sizeof(preload), "%s%s%s", library,
             loaded && *loaded ? ":" : "", loaded ? loaded : "");
    err = make_folder(v->out, r, e);
    if (err == FRAG_OK) {
        const struct setting settings[] = {{"LD_PRELOAD", preload},
                                           {RECORD_FOLDER, r->folder},
                                           {"PYTHONPATH", path},
                                           {NULL, NULL}};

        err = program_run(&v->common.args, settings, NULL, status, e);
        if (err != FRAG_OK)
            rmdir(r->folder);
    }
    free(path);
    return err;
}

static int nothing_recorded(const struct call *call, int status)
{
    fprintf(stderr,
            "fragsim %s: the program made no CUDA memory calls; the recorder "
            "does not see a program that is statically linked or runs as "
            "another user\n",
            call->name);
    return status ? status : EXIT_DEVICE;
}

/* Converts the logs to traces. The logs are kept if that fails. */
static int convert(const struct call *call, const struct record_values *v,
                   struct recording *r, int status)
{
    struct frag_error e = {""};
    int code = cli_fail(call, read_logs(r, &e), &e);

    if (code == EXIT_DONE)
        code = write_traces(call, v, r, &e);
    if (code == EXIT_DONE && !r->count)
        status = nothing_recorded(call, status);
    if (code == EXIT_DONE && !(v->keep && r->count))
        remove_logs(r);
    else
        printable_line(
            stderr,
            "fragsim %s: the logs are in %s; every command can read them",
            call->name, r->folder);
    close_all(r);
    return code == EXIT_DONE ? status : code;
}

static int record_run(const struct call *call, const void *values)
{
    const struct record_values *v = values;
    struct recording r = {.folder = ""};
    struct frag_error e = {""};
    int code, status = 0;

    if (!v->out || !strcmp(v->out, "-"))
        return cli_misuse(call, "expected -o FILE: a trace file is HDF5 and "
                                "cannot go to stdout");
    code = cli_may_replace(call, v->out, v->force);
    if (code == EXIT_DONE)
        code = cli_fail(call, run_program(v, &r, &status, &e), &e);
    return code == EXIT_DONE ? convert(call, v, &r, status) : code;
}

#define AT(field) offsetof(struct record_values, field)
static const struct option_row options[] = {
    {"output", 'o', "FILE", OPTION_TEXT, AT(out), NULL, "the trace file"},
    FORCE_OPTION(AT(force)),
    {"keep", 'k', NULL, OPTION_SWITCH, AT(keep), NULL,
     "keep the logs from which the trace is made, in a folder beside it"},
    {0},
};

const struct verb verb_record = {
    .name = "record",
    .args = "-o FILE -- PROGRAM [ARGUMENT...]",
    .summary = "run a CUDA program and record its memory requests to the "
               "driver",
    .about =
        "The program may call the CUDA driver or its runtime, linked as a "
        "shared or a static library. The trace contains device memory from "
        "cudaMalloc, from cudaMallocAsync and from pools, managed and pitched "
        "memory, arrays, and physical memory from cuMemCreate. Pinned memory "
        "of the host, from cudaMallocHost and cudaHostAlloc, is the device "
        "host, for --device host; the ranges that the program allocated itself "
        "and registered with cudaHostRegister are a pool of their own there. "
        "The trace contains the streams, the failed requests, and the memory "
        "that a reset of the context frees. Memory that is allocated in other "
        "ways, for example by graphs, is only counted; the command prints the "
        "count at the end. The program may start other processes: each process "
        "that requests memory has its own trace. If there are several traces, "
        "the number of the process is before the suffix: FILE.123.h5. The "
        "calls "
        "by which a Python program changes the settings or the limit of "
        "PyTorch's allocator are changes of settings in the trace, with their "
        "stacks.\n\n"
        "While the program runs, its calls are logged in a folder beside FILE. "
        "If the program is killed, the logs are complete up to that moment. If "
        "this command is killed, every other command can read the logs.\n\n"
        "The exit code is that of the program; 128 plus the number of the "
        "signal that ended it; or, if the recording failed, an exit code of "
        "fragsim.",
    .example = "fragsim record -o train.h5 -- python3 train.py --steps 10",
    .options = options,
    .size = sizeof(struct record_values),
    .defaults = &(const struct record_values){.out = NULL},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = record_run,
};
