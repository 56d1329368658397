/* verb_dry.c - the command dry: runs a PyTorch program on stand-ins for CUDA's
 * libraries (real/dry/), and answers from the snapshots that PyTorch wrote. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/device/gpus.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/program.h"
#include "sim/cli/scratch.h"
#include "sim/cli/verbs/dry/dry_answer.h"
#include "sim/cli/verbs/dry/dry_try.h"
#include "sim/cli/verbs/python.h"
#include "traces/bytes/temporary.h"

enum { ROOM = 2 * PATH_MAX };

struct dry_values {
    struct common common;
    const char *gpu; /* NULL: an H200, which the exit code does not judge */
    const char *out, *assume, *computed, *json, *setup, *tried;
    uint64_t devices;
    frag_size memory; /* 0: the GPU's */
    bool busy, strict, force;
};

/* The variables that the start folder and the stand-ins read. */
struct dry_scene {
    char libraries[PATH_MAX], module[PATH_MAX];
    char devices[32], memory[32];
    char output[ROOM];          /* "" without -o */
    char *path;                 /* PYTHONPATH; owned */
    char *folder;               /* of the files of all processes; owned */
    const struct frag_gpu *gpu; /* NULL: several, one after another */
    struct frag_gpu changed;    /* the GPU, if it has another size */
    char name[128];
};

/* Whether --gpu has several GPUs. */
static bool is_list(const struct dry_values *v)
{
    return v->gpu && (!strcmp(v->gpu, "all") || strchr(v->gpu, ','));
}

/* Sets the GPU. False if there is none of that name. */
static bool find_gpu(const struct dry_values *v, struct dry_scene *p)
{
    const struct frag_gpu *g = frag_gpu_find(v->gpu ? v->gpu : "h200");

    p->gpu = g;
    if (g && v->memory) {
        p->changed = *g;
        p->changed.total = v->memory;
        p->changed.memory_source = "as --memory says";
        snprintf(p->name, sizeof(p->name), "%s with %s", g->name,
                 FRAG_SHOW_SIZE(v->memory));
        p->changed.name = p->name;
        p->gpu = &p->changed;
    }
    return g || is_list(v);
}

/* Whether the user named the GPU, so that the exit code says whether it is
 * enough. */
static bool is_judged(const struct dry_values *v)
{
    return v->gpu || v->memory;
}

/* ---- the setup ---- */

/* Finds a module of real/dry/ beside the tool or where it is installed. */
static enum frag_err find_module(const char *name, char path[PATH_MAX],
                                 struct frag_error *e)
{
    static const char *const places[] = {
        "../share/fragsim", "..", /* the second: Python package */
        FRAG_DRY_SOURCE, FRAG_DRY_INSTALLED, NULL};

    if (program_find(name, places, path))
        return FRAG_OK;
    return frag_fail(e, FRAG_IO,
                     "expected %s in %s, found none: install fragsim again",
                     name, FRAG_DRY_INSTALLED);
}

/* Makes an environment in the folder, with these requirements of pip, by the
 * python3 on the PATH, in place of this process. */
static enum frag_err dry_setup(const char *folder,
                               const struct texts *requirements,
                               struct frag_error *e)
{
    const char **argv = calloc(requirements->count + 4, sizeof(*argv));
    char module[PATH_MAX];
    enum frag_err err;

    if (!argv)
        return frag_no_memory(e, "the command of the setup");
    err = find_module("fragsim_dry_setup.py", module, e);
    argv[0] = "python3";
    argv[1] = module;
    argv[2] = folder;
    for (size_t i = 0; i < requirements->count; i++)
        argv[3 + i] = requirements->items[i];
    FRAG_THEN(err, child_become(&(const struct child){.argv = argv}, e));
    free(argv);
    return err;
}

/* ---- the program ---- */

static enum frag_err find_parts(const struct dry_values *v, struct dry_scene *p,
                                struct frag_error *e)
{
    snprintf(p->devices, sizeof(p->devices), "%llu",
             (unsigned long long)v->devices);
    snprintf(p->memory, sizeof(p->memory), "%llu",
             (unsigned long long)(v->memory / FRAG_MIB));
    FRAG_TRY(program_library("dry/libcuda.so.1", p->libraries, e));
    *strrchr(p->libraries, '/') = '\0';
    FRAG_TRY(find_module("fragsim_dry.py", p->module, e));
    return python_start(&p->path, e);
}

/* The folder is beside the output, so that the snapshots can be renamed. */
static enum frag_err make_folder(const struct dry_values *v,
                                 struct dry_scene *p, struct frag_error *e)
{
    char head[sizeof(p->output) + sizeof(".parts-")];

    if (!v->out)
        return scratch_make(&p->folder, e);
    FRAG_TRY(python_output(v->out, p->output, e));
    snprintf(head, sizeof(head), "%s.parts-", p->output);
    p->folder = temporary_folder(head, "");
    return p->folder ? FRAG_OK
                     : frag_fail(e, FRAG_IO, "%s: %s", head, strerror(errno));
}

/* What stands for values that nobody computes, and for the order of threads. */
struct draw {
    const char *seed, *alike; /* alike: which rows are equal; NULL: none */
    const char *prompt;       /* "1": the threads of NCCL are never late */
};

/* The first run, whose output is shown, the extreme that shows whether anything
 * hangs on what was drawn, and, if so, the others. */
static const struct draw draws[] = {{"0", NULL, NULL},   {"1", "all", "1"},
                                    {"1", NULL, NULL},   {"2", NULL, "1"},
                                    {"2", "more", NULL}, {"3", "some", "1"}};
static const struct draw prompt = {"0", NULL, "1"};

static enum frag_err run_program(const struct dry_values *v,
                                 const struct texts *command,
                                 const struct draw *draw, struct dry_scene *p,
                                 int *status, struct frag_error *e)
{
    const struct setting settings[] = {
        {"FRAGSIM_DRY_GPU", p->gpu->id},
        {"FRAGSIM_DRY_ENDLESS", v->strict ? NULL : "1"},
        {"FRAGSIM_DRY_DEVICES", p->devices},
        {"FRAGSIM_DRY_MEMORY", v->memory ? p->memory : NULL},
        {"FRAGSIM_DRY_ASSUME", v->assume},
        {"FRAGSIM_DRY_VALUES", v->computed},
        {"FRAGSIM_DRY_SEED", draw->seed},
        {"FRAGSIM_DRY_ALIKE", draw->alike},
        {"FRAGSIM_DRY_PROMPT", draw->prompt},
        {"FRAGSIM_DRY_LAZY", v->busy ? "1" : NULL},
        {"FRAGSIM_DRY_LIBRARIES", p->libraries},
        {"FRAGSIM_DRY_MODULE", p->module},
        {"FRAGSIM_DRY_FOLDER", p->folder},
        {"PYTHONPATH", p->path},
        {"MALLOC_MMAP_THRESHOLD_", "262144"}, /* large blocks that the program
                                                 frees go back to the system */
        {NULL, NULL}};

    const char *output = draw == draws ? NULL : "/dev/null";
    const enum frag_err err = program_run(command, settings, output, status, e);
    const char *end = strrchr(command->items[0], '.');

    if (err != FRAG_IO || !end || strcmp(end, ".py") != 0)
        return err;
    return frag_fail(e, FRAG_INVALID,
                     "%s cannot be run; did you mean -- python %s?",
                     command->items[0], command->items[0]);
}

/* ---- its snapshots ---- */

/* The file that each process has which used a device (real/dry/dry_live.h). */
static int is_live(const struct dirent *entry)
{
    return strstr(entry->d_name, ".live") != NULL;
}

/* The name of the trace of a process: OUT; if there are several, OUT with the
 * rank, or else the number of the process, before its suffix. */
static void name_trace(const char *out, const struct dry_process *process,
                       int count, char name[ROOM])
{
    const char *base = strrchr(out, '/'), *suffix = strrchr(base, '.');
    char which[64] = "";

    if (!suffix || suffix == base + 1)
        suffix = out + strlen(out);
    if (count > 1 && process->rank >= 0)
        snprintf(which, sizeof(which), "-rank%ld", process->rank);
    else if (count > 1)
        snprintf(which, sizeof(which), "-%s", process->number);
    snprintf(name, ROOM, "%.*s%s%s", (int)(suffix - out), out, which, suffix);
}

/* Moves the snapshots to their final names. */
static enum frag_err keep(const struct dry_scene *p, struct dry_answer *a,
                          struct frag_error *e)
{
    char to[ROOM];

    for (size_t i = 0; *p->output && i < a->process_count; i++) {
        struct dry_process *process = &a->processes[i];

        if (!process->trace)
            continue;
        name_trace(p->output, process, (int)a->process_count, to);
        if (rename(process->trace, to) != 0)
            return frag_fail(e, FRAG_IO, "%s: %s", to, strerror(errno));
        free(process->trace);
        process->trace = strdup(to);
        if (!process->trace)
            return frag_no_memory(e, "the name of a trace");
    }
    return FRAG_OK;
}

/* Reads what one process left. */
static enum frag_err take(const struct dry_scene *p, const char *file,
                          struct dry_process *process, struct frag_error *e)
{
    static const char *const kinds[] = {"live", "notes", "pickle"};
    char from[ROOM];

    snprintf(process->number, sizeof(process->number), "%.*s",
             (int)strcspn(file, "."), file);
    for (int i = 0; i < 3; i++) {
        snprintf(from, sizeof(from), "%s/%s.%s", p->folder, process->number,
                 kinds[i]);
        if (access(from, F_OK) != 0)
            return FRAG_OK; /* it was killed before it wrote this */
        if (i < 2)
            FRAG_TRY(dry_notes_read(from, process, e));
    }
    process->trace = strdup(from);
    return process->trace ? FRAG_OK : FRAG_NOMEM;
}

/* Reads what all processes left. The caller frees the processes, on error too.
 */
static enum frag_err take_all(const struct dry_values *v,
                              const struct dry_scene *p, struct dry_answer *a,
                              struct frag_error *e)
{
    struct dirent **files;
    const int count = scandir(p->folder, &files, is_live, alphasort);
    enum frag_err err = FRAG_OK;

    if (count < 0)
        return frag_fail(e, FRAG_IO, "%s: %s", p->folder, strerror(errno));
    if (!count)
        err = frag_fail(e, FRAG_INVALID,
                        "%s: expected a program that uses a GPU through "
                        "PyTorch; no process did",
                        v->common.args.items[0]);
    a->processes = calloc((size_t)count + 1, sizeof(*a->processes));
    if (!a->processes)
        err = frag_no_memory(e, "the processes");
    for (int i = 0; i < count; i++) {
        if (err == FRAG_OK) {
            a->processes[i].rank = -1;
            a->process_count++;
            err = take(p, files[i]->d_name, &a->processes[i], e);
        }
        free(files[i]);
    }
    free(files);
    return err;
}

/* Reads what servers logged. */
static void take_said(const struct dry_scene *p, struct dry_answer *a)
{
    char path[ROOM];
    FILE *in;

    snprintf(path, sizeof(path), "%s/said", p->folder);
    in = fopen(path, "r");
    if (in)
        startup_read(in, &a->server);
    if (in)
        fclose(in);
}

/* Why there is no answer: the error. */
static enum frag_err say_nothing(const struct dry_values *v,
                                 const struct dry_answer *a,
                                 struct frag_error *e)
{
    char text[sizeof(e->text)];

    for (size_t i = 0; i < a->process_count; i++)
        if (dry_death(&a->processes[i], a->status, text, sizeof(text)))
            return frag_fail(e, FRAG_INVALID, "%s, and wrote no trace", text);
    return frag_fail(e, FRAG_INVALID,
                     "%s: expected a program that allocates memory of a GPU "
                     "through PyTorch; it used a GPU and allocated nothing",
                     v->common.args.items[0]);
}

/* Runs the command, and finds what it needs from what its processes left. The
 * caller frees the answer, on error too. */
static enum frag_err find_run(const struct dry_values *v,
                              const struct texts *command,
                              const struct draw *draw, struct dry_scene *p,
                              struct dry_answer *a, struct frag_error *e)
{
    FRAG_TRY(make_folder(v, p, e));
    a->gpu = p->gpu;
    a->runs = 1;
    a->is_kept = *p->output != '\0';
    FRAG_TRY(run_program(v, command, draw, p, &a->status, e));
    take_said(p, a);
    FRAG_TRY(take_all(v, p, a, e));
    FRAG_TRY(dry_answer_find(a, &v->common, e));
    return a->count ? FRAG_OK : say_nothing(v, a, e);
}

/* Runs the command with other drawn values; the folder is that of the run that
 * needs most. *same: this run needs what the others need. */
static enum frag_err add_run(const struct dry_values *v,
                             const struct texts *command,
                             const struct draw *draw, struct dry_scene *p,
                             struct dry_answer *a, bool *same,
                             struct frag_error *e)
{
    struct dry_answer other = {.color = a->color};
    char *folder = p->folder, *spare;
    enum frag_err err;

    p->folder = NULL;
    err = find_run(v, command, draw, p, &other, e);
    if (err == FRAG_INVALID) /* it ended before it used memory */
        other.count = 0, err = FRAG_OK;
    *same = dry_is_same(a, &other);
    spare = p->folder;
    if (err == FRAG_OK) {
        const struct dry_process *before = a->processes;

        dry_add_run(a, &other);
        if (a->processes != before)
            spare = folder, folder = p->folder;
    }
    dry_answer_free(&other);
    temporary_remove(spare);
    p->folder = folder;
    return err;
}

/* Runs the command, again with other numbers where some were drawn, and finds
 * what it needs. The caller frees the answer, on error too. */
static enum frag_err find_answer(const struct dry_values *v,
                                 const struct texts *command,
                                 struct dry_scene *p, struct dry_answer *a,
                                 struct frag_error *e)
{
    size_t count = 1;
    bool same = false;

    FRAG_TRY(find_run(v, command, draws, p, a, e));
    if (a->status == 0 && dry_has(a, "drawn"))
        count = sizeof(draws) / sizeof(*draws);
    for (size_t i = 1; i < count && !(i == 2 && same); i++)
        FRAG_TRY(add_run(v, command, &draws[i], p, a, &same, e));
    if (a->status == 0 && a->runs == 1 && dry_has(a, "late"))
        FRAG_TRY(add_run(v, command, &prompt, p, a, &same, e));
    dry_widen(a);
    return keep(p, a, e);
}

static int run_once(const struct call *call, const struct dry_values *v,
                    struct dry_scene *p)
{
    struct frag_error e = {""};
    struct dry_answer a = {.color = cli_colors(&v->common, stdout)};
    int code = EXIT_DONE, no = EXIT_DONE;
    enum frag_err err = find_parts(v, p, &e);

    FRAG_THEN(err, find_answer(v, &v->common.args, p, &a, &e));
    FRAG_THEN(err, answer_write(call, &(const struct answer){dry_put, NULL, &a},
                                v->json, &e));
    if (err == FRAG_OK && is_judged(v))
        no = dry_any_lacks_memory(&a)     ? EXIT_UNKNOWN
             : dry_all_fit(&a, p->gpu, 0) ? EXIT_DONE
                                          : EXIT_NO;
    dry_answer_free(&a);
    if (a.status == 0 || a.status > 128 || err != FRAG_INVALID)
        code = cli_fail(call, err, &e); /* else the program said why */
    if (a.status && (err == FRAG_OK || err == FRAG_INVALID))
        return a.status;
    return code != EXIT_DONE ? code : no;
}

/* ---- several values ---- */

/* The runs of the values. */
struct tries {
    const struct dry_values *v;
    struct dry_scene *p;
};

/* Whether the user ended the program, and so all runs. */
static bool is_ended(int status)
{
    return status == 128 + SIGINT || status == 128 + SIGQUIT ||
           status == 128 + SIGTERM || status == 128 + SIGHUP;
}

/* Runs the program on a GPU; the files of the run are removed. */
static enum frag_err try_once(void *user, const struct texts *command,
                              const struct frag_gpu *gpu, struct dry_answer *a,
                              struct frag_error *e)
{
    const struct tries *t = user;
    enum frag_err err;

    t->p->gpu = gpu;
    err = find_answer(t->v, command, t->p, a, e);
    temporary_remove(t->p->folder);
    t->p->folder = NULL;
    if (is_ended(a->status))
        return FRAG_CANCELLED;
    if (err != FRAG_INVALID || !a->status)
        return err;
    a->count = 0; /* it failed before it used memory of a GPU */
    return FRAG_OK;
}

static int run_tries(const struct call *call, const struct dry_values *v,
                     struct dry_scene *p)
{
    struct frag_error e = {""};
    struct tries tries = {v, p};
    struct dry_try t = {.values = v->tried,
                        .command = &v->common.args,
                        .gpus = is_list(v) ? v->gpu : NULL,
                        .gpu = p->gpu,
                        .judged = is_judged(v) ? p->gpu : NULL,
                        .color = cli_colors(&v->common, stdout),
                        .run = try_once,
                        .user = &tries};
    enum frag_err err = dry_try_check(&t, &e);
    bool fits = false;

    if (err != FRAG_OK)
        return cli_misuse(call, "%s", e.text);
    err = find_parts(v, p, &e);
    FRAG_THEN(err, dry_try_all(&t, &e));
    if (err == FRAG_OK)
        err = answer_write(
            call, &(const struct answer){dry_try_put, dry_try_put_after, &t},
            v->json, &e);
    fits = dry_try_fits(&t);
    dry_try_free(&t);
    if (err != FRAG_OK)
        return cli_fail(call, err, &e);
    return fits ? EXIT_DONE : EXIT_NO;
}

/* ---- the command ---- */

/* The option for which Python ignores PYTHONPATH: -I, -E or -S; NULL: none. */
static const char *ignoring_option(const struct texts *command)
{
    const char *name = strrchr(command->items[0], '/');

    name = name ? name + 1 : command->items[0];
    for (size_t i = 1; !strncmp(name, "python", 6) && i < command->count; i++) {
        const char *option = command->items[i];
        const size_t letters = strcspn(option, "cmWX"); /* a value follows */

        if (*option == '-' && strcspn(option, "IES") < letters)
            return option;
        if (*option != '-' || (option[letters] && !option[letters + 1]))
            return NULL;
    }
    return NULL;
}

static int dry_run(const struct call *call, const void *values)
{
    const struct dry_values *v = values;
    struct dry_scene p = {.path = NULL};
    struct frag_error e = {""};
    char unknown[GPU_UNKNOWN];
    int code;

    if (v->setup)
        return cli_fail(call, dry_setup(v->setup, &v->common.args, &e), &e);
    if (!v->common.args.count)
        return cli_misuse(call, "expected -- PROGRAM [ARGUMENT...], such as -- "
                                "python train.py");
    if (ignoring_option(&v->common.args))
        return cli_misuse(call,
                          "with %s Python does not import what this command "
                          "puts before the program: leave it out",
                          ignoring_option(&v->common.args));
    if (!find_gpu(v, &p))
        return cli_misuse(call, "%s", gpu_unknown(v->gpu, "--memory", unknown));
    if (v->devices < 1 || v->devices > FRAG_GPUS_MOST)
        return cli_misuse(call, "--gpus: expected 1 to %d", FRAG_GPUS_MOST);
    if (is_list(v) && (v->memory || v->tried))
        return cli_misuse(call, "--gpu %s: --memory and --try need one GPU",
                          v->gpu);
    if (v->out && (v->tried || is_list(v)))
        return cli_misuse(call, "--output keeps one run and --try or several "
                                "GPUs make several: leave out one of them");
    code = cli_may_replace(call, v->out, v->force);
    if (code == EXIT_DONE && v->json)
        code = cli_may_replace(call, v->json, v->force);
    if (code != EXIT_DONE)
        return code;
    code =
        v->tried || is_list(v) ? run_tries(call, v, &p) : run_once(call, v, &p);
    temporary_remove(p.folder);
    free(p.path);
    return code;
}

#define AT(field) offsetof(struct dry_values, field)
static const struct option_row options[] = {
    {"gpu", 0, "NAME", OPTION_TEXT, AT(gpu), NULL,
     "the GPU: " FRAG_GPU_IDS
     "; exit code 1 if the program does not fit it (default: h200, and the "
     "exit code is that of the program); several with commas, or all: run it "
     "once on each"},
    {"gpus", 0, "N", OPTION_NUMBER, AT(devices), NULL,
     "number of GPUs of the machine (default: 1), of which "
     "CUDA_VISIBLE_DEVICES selects as on a GPU"},
    {"memory", 0, "SIZE", OPTION_SIZE, AT(memory), NULL,
     "memory of the GPU, in place of that of the table; exit code 1 if the "
     "program does not fit it"},
    {"try", 0, "VALUES", OPTION_TEXT, AT(tried), NULL,
     "run the program once for each value, which takes the place of {} in its "
     "arguments: 8,16,32 or names; A..B finds the largest number from A to B "
     "that fits --gpu or --memory, by halves, as if a larger one needs more"},
    {"strict", 0, NULL, OPTION_SWITCH, AT(strict), NULL,
     "an allocation that does not fit fails as on the GPU, so a program that "
     "does not fit dies of it (default: the GPU never refuses, the program "
     "runs to its end, and the answer says what fits)"},
    {"assume", 0, "KIND=VALUE,...", OPTION_TEXT, AT(assume), NULL,
     "what the program reads from the device: item (a number), bool (an item "
     "that is true or false), nonzero or unique (a count, or a part of the "
     "elements such as 25%); without it, it is computed"},
    {"values", 0, "SHARE", OPTION_TEXT, AT(computed), NULL,
     "part of the time of the run that computing what the program reads from "
     "the device may take, such as 20% (default); what is too dear is drawn; "
     "off: all that it reads is zero"},
    {"output", 'o', "TRACE", OPTION_TEXT, AT(out), NULL,
     "keep the snapshot that PyTorch writes at the end; with several "
     "processes, one each, with the rank or the number of the process in its "
     "name"},
    {"busy", 0, NULL, OPTION_SWITCH, AT(busy), NULL,
     "the GPU is behind the program: work ends only when the program waits for "
     "it, so memory that other streams use is free late"},
    {"json", 0, "FILE", OPTION_TEXT, AT(json), NULL,
     "the answer as JSON; - is stdout"},
    {"setup", 0, "FOLDER", OPTION_TEXT, AT(setup), NULL,
     "make an environment of Python with PyTorch's build for CUDA in the "
     "folder, without the libraries that stand-ins replace, and run nothing; "
     "requirements of pip may follow --, such as torch==2.11.0 transformers, "
     "and triton for programs that call torch.compile"},
    {"force", 'f', NULL, OPTION_SWITCH, AT(force), NULL,
     "overwrite existing files"},
    {0},
};

const struct verb verb_dry = {
    .name = "dry",
    .args = "[--gpu NAME] -- PROGRAM [ARGUMENT...]",
    .summary = "run a PyTorch program without a GPU, and say whether it fits",
    .about =
        "The program runs on PyTorch's own build for CUDA, with PyTorch's own "
        "allocator, on a machine without a GPU: stand-ins take the place of "
        "CUDA's libraries. Memory of the device is addresses without "
        "contents, and kernels do nothing, so a run takes the time that "
        "PyTorch needs to launch it, and the memory that the program needs on "
        "the host. The stand-ins answer as a GPU of that name does: PyTorch "
        "selects its kernels by that.\n\n"
        "`fragsim dry --setup FOLDER' makes an environment of Python in which "
        "this works; any other with PyTorch's build for CUDA works too. In "
        "Python, `python -m fragsim.dry train.py' is the same as this "
        "command, and `pytest --fragsim-dry' runs tests this way.\n\n"
        "The answer begins with one line: what the program needs with the "
        "settings that it ran with and with one that often needs less, "
        "whether it fits on the GPU, and on which one it does. The need is "
        "the memory that the GPU must supply to PyTorch from which on no "
        "request fails; it can be less than the peak reserved, because "
        "PyTorch returns cached memory before it fails. Below are the step "
        "and the line of the program at the peak, and at the first request "
        "that the GPU cannot meet, the need with each setting, and the GPUs "
        "of the table. The column `others' is what the CUDA context and "
        "libraries take of the GPU outside of PyTorch.\n\n"
        "A program that does not fit runs to its end, because the stand-in "
        "never refuses memory; with --strict it fails as on the GPU, and the "
        "trace ends there. PyTorch's memory history is on from the first use "
        "of the device, and each process that used it writes PyTorch's own "
        "snapshot at its end, after a fault, and now and then before, so that "
        "there is an answer for what a killed process had. `fragsim triage' "
        "and the other commands read it.\n\n"
        "Values that the program reads from the device, such as how many "
        "elements a mask selects, are computed by PyTorch's kernels for the "
        "CPU, with the random numbers of the GPU. What is too dear or hangs "
        "on trained weights is drawn; the program then runs up to six times, "
        "the later ones without its output, with other numbers and with rows "
        "that are all alike, and the need is an interval: the GPU has to "
        "supply its upper end. The answer lists the reads by these kinds.\n\n"
        "Where the answer stops: a program that decides by drawn values may "
        "take yet another way on a GPU; the answer also lists every function "
        "that the stand-ins lack and every size that is not known. A "
        "program that catches an error of memory, as cuDNN does when it then "
        "tries a smaller workspace, does so only with --strict. PyTorch frees "
        "the casts of autocast in an order that varies from run to run. By "
        "default, work of the device ends at once; with --busy it ends only "
        "when the program waits. For a program that uses memory on several "
        "streams, the truth is between the two.\n\n"
        "A program that asks how much memory is free, as a server does that "
        "takes the rest for its cache, has no need: the answer holds for the "
        "GPU that was named. With --gpu all, or several with commas, the "
        "program runs once on each, and the answer is a table with what it "
        "takes there and what stays free.\n\n"
        "With --try, the answer is a table with what the program needs at "
        "each value, and the largest value that fits each GPU: the largest "
        "number, or, of values that are not all numbers, the one that needs "
        "most. A run that fails or runs out of memory fits none.\n\n"
        "The exit code is that of the program; if it is 0 and --gpu or "
        "--memory names a GPU that the program does not fit with the settings "
        "that it ran with, it is 1; if the traces lack a part of the memory, "
        "so that there is no verdict, it is 6. With --try, it is 1 "
        "if no value fits that GPU, or any GPU of the table if none is "
        "named; with several GPUs, if the program fits none of them.",
    .example = "fragsim dry --gpu l40s -o train.pickle -- python train.py",
    .options = options,
    .size = sizeof(struct dry_values),
    .defaults = &(const struct dry_values){.devices = 1},
    .args_max = SIZE_MAX,
    .run = dry_run,
};
