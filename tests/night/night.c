/* night.c - random runs of the whole tool. It loads the tool once and forks for
 * each run; the inputs are changed seeds, the commands random (command.h). A
 * run fails if it does anything that the manual does not say: a report of a
 * sanitizer, a signal, an undocumented exit code, too much time or memory, a
 * part of a file left behind, no message or an unprintable one. The first run
 * of each fault is made small and kept.
 *
 *   night SEEDS OUT RUNS [JOBS [FIRST]]   runs FIRST to FIRST + RUNS - 1
 *   night --run SEEDS N                   prints run N and its judgement
 *   night --table SEEDS OUT...            prints the sums of several nights
 *   night --kept FOLDER...                runs kept cases again
 *
 * OUT/found holds the faults, OUT/faults.log one line for each run that failed,
 * OUT/counts the sums of all nights with this OUT and the same seeds.
 * The memory file system /dev/shm holds the files of the runs.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/night/command.h"
#include "tests/night/night_child.h"
#include "tests/night/shrink.h"

int __wrap_main(int argc, char **argv);

/* The limits of a run, and those under which a fault must show again. */
static const struct limits usual = {2, 300, 1024, false};
static const struct limits wide = {60, 300, 1024, true};

enum { VERBS = 40, LEAKS_EVERY = 32 };

/* Shared by the processes; numbers only, which print_table adds. */
struct counts {
    uint64_t runs[VERBS][FOLDERS + 1]; /* the last: only arguments changed */
    uint64_t codes[VERBS][6];
    uint64_t failed[VERBS];
    uint64_t done;
    uint64_t seconds;
    uint64_t processor[VERBS]; /* microseconds */
};

struct night {
    struct seeds seeds;
    const char *out;
    uint64_t first, runs, jobs;
    struct counts *counts;
};

static void write_inputs(const void *command)
{
    command_write(command);
}

static struct dice dice_of(uint64_t run)
{
    uint64_t x = (run + 1) * 0x9e3779b97f4a7c15ULL;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return (struct dice){(x ^ x >> 31) | 1};
}

static void run_number(const struct night *n, uint64_t run, struct command *c,
                       struct outcome *o)
{
    struct dice d = dice_of(run);
    struct limits limits = usual;
    char path[4096];

    limits.leaks = run % LEAKS_EVERY == 0;
    command_make(c, &d, &n->seeds);
    child_run_command(c->args, c->count, write_inputs, c, &limits, o);
    found_path(path, n->out, o->key);
    if (o->processor >= limits.processor && access(path, F_OK) < 0)
        child_run_command(c->args, c->count, write_inputs, c, &wide, o);
}

/* -- counts ---------------------------------------------------------------- */

static size_t verb_index(const struct verb *verb)
{
    size_t i = 0;

    while (night_verbs[i] != verb)
        i++;
    return i;
}

static size_t format_index(const struct night *n, const char *format)
{
    const struct folder *f = seeds_find(&n->seeds, format);

    return f ? (size_t)(f - n->seeds.folders) : FOLDERS;
}

static void count(const struct night *n, const struct command *c,
                  const struct outcome *o)
{
    const size_t verb = verb_index(c->verb);
    struct counts *all = n->counts;

    __atomic_fetch_add(&all->runs[verb][format_index(n, command_format(c))], 1,
                       0);
    __atomic_fetch_add(&all->done, 1, 0);
    if (o->code < 6)
        __atomic_fetch_add(&all->codes[verb][o->code], 1, 0);
    if (o->key[0])
        __atomic_fetch_add(&all->failed[verb], 1, 0);
    __atomic_fetch_add(&all->processor[verb], (uint64_t)(o->processor * 1e6),
                       0);
}

static uint64_t sum_format(const struct counts *c, size_t format)
{
    uint64_t sum = 0;

    for (size_t v = 0; v < VERBS; v++)
        sum += c->runs[v][format];
    return sum;
}

static void print_verb(const struct counts *c, size_t v)
{
    uint64_t sum = 0;

    for (size_t f = 0; f <= FOLDERS; f++)
        sum += c->runs[v][f];
    if (!sum)
        return;
    printf("%-10s %9llu", night_verbs[v]->name, (unsigned long long)sum);
    for (size_t i = 0; i < 6; i++)
        printf(" %8llu", (unsigned long long)c->codes[v][i]);
    printf(" %8llu %8.1f\n", (unsigned long long)c->failed[v],
           (double)c->processor[v] / 1e3 / (double)sum);
}

static void print_counts(const struct seeds *seeds, const struct counts *c)
{
    printf("%-10s %9s %8s %8s %8s %8s %8s %8s %8s %8s\n", "verb", "runs",
           "exit 0", "1", "2", "3", "4", "5", "failed", "ms a run");
    for (size_t v = 0; night_verbs[v]; v++)
        print_verb(c, v);
    printf("\n%-14s %9s\n", "format", "runs");
    for (size_t f = 0; f <= FOLDERS; f++)
        if (sum_format(c, f))
            printf("%-14s %9llu\n",
                   f < FOLDERS ? seeds->folders[f].name : "arguments only",
                   (unsigned long long)sum_format(c, f));
    printf("\n%llu runs in %llu s\n", (unsigned long long)c->done,
           (unsigned long long)c->seconds);
}

/* -- workers --------------------------------------------------------------- */

static void keep(const struct night *n, uint64_t run, const struct command *c,
                 const struct outcome *o)
{
    char path[4096];
    FILE *log;

    snprintf(path, sizeof(path), "%s/faults.log", n->out);
    log = fopen(path, "a");
    if (log) {
        fprintf(log, "%s\t%llu\n", o->key, (unsigned long long)run);
        fclose(log);
    }
    found_path(path, n->out, o->key);
    shrink_and_keep(path, run, c, o, &wide);
}

static int work(const struct night *n, uint64_t job)
{
    char folder[64];
    struct command *c = malloc(sizeof(*c));
    struct outcome *o = malloc(sizeof(*o));

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    snprintf(folder, sizeof(folder), "/dev/shm/night-%d", (int)getpid());
    if (!c || !o || !child_enter(folder))
        return 1;
    for (uint64_t i = job; i < n->runs; i += n->jobs) {
        run_number(n, n->first + i, c, o);
        count(n, c, o);
        if (o->key[0])
            keep(n, n->first + i, c, o);
    }
    child_leave(folder);
    free(c);
    free(o);
    return 0;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t number_or(char **argv, int argc, int at, uint64_t other)
{
    return at < argc ? strtoull(argv[at], NULL, 10) : other;
}

static void report_each_minute(const struct night *n, double begin)
{
    const uint64_t before = n->counts->done;
    uint64_t left = n->jobs, done;

    for (int tick = 0; left; tick++) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            left--;
        done = n->counts->done - before;
        if (left && tick % 600 == 599)
            fprintf(stderr, "%llu runs, %.1f a second\n",
                    (unsigned long long)done, (double)done / (now() - begin));
        usleep(100000);
    }
}

/* The counts of a folder, which last; NULL if the file cannot be used. */
static struct counts *open_counts(const char *folder)
{
    char path[4096];
    struct counts *counts = MAP_FAILED;
    int file;

    snprintf(path, sizeof(path), "%s/counts", folder);
    file = open(path, O_RDWR | O_CREAT, 0666);
    if (file >= 0 && ftruncate(file, sizeof(*counts)) == 0)
        counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED,
                      file, 0);
    if (counts == MAP_FAILED)
        fprintf(stderr, "night: %s: %s\n", path, strerror(errno));
    if (file >= 0)
        close(file);
    return counts == MAP_FAILED ? NULL : counts;
}

static bool any_failed(const struct counts *c)
{
    for (size_t v = 0; v < VERBS; v++)
        if (c->failed[v])
            return true;
    return false;
}

static int whole_night(int argc, char **argv)
{
    static struct night n;
    const double begin = now();
    char path[4096];

    n.out = realpath(argv[2], NULL);
    n.runs = number_or(argv, argc, 3, 1000);
    n.jobs = number_or(argv, argc, 4, 1);
    n.first = number_or(argv, argc, 5, 0);
    if (!n.out) {
        fprintf(stderr, "night: %s: %s\n", argv[2], strerror(errno));
        return 1;
    }
    n.counts = open_counts(n.out);
    if (!n.counts || !seeds_read(&n.seeds, argv[1]))
        return 1;
    snprintf(path, sizeof(path), "%s/found", n.out);
    mkdir(path, 0777);
    for (uint64_t job = 0; job < n.jobs; job++)
        if (fork() == 0)
            exit(work(&n, job));
    report_each_minute(&n, begin);
    n.counts->seconds += (uint64_t)(now() - begin);
    print_counts(&n.seeds, n.counts);
    return any_failed(n.counts);
}

static int print_table(int count, char **argv)
{
    static struct seeds seeds;
    static struct counts sum;
    uint64_t *const all = (uint64_t *)&sum;

    if (!seeds_read(&seeds, argv[0]))
        return 1;
    for (int i = 1; i < count; i++) {
        const struct counts *c = open_counts(argv[i]);
        if (!c)
            return 1;
        for (size_t at = 0; at < sizeof(sum) / sizeof(*all); at++)
            all[at] += ((const uint64_t *)c)[at];
    }
    print_counts(&seeds, &sum);
    return any_failed(&sum);
}

/* -- one run, kept cases --------------------------------------------------- */

static void print_outcome(char *const *args, const struct outcome *o)
{
    for (; *args; args++)
        printf("%s ", *args);
    printf("\nexit code %d, %.3f s, %ld MiB: %s\n%s\n", o->code, o->processor,
           o->memory, o->key[0] ? o->key : "as the manual says", o->report);
}

static int one_run(char **argv)
{
    static struct night n;
    static struct command c;
    static struct outcome o;
    char folder[64];

    n.out = "";
    snprintf(folder, sizeof(folder), "/dev/shm/night-%d", (int)getpid());
    if (!seeds_read(&n.seeds, argv[2]) || !child_enter(folder))
        return 1;
    run_number(&n, strtoull(argv[3], NULL, 10), &c, &o);
    print_outcome(c.args, &o);
    printf("files: %s/run\n", folder);
    return o.key[0] != 0;
}

static int kept_cases(int count, char **folders)
{
    static struct outcome o;
    struct kept k;
    char folder[64];
    int failed = 0;

    snprintf(folder, sizeof(folder), "/dev/shm/night-%d", (int)getpid());
    for (int i = 0; i < count; i++)
        folders[i] = realpath(folders[i], NULL);
    if (!child_enter(folder))
        return 1;
    for (int i = 0; i < count; i++) {
        if (!folders[i] || !kept_read(&k, folders[i])) {
            fprintf(stderr, "night: case %d cannot be read\n", i + 1);
            failed++;
            continue;
        }
        kept_run(&k, &wide, &o);
        printf("%s\n", folders[i]);
        if (o.key[0]) {
            failed++;
            print_outcome(k.args, &o);
        }
        kept_free(&k);
    }
    printf("%d of %d kept cases as the manual says\n", count - failed, count);
    child_leave(folder);
    return failed != 0;
}

int __wrap_main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "--kept"))
        return kept_cases(argc - 2, argv + 2);
    if (argc == 4 && !strcmp(argv[1], "--run"))
        return one_run(argv);
    if (argc > 3 && !strcmp(argv[1], "--table"))
        return print_table(argc - 2, argv + 2);
    if (argc > 3)
        return whole_night(argc, argv);
    fputs("usage: night SEEDS OUT RUNS [JOBS [FIRST]]\n"
          "       night --run SEEDS N\n       night --table SEEDS OUT...\n"
          "       night --kept FOLDER...\n",
          stderr);
    return 2;
}
