/* verb_run.c - the command run: executes a program in place of the tool, with
 * its PyTorch on a policy of fragsim. The policy itself runs in real/torch/;
 * the programs of Python load it through real/torch/start/. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/arena/arena.h"
#include "sim/cli/cli.h"
#include "sim/cli/program.h"
#include "sim/cli/verbs/python.h"
#include "sim/experiments/choices.h"
#include "sim/replay/serve.h"
#include "traces/printable.h"

struct run_values {
    struct common common;
    const char *policy, *out;
    frag_size capacity;
    bool force;
};

/* The texts of the variables that the library and the start folder read. */
struct texts_of_run {
    char policy[PATH_MAX], capacity[32], output[2 * PATH_MAX], started[32];
    char library[PATH_MAX];
    char unused[PATH_MAX]; /* see watch */
    char *path;            /* PYTHONPATH; owned */
};

/* ---- the policy ---- */

/* Opens the policy on a simulated device, as the library does on the real one:
 * this finds parameters that contradict each other, and a policy that cannot
 * serve a program. */
static enum frag_err try_policy(const struct policy_choice *p,
                                frag_size capacity, struct frag_error *e)
{
    struct frag_backend *arena =
        frag_arena_open(&(const struct frag_arena_options){
            .capacity = capacity, .total = FRAG_H200_TOTAL});
    struct frag_serve *serve = NULL;
    enum frag_err err = FRAG_NOMEM;

    if (arena)
        err = frag_serve_open(
            &(const struct frag_serve_options){
                .policy = p->policy, .prepared = p->params, .mem = arena},
            &serve, e);
    frag_serve_close(serve);
    frag_arena_close(arena);
    return err;
}

static enum frag_err check_policy(const struct run_values *v,
                                  const struct policy_choice *p,
                                  char text[PATH_MAX], struct frag_error *e)
{
    if (p->recorded)
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected the settings themselves, because a "
                         "program has no trace with settings; write them after "
                         "\"torch:\"",
                         p->text);
    if (*p->digest)
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a policy of fragsim; a policy in a "
                         "shared library cannot serve a program",
                         p->text);
    if (snprintf(text, PATH_MAX, "%s%s%s", p->policy->name,
                 *p->given ? ":" : "", p->given) >= PATH_MAX)
        return frag_fail(e, FRAG_INVALID,
                         "--policy: expected fewer than %d characters",
                         PATH_MAX);
    return try_policy(p, v->capacity, e);
}

/* Writes the policy as the library reads it. */
static enum frag_err read_policy(const struct run_values *v,
                                 char text[PATH_MAX], struct frag_error *e)
{
    struct policy_choice choice;
    enum frag_err err;

    FRAG_TRY(policy_choice_read(v->policy, &choice, e));
    err = check_policy(v, &choice, text, e);
    policy_choice_free(&choice);
    return err;
}

/* ---- the environment ---- */

/* The time by the clock that the kernel stamps files with. */
static void name_start(char text[32])
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    snprintf(text, 32, "%lld.%09ld", (long long)now.tv_sec, now.tv_nsec);
}

static enum frag_err prepare(const struct run_values *v, struct texts_of_run *t,
                             struct frag_error *e)
{
    FRAG_TRY(read_policy(v, t->policy, e));
    if (v->out)
        FRAG_TRY(python_output(v->out, t->output, e));
    if (v->capacity == FRAG_UNLIMITED)
        strcpy(t->capacity, "inf");
    else
        frag_size_argument(v->capacity, t->capacity);
    name_start(t->started);
    FRAG_TRY(program_library("libfragsim_torch.so", t->library, e));
    return python_start(&t->path, e);
}

/* ---- the end ---- */

/* Waits for the end of the program, and says so if nobody removed the file. */
static void tell_unused(int program, const char *unused)
{
    struct pollfd end = {.fd = program, .events = POLLIN};
    const int nowhere = open("/dev/null", O_RDWR);

    setsid(); /* a signal of the terminal is for the program */
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    while (poll(&end, 1, -1) < 0 && errno == EINTR)
        continue;
    if (unlink(unused) == 0)
        fputs("fragsim run: no process of the program used a GPU through "
              "PyTorch: the policy served nothing, and there are no results\n",
              stderr);
}

/* Starts a process that outlives the program, to which it is no child, and
 * makes a file that the first process on the policy removes. */
static bool watch(char unused[PATH_MAX])
{
    const char *folder = getenv("TMPDIR");
    int program, file, status;
    pid_t parent;

    snprintf(unused, PATH_MAX, "%s/fragsim-run-XXXXXX",
             folder && *folder ? folder : "/tmp");
    file = mkstemp(unused);
    if (file < 0)
        return false;
    close(file);
    program = (int)syscall(SYS_pidfd_open, getpid(), 0);
    parent = program < 0 ? -1 : fork();
    if (parent == 0) {
        const pid_t watcher = fork();

        if (watcher == 0)
            tell_unused(program, unused);
        _exit(watcher < 0);
    }
    return parent > 0 && waitpid(parent, &status, 0) == parent && !status;
}

/* Returns only if the program cannot be executed. */
static enum frag_err execute(const struct run_values *v,
                             const struct texts_of_run *t, struct frag_error *e)
{
    const struct setting settings[] = {
        {"FRAGSIM_POLICY", t->policy},
        {"FRAGSIM_CAPACITY", t->capacity},
        {"FRAGSIM_OUTPUT", v->out ? t->output : NULL},
        {"FRAGSIM_REPLACE", v->force ? "1" : NULL},
        {"FRAGSIM_STARTED", t->started},
        {"FRAGSIM_TORCH_LIBRARY", t->library},
        {"FRAGSIM_UNUSED", *t->unused ? t->unused : NULL},
        {"PYTHONPATH", t->path},
        {NULL, NULL}};
    const size_t count = v->common.args.count;
    const char **argv = calloc(count + 1, sizeof(*argv));
    enum frag_err err;

    if (!argv)
        return FRAG_NOMEM;
    memcpy(argv, v->common.args.items, count * sizeof(*argv));
    err = child_become(
        &(const struct child){.argv = argv, .settings = settings}, e);
    free(argv);
    return err;
}

static int run_run(const struct call *call, const void *values)
{
    const struct run_values *v = values;
    struct texts_of_run t = {.path = NULL};
    struct frag_error e = {""};
    enum frag_err err;
    int code;

    if (!v->policy)
        return cli_misuse(call, "expected -p POLICY; `fragsim policies' lists "
                                "them, and `fragsim replay' runs them on "
                                "traces");
    if (v->out && !strcmp(v->out, "-"))
        return cli_misuse(call, "expected -o FILE: a result file is HDF5 and "
                                "cannot go to stdout");
    code = cli_may_replace(call, v->out, v->force);
    if (code != EXIT_DONE)
        return code;
    err = prepare(v, &t, &e);
    if (err == FRAG_OK && !v->common.quiet && !watch(t.unused)) {
        printable_line(stderr,
                       "fragsim run: whether the program uses the policy is "
                       "not watched: %s",
                       strerror(errno));
        unlink(t.unused);
        *t.unused = '\0';
    }
    FRAG_THEN(err, execute(v, &t, &e));
    unlink(t.unused);
    free(t.path);
    code = cli_fail(call, err, &e);
    if (err == FRAG_IO && access(v->common.args.items[0], F_OK) == 0)
        fputs("If this is a trace: `fragsim replay' runs policies on traces.\n",
              stderr);
    return code;
}

#define AT(field) offsetof(struct run_values, field)
static const struct option_row options[] = {
    {"policy", 'p', "POLICY", OPTION_TEXT, AT(policy), NULL,
     "NAME or NAME:PARAMS (see `fragsim policies`); torch@2.6[:PARAMS] is the "
     "rules of PyTorch 2.6. A policy that `fragsim policies` marks \"traces "
     "only\" cannot serve a program"},
    {"capacity", 'c', "SIZE", OPTION_SIZE, AT(capacity), NULL,
     "the most bytes that the policy may hold on each device, such as 20GiB "
     "(default: inf, all that the device has; a policy reads what other "
     "programs leave of it at the first use of the GPU, and again after each "
     "torch.cuda.empty_cache())"},
    {"output", 'o', "FILE", OPTION_TEXT, AT(out), NULL,
     "the result file, written when the program ends; %p in the name is the "
     "number of the process"},
    FORCE_OPTION(AT(force)),
    {0},
};

const struct verb verb_run = {
    .name = "run",
    .args = "-p POLICY -- PROGRAM [ARGUMENT...]",
    .summary = "run a PyTorch program with its GPU memory on a policy",
    .about =
        "The program needs no change. In each process of Python that the "
        "program starts, also under torchrun and multiprocessing, the policy "
        "serves the GPU memory of PyTorch as soon as `import torch` is "
        "complete. Processes that never import torch are not affected, and the "
        "GPU is not used before the program uses it. All functions of "
        "torch.cuda.memory work. The first run compiles a small library "
        "against the installed PyTorch, which takes half a minute and needs a "
        "C++ compiler; without one, PyTorch's statistics, snapshots, graphs "
        "and memory pools are missing, and a warning says so.\n\n"
        "If a process cannot run on the policy, for example because its "
        "PyTorch was built without CUDA, it ends with a message and the exit "
        "code 5. A Python that ignores PYTHONPATH or sitecustomize (options "
        "-I, -E and -S) does not load the policy; there, use `import "
        "fragsim_torch; fragsim_torch.use()`. Settings of PyTorch's allocator "
        "that the program changes while it runs are not those of the policy: "
        "the results have a note of such calls.\n\n"
        "Each process that uses a GPU writes its results to FILE at its end; "
        "every command that reads results reads them. Without %p in the name, "
        "a process does not overwrite the results of another process of the "
        "same run: it inserts its own number before the suffix, and says so. "
        "If no process has used a GPU through PyTorch when the program ends, a "
        "line on stderr says that the policy served nothing (not with -q).\n\n"
        "The program takes the place of this command: it has the same process "
        "number, receives all signals, and its exit code is that of the "
        "command. The settings reach the program as environment variables "
        "whose names begin with FRAGSIM_; those that the options do not set "
        "are removed.",
    .example = "fragsim run -p remap -o run-%p.h5 -- torchrun "
               "--nproc-per-node 8 train.py",
    .options = options,
    .size = sizeof(struct run_values),
    .defaults = &(const struct run_values){.capacity = FRAG_UNLIMITED},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = run_run,
};
