/* damage.h - proves that a check detects damage: it writes a wrong value to a
 * field, calls the check, and restores the field. It also proves that an
 * assertion stops a call that breaks a contract.
 *
 * Include after cmocka.h.
 */
#ifndef FRAG_TESTS_SUPPORT_DAMAGE_H
#define FRAG_TESTS_SUPPORT_DAMAGE_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Checks that the call ends its process. A build without assertions skips
 * this. */
static inline void expect_abort(void (*call)(void))
{
#ifdef NDEBUG
    (void)call;
    skip();
#else
    const pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (!child) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        call();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#endif
}

/* Checks that the check reports exactly this damage. */
static inline void expect_text(const char *found, const char *words)
{
    assert_string_equal(found ? found : "nothing", words);
}

/* With the wrong value in the field, the check must return the message; before
 * and after, it must report nothing. */
#define DAMAGE(field, value, call, words) \
    do {                                  \
        __typeof__(field) was_ = (field); \
        const char *found_;               \
                                          \
        assert_null(call);                \
        (field) = (value);                \
        found_ = (call);                  \
        (field) = was_;                   \
        expect_text(found_, (words));     \
        assert_null(call);                \
    } while (0)

#endif
