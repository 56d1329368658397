/* test_signals.c - tests that a signal ends a command, also one that is inside
 * a call that does not return. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/cli/cli.h"

enum { NEVER = 30, DEAF_SECONDS = 9 };

/* Starts a process that catches signals and then calls `work`; sends it
 * `count` signals and returns its status. *seconds is the time it took. */
static int interrupt(void (*work)(void), int number, int count, double *seconds)
{
    int ready[2], status;
    struct timespec from, to;
    const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    assert_true(child >= 0);
    if (!child) {
        cli_catch_signals();
        close(ready[0]);
        close(ready[1]);
        work();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &status, 1), 0); /* the child is ready */
    close(ready[0]);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < count; i++) {
        kill(child, number);
        nanosleep(&pause, NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    clock_gettime(CLOCK_MONOTONIC, &to);
    *seconds = (double)(to.tv_sec - from.tv_sec) +
               1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    return status;
}

static void deaf(void)
{
    const time_t end = time(NULL) + NEVER;

    while (time(NULL) < end)
        usleep(1000);
}

/* A long work that watches for signals, and needs its time to end. */
static void polite(void)
{
    while (!cli_interrupted())
        usleep(1000);
    for (unsigned left = 7; left;)
        left = sleep(left);
    _exit(3);
}

static void test_one_signal_ends_a_deaf_call(void **state)
{
    static const int numbers[] = {SIGTERM, SIGINT};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        double seconds;
        const int status = interrupt(deaf, numbers[i], 1, &seconds);

        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), EXIT_INTERRUPTED);
        assert_true(seconds < DEAF_SECONDS);
    }
}

static void test_the_second_signal_ends_at_once(void **state)
{
    double seconds;
    const int status = interrupt(deaf, SIGTERM, 2, &seconds);

    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_true(seconds < 3);
}

static void test_a_program_that_ends_by_itself_has_time(void **state)
{
    double seconds;
    const int status = interrupt(polite, SIGTERM, 1, &seconds);

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_signal_ends_a_deaf_call),
        cmocka_unit_test(test_the_second_signal_ends_at_once),
        cmocka_unit_test(test_a_program_that_ends_by_itself_has_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
