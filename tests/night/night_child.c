/* night_child.c - the child's limits and folder, the wait for its end, and what
 * a failure is. */
#define _GNU_SOURCE
#include "tests/night/night_child.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>

#include "sim/cli/cli.h"

/* With -Wl,--wrap=main the tool's main has this name. */
int __real_main(int argc, char **argv);
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
const char *__lsan_default_suppressions(void);
int __lsan_is_turned_off(void);

enum { SANITIZER = 77, FILE_MOST = 64 << 20, TEXT_MOST = 1 << 20 };

static bool search_leaks;

const char *__asan_default_options(void)
{
    return "exitcode=77:allocator_may_return_null=1:detect_leaks=1:"
           "max_allocation_size_mb=1024:quarantine_size_mb=16:"
           "malloc_context_size=8";
}

const char *__ubsan_default_options(void)
{
    return "exitcode=77:print_stacktrace=1";
}

/* HDF5 does not free all of its memory when it refuses a damaged file. */
const char *__lsan_default_suppressions(void)
{
    return "leak:H5\n";
}

int __lsan_is_turned_off(void)
{
    return !search_leaks;
}

/* -- the folder ------------------------------------------------------------ */

static int remove_entry(const char *path, const struct stat *s, int kind,
                        struct FTW *at)
{
    (void)s;
    if (at->level > 0)
        kind == FTW_DP ? rmdir(path) : unlink(path);
    return 0;
}

static void empty_folder(void)
{
    nftw(".", remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    mkdir("out", 0777);
    mkdir("tmp", 0777);
}

/* What stands for gnuplot: starting the real one takes longer than the run. */
static bool write_gnuplot(const char *folder)
{
    FILE *file;

    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return false;
    if (chdir(folder) < 0)
        return false;
    file = fopen("gnuplot", "w");
    if (!file)
        return false;
    fputs("#!/bin/sh\neval \"$3\"\necho '<svg/>' >\"$out\"\n", file);
    return fclose(file) == 0 && chmod("gnuplot", 0755) == 0 &&
           mkdir("run", 0777) == 0 && chdir("run") == 0;
}

bool child_enter(const char *folder)
{
    char path[4096];

    if (!write_gnuplot(folder)) {
        fprintf(stderr, "night: %s: %s\n", folder, strerror(errno));
        return false;
    }
    snprintf(path, sizeof(path), "%s/run/tmp", folder);
    setenv("TMPDIR", path, 1);
    setenv("PATH", folder, 1);
    return true;
}

void child_leave(const char *folder)
{
    if (chdir(folder) == 0)
        nftw(".", remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    rmdir(folder);
}

/* -- the child ------------------------------------------------------------- */

struct streams {
    int out, err;
    volatile bool *runs; /* the inputs are written */
};

static void limit(__rlimit_resource_t which, rlim_t most)
{
    setrlimit(which, &(struct rlimit){most, most + (which == RLIMIT_CPU)});
}

static void be_child(char *const *args, size_t count,
                     void (*prepare)(const void *), const void *user,
                     const struct limits *limits, struct streams s)
{
    char *argv[64] = {(char[]){"fragsim"}};
    int in;

    setpgid(0, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, (rlim_t)(limits->processor + 0.999));
    limit(RLIMIT_FSIZE, FILE_MOST);
    prepare(user);
    in = open("in0", O_RDONLY);
    dup2(in < 0 ? open("/dev/null", O_RDONLY) : in, STDIN_FILENO);
    dup2(s.out, STDOUT_FILENO);
    dup2(s.err, STDERR_FILENO);
    search_leaks = limits->leaks;
    for (size_t i = 0; i < count && i < 62; i++)
        argv[i + 1] = args[i];
    *s.runs = true;
    exit(__real_main((int)count + 1, argv));
}

int child_main(int argc, char **argv)
{
    return __real_main(argc, argv);
}

/* -- the wait -------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long resident_mib(pid_t child)
{
    char path[64];
    long pages = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)child);
    file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE) >> 20;
}

/* Waits for the end of the child, and ends it at a limit, which is returned. */
static const char *wait_child(pid_t child, const struct limits *limits,
                              int *status, struct rusage *used)
{
    const struct timespec tick = {0, 20000000};
    const double end = seconds() + limits->wall;
    const char *reached = NULL;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    while (wait4(child, status, WNOHANG, used) == 0) {
        if (!reached && resident_mib(child) > limits->memory)
            reached = "memory";
        else if (!reached && seconds() > end)
            reached = "hang";
        if (reached)
            kill(-child, SIGKILL);
        sigtimedwait(&set, NULL, &tick);
    }
    kill(-child, SIGKILL); /* what it left running */
    return reached;
}

/* -- the judgement --------------------------------------------------------- */

/* Verbs that may say no. */
static bool may_say_no(char *const *args, size_t count)
{
    static const char *const verbs[] = {
        "validate", "compare", "tune", "policies", "diff", "merge", NULL};

    for (size_t i = 0; verbs[i]; i++)
        if (!strcmp(args[0], verbs[i]))
            return true;
    for (size_t i = 1; i < count; i++)
        if (!strncmp(args[i], "--check", 7) || !strncmp(args[i], "--test", 6))
            return true;
    return false;
}

/* There may be no driver, and it refuses pages that are no multiple of 2 MiB,
 * as under PyTorch. */
static bool may_meet_the_driver(char *const *args, size_t count)
{
    if (!strcmp(args[0], "compare"))
        return true;
    for (size_t i = 1; i < count; i++)
        if (strstr(args[i], "large_segment_size_mb:"))
            return true;
    return false;
}

/* Numbers do not belong to a key, but those of lines of the source do. */
static void add_words(char key[KEY_ROOM], const char *text, bool is_source)
{
    size_t at = strlen(key);

    for (; *text && *text != '\n' && at < KEY_ROOM - 1; text++)
        if (is_source || !isdigit((unsigned char)*text))
            key[at++] = *text;
        else if (!at || key[at - 1] != 'N')
            key[at++] = 'N';
    key[at] = '\0';
}

static void set_key(struct outcome *o, const char *verb, const char *what,
                    const char *detail)
{
    if (o->key[0])
        return;
    snprintf(o->key, KEY_ROOM, "%s: %s ", verb, what);
    add_words(o->key, detail,
              !strcmp(verb, "sanitizer") || !strcmp(verb, "leak"));
}

/* The function that asked for the memory that a leak lost; NULL if the report
 * has no names. */
static const char *leak_place(const char *leak)
{
    const char *frame = strstr(leak, "    #1 ");
    const char *name = frame ? strstr(frame, " in ") : NULL;

    return name && strcspn(frame, "\n") > (size_t)(name - frame) ? name : NULL;
}

static void judge_report(struct outcome *o)
{
    const char *summary = strstr(o->report, "SUMMARY: ");
    const char *leak = strstr(o->report, "LeakSanitizer");
    const char *place = leak ? leak_place(leak) : NULL;

    if (place)
        set_key(o, "leak", "", place);
    else if (leak)
        o->code = EXIT_DONE; /* without names, HDF5's own cannot be told */
    else if (summary || strstr(o->report, "runtime error: "))
        set_key(o, "sanitizer", "", summary ? summary + 9 : o->report);
}

/* Control characters, or bytes that are no UTF-8. */
static bool is_printable(const unsigned char *at, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = at[i];
        size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 0;

        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            return false;
        if (c >= 0x80 && !more)
            return false;
        for (; more && i + 1 < size; more--)
            if ((at[++i] & 0xc0) != 0x80)
                return false;
    }
    return true;
}

static bool is_json(const unsigned char *at, size_t size)
{
    yajl_handle parser = yajl_alloc(NULL, NULL, NULL);
    const bool is_whole = parser &&
                          yajl_parse(parser, at, size) == yajl_status_ok &&
                          yajl_complete_parse(parser) == yajl_status_ok;

    if (parser)
        yajl_free(parser);
    return is_whole;
}

static bool has(char *const *args, size_t count, const char *arg)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(args[i], arg))
            return true;
    return false;
}

/* What stands in the files of a run's end; `out` and `err` are mapped. */
static void judge_texts(struct outcome *o, char *const *args, size_t count,
                        const unsigned char *out, size_t out_size,
                        size_t err_size)
{
    const bool is_binary = !strcmp(args[0], "export");

    if (o->code > 1 && !err_size)
        set_key(o, args[0], "no message with exit code",
                o->code == 3 ? "three" : "other");
    if (!is_printable((unsigned char *)o->report, strlen(o->report)))
        set_key(o, args[0], "unprintable message", "");
    if (!is_binary && out_size < TEXT_MOST && !is_printable(out, out_size))
        set_key(o, args[0], "unprintable output", "");
    if (o->code <= 1 && has(args, count, "--json=-") && out_size < TEXT_MOST &&
        !is_json(out, out_size))
        set_key(o, args[0], "stdout is not JSON", "");
}

/* A sweep that fails keeps its chunks. --keep keeps
 * the script of a figure that could not be drawn. */
static bool is_leftover(const char *name, bool may_hold)
{
    if (strstr(name, ".part") || !strcmp(name, "keep"))
        return false;
    return name[0] != '.' && (!may_hold || strstr(name, ".partial"));
}

static void judge_folder(struct outcome *o, const char *verb,
                         const char *folder, bool may_hold)
{
    DIR *at = opendir(folder);
    const struct dirent *entry;

    while (at && (entry = readdir(at)))
        if (is_leftover(entry->d_name, may_hold))
            set_key(o, verb, "left behind",
                    strstr(entry->d_name, ".partial") ? ".partial"
                                                      : entry->d_name);
    if (at)
        closedir(at);
}

static void judge(struct outcome *o, char *const *args, size_t count,
                  const struct limits *limits, int status, const char *reached)
{
    const char *last = strstr(o->report, "fragsim ");
    char code[32];

    judge_report(o);
    if (reached)
        set_key(o, args[0], reached, "");
    if (o->processor >= limits->processor ||
        (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
        set_key(o, args[0], "time", "");
    if (o->memory > limits->memory)
        set_key(o, args[0], "memory", "");
    if (WIFSIGNALED(status))
        set_key(o, args[0], "signal", strsignal(WTERMSIG(status)));
    snprintf(code, sizeof(code), "exit code %d", o->code);
    if ((o->code > EXIT_FILES &&
         !(o->code == EXIT_DEVICE && may_meet_the_driver(args, count))) ||
        (o->code == EXIT_NO && !may_say_no(args, count)))
        set_key(o, args[0], code, o->code == EXIT_DEVICE && last ? last : "");
}

static void read_report(struct outcome *o, int err, size_t size)
{
    const ssize_t got = pread(err, o->report, REPORT_ROOM - 1, 0);

    (void)size;
    o->report[got > 0 ? got : 0] = '\0';
}

static size_t size_of(int file)
{
    struct stat s;

    return fstat(file, &s) == 0 ? (size_t)s.st_size : 0;
}

static void judge_output(struct outcome *o, char *const *args, size_t count,
                         struct streams s)
{
    const size_t size = size_of(s.out);
    void *out =
        size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, s.out, 0) : NULL;

    if (out != MAP_FAILED)
        judge_texts(o, args, count, out, size, size_of(s.err));
    if (out && out != MAP_FAILED)
        munmap(out, size);
    /* Of several inputs, the answers about the others are written. */
    judge_folder(o, args[0], "out",
                 o->code <= EXIT_NO || strstr(o->report, "the others"));
    judge_folder(o, args[0], "tmp", false);
}

static double total(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

static struct streams *open_streams(void)
{
    static struct streams s;

    if (!s.runs) {
        s.out = memfd_create("stdout", MFD_CLOEXEC);
        s.err = memfd_create("stderr", MFD_CLOEXEC);
        s.runs = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
    if (ftruncate(s.out, 0) < 0 || ftruncate(s.err, 0) < 0)
        abort();
    lseek(s.out, 0, SEEK_SET);
    lseek(s.err, 0, SEEK_SET);
    *s.runs = false;
    return &s;
}

void child_run_command(char *const *args, size_t count,
                       void (*prepare)(const void *), const void *user,
                       const struct limits *limits, struct outcome *o)
{
    struct streams *s = open_streams();
    struct rusage used;
    const char *reached;
    sigset_t set;
    int status;
    pid_t child;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    empty_folder();
    *o = (struct outcome){0};
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        be_child(args, count, prepare, user, limits, *s);
    }
    reached = wait_child(child, limits, &status, &used);
    o->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    o->processor = total(&used);
    o->memory = used.ru_maxrss >> 10;
    read_report(o, s->err, 0);
    if (!*s->runs)
        return; /* libhdf5 failed while it changed an input */
    judge(o, args, count, limits, status, reached);
    if (!o->key[0])
        judge_output(o, args, count, *s);
}
