/* test_child.c - tests child processes: how they end (as a shell reports it),
 * their environment and output; and that scratch folders are removed with all
 * their contents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/cli/child.h"
#include "sim/cli/scratch.h"
#include "traces/bytes/temporary.h"

/* A scratch folder, removed by `leave`. */
static char *folder;

static int enter(void **state)
{
    (void)state;
    return scratch_make(&folder, NULL) == FRAG_OK ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    temporary_remove(folder);
    return 0;
}

static int shell(const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    int code = -1;

    assert_int_equal(
        child_run(&(const struct child){.argv = argv}, &code, NULL), FRAG_OK);
    return code;
}

static void exit_codes_are_those_of_a_shell(void **state)
{
    (void)state;
    assert_int_equal(shell("exit 0"), 0);
    assert_int_equal(shell("exit 7"), 7);
    assert_int_equal(shell("kill -TERM $$"), 128 + SIGTERM);
}

static void what_cannot_be_run_is_said(void **state)
{
    const char *const missing[] = {"no-such-program", NULL};
    const char *const denied[] = {folder, NULL};
    struct frag_error e = {""};
    int code = -1;

    (void)state;
    assert_int_equal(
        child_run(&(const struct child){.argv = missing}, &code, &e), FRAG_OK);
    assert_int_equal(code, CHILD_MISSING);
    assert_int_equal(
        child_run(&(const struct child){.argv = denied}, &code, &e), FRAG_IO);
    assert_non_null(strstr(e.text, "cannot be run: Permission denied"));
    assert_int_equal(child_start(&(const struct child){.argv = missing}, &code),
                     0);
    assert_int_equal(code, ENOENT);
}

static void settings_and_output_are_the_child_s(void **state)
{
    static const struct setting settings[] = {
        {"FRAG_SET", "1"}, {"FRAG_UNSET", NULL}, {NULL, NULL}};
    static const char *const argv[] = {
        "sh", "-c", "echo $FRAG_SET${FRAG_UNSET-none}; echo words >&2", NULL};
    char *path = scratch_path(folder, "out", ".txt"), text[64] = "";
    const struct child child = {
        .argv = argv, .settings = settings, .output = path};
    int code = -1;
    FILE *in;

    (void)state;
    setenv("FRAG_UNSET", "x", 1);
    assert_int_equal(child_run(&child, &code, NULL), FRAG_OK);
    assert_int_equal(code, 0);
    assert_string_equal(getenv("FRAG_UNSET"), "x");
    assert_null(getenv("FRAG_SET"));
    in = fopen(path, "r");
    assert_non_null(in);
    assert_true(fread(text, 1, sizeof(text) - 1, in) > 0);
    fclose(in);
    assert_string_equal(text, "1none\nwords\n");
    free(path);
}

static void a_file_too_large_ends_the_child(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(shell("kill -XFSZ $$"), 128 + SIGXFSZ);
    signal(SIGXFSZ, SIG_DFL);
}

static void a_child_is_started_and_not_waited_for(void **state)
{
    static const char *const sleeper[] = {"sleep", "5", NULL};
    static const char *const missing[] = {"no-such-program", NULL};
    int status, error;
    pid_t process = child_start(&(const struct child){.argv = sleeper}, &error);

    (void)state;
    assert_true(process > 0);
    assert_int_equal(kill(process, SIGKILL), 0);
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_int_equal(child_exit_code(status), 128 + SIGKILL);
    assert_int_equal(
        child_start(&(const struct child){.argv = missing}, &error), 0);
    assert_int_equal(waitpid(-1, &status, WNOHANG), -1); /* none is left */
}

static void the_mask_is_the_child_s(void **state)
{
    static const char *const argv[] = {"sh", "-c", "kill -TERM $$; exit 3",
                                       NULL};
    sigset_t mask;
    int code = -1;

    (void)state;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    assert_int_equal(
        child_run(&(const struct child){.argv = argv, .mask = &mask}, &code,
                  NULL),
        FRAG_OK);
    assert_int_equal(code, 3);
}

static void scratch_goes_with_all_it_holds(void **state)
{
    char *deep = scratch_path(folder, "sub", "/.hidden"), *name;
    char *sub = scratch_path(folder, "su", "b");
    FILE *file;

    (void)state;
    assert_int_equal(mkdir(sub, 0700), 0);
    file = fopen(deep, "w");
    assert_non_null(file);
    fclose(file);
    setenv("TMPDIR", sub, 1);
    assert_int_equal(scratch_make(&name, NULL), FRAG_OK);
    assert_ptr_equal(strstr(name, sub), name);
    temporary_remove(name);
    temporary_remove(folder);
    assert_int_equal(access(sub, F_OK), -1);
    assert_int_equal(scratch_make(&name, NULL), FRAG_IO);
    assert_null(name);
    temporary_remove(name);
    unsetenv("TMPDIR");
    assert_int_equal(scratch_make(&folder, NULL), FRAG_OK);
    free(deep);
    free(sub);
}

static void end(int number)
{
    child_end(number);
    _exit(0);
}

/* A process that runs a program, and ends with it at a signal. */
static pid_t start_parent(int ready)
{
    static const char *const argv[] = {"sleep", "60", NULL};
    const pid_t process = fork();
    int code;

    if (process)
        return process;
    signal(SIGUSR1, end);
    (void)!write(ready, "", 1);
    (void)!child_run(&(const struct child){.argv = argv}, &code, NULL);
    _exit(1);
}

/* Signals at each 20 microseconds around the fork. The pipe `held` stays open
 * while one of the two processes runs. */
static void no_program_outlives_a_signal(void **state)
{
    enum { SIGNALS = 100, STEP = 20, ENDED = 5000 };

    (void)state;
    for (int i = 0; i < SIGNALS; i++) {
        int ready[2], held[2];
        pid_t process;
        char byte;

        assert_int_equal(pipe(ready) | pipe(held), 0);
        process = start_parent(ready[1]);
        close(held[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        usleep((useconds_t)(i * STEP));
        kill(process, SIGUSR1);
        assert_int_equal(waitpid(process, NULL, 0), process);
        assert_int_equal(poll(&(struct pollfd){.fd = held[0]}, 1, ENDED), 1);
        close(held[0]);
        close(ready[0]);
        close(ready[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_program_outlives_a_signal),
        cmocka_unit_test(exit_codes_are_those_of_a_shell),
        cmocka_unit_test_setup_teardown(what_cannot_be_run_is_said, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(settings_and_output_are_the_child_s,
                                        enter, leave),
        cmocka_unit_test(a_file_too_large_ends_the_child),
        cmocka_unit_test(a_child_is_started_and_not_waited_for),
        cmocka_unit_test(the_mask_is_the_child_s),
        cmocka_unit_test_setup_teardown(scratch_goes_with_all_it_holds, enter,
                                        leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
