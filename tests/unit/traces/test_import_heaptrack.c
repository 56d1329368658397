/* test_import_heaptrack.c - tests the importer of heaptrack's data, raw and
 * interpreted, on lines written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/import_log.h"

#define RAW         "v 10400 3\nx 3 ./a\nX ./a\nI 1000 10\nm 1 -\n"
#define INTERPRETED "v 10400 3\nX ./a\nI 1000 10\n"

static const struct log_row rows[] = {
    {"raw: an allocation and a free",
     RAW "t 1f 0\nt 2f 1\n+ 20 2 5500\n- 5500\n", "+0:32 -0",
     "its stacks are addresses of code"},
    {"raw: a free of an unknown pointer is counted",
     RAW "A\n- 99\n+ 20 0 5500\n- 98\n", "+0:32",
     "2 frees are of blocks that were allocated before"},
    {"raw: attached", RAW "A\n+ 20 0 5500\n", "+0:32",
     "heaptrack was attached to a running process"},
    {"raw: a live address is freed before it is allocated again",
     RAW "+ 20 0 5500\n+ 30 0 5500\n", "+0:32 -0 +0:48",
     "1 blocks have no free in the log"},
    {"raw: a block of no bytes has one", RAW "+ 0 0 5500\n", "+0:1", NULL},
    {"raw: a cut last line is left out", RAW "+ 20 0 5500\n+ 20 0 56", "+0:32",
     "the last line of the log is cut off"},
    {"interpreted: an allocation and a free",
     INTERPRETED "a 20 0\n+ 0\nc a\nR 10\n- 0\n# strings: 0\n", "+0:32 -0",
     "the newest of equal blocks is freed"},
    {"interpreted: the newest of equal blocks is freed",
     INTERPRETED "a 20 0\na 30 0\n+ 0\n+ 0\n+ 1\n- 0\n+ 1\n- 0\n",
     "+0:32 +1:32 +2:48 -1 +1:48 -0", NULL},
    {"interpreted: a free without an allocation is counted",
     INTERPRETED "a 20 0\n- 0\n+ 0\n", "+0:32",
     "1 frees are of blocks that were allocated before"},
    {"a quantum is no matter of a heap", INTERPRETED, "",
     "policies with a quantum of 512 bytes"},
    {"strings without a length are those of file format 2",
     "v 10200 2\nX ./a\nI 1000 10\ns a b\ni 1 1\nt 1 0\na 20 1\n+ 0\n", "+0:32",
     NULL},
    {"a command may have lines that look like data",
     "v 10400 3\nX python3 -c a = 5\n+ 1\nI think\nI 1000 10\na 20 0\n+ 0\n",
     "+0:32", NULL},
    {"the first versions do not state the file format",
     "v 10000\nX ./a\nI 1000 10\ns a b\na 20 0\n+ 0\n", "+0:32", NULL},
};

static void what_is_wrong_is_said_with_its_line(void **state)
{
    static const struct bad_log bad[] = {
        {"v 10400 4\nX ./a\n", ":1: expected file format 3"},
        {INTERPRETED "s 2 abc\n", ":4: expected a length and a text"},
        {INTERPRETED "s abc\n", ":4: expected a length and a text"},
        {"v 10400 3\nX ./a\na 20 0\n+ 0\n", "expected a line such as \"I"},
        {INTERPRETED "q 1\n", ":4: expected a line of heaptrack"},
        {INTERPRETED "+1\n", ":4: expected a line of heaptrack"},
        {INTERPRETED "+ 0\n", ":4: expected the number of an earlier a line"},
        {INTERPRETED "- 0\n", ":4: expected the number of an earlier a line"},
        {INTERPRETED "a 20 0\n+ 0 0 10\n", ":5: expected the number of"},
        {INTERPRETED "a 20 1\n", ":4: expected a size and an earlier stack"},
        {INTERPRETED "a 20\n", ":4: expected a size and an earlier stack"},
        {INTERPRETED "t 1 0\n", ":4: expected a code address"},
        {INTERPRETED "i 1 0\nt 1 1\n", ":5: expected a code address"},
        {INTERPRETED "i 1 0\nt 0 0\n", ":5: expected a code address"},
        {INTERPRETED "i 1\n", ":4: expected an address and a module"},
        {INTERPRETED "i 1 0 1 2\n", ":4: expected a line number"},
        {INTERPRETED "i 1 0 x\n", ":4: expected hexadecimal numbers"},
        {RAW "+ 20 0\n", ":6: expected a size, an earlier stack and a pointer"},
        {RAW "+ 20 1 10\n", ":6: expected a size, an earlier stack"},
        {RAW "+ 0x20 0 10\n", ":6: expected a size, an earlier stack"},
        {RAW "- \n", ":6: expected a pointer"},
        {RAW "- 1 2\n", ":6: expected a pointer"},
    };

    (void)state;
    log_is_refused(bad, sizeof(bad) / sizeof(*bad));
}

/* Compares the stack of an event with its text: "FUNCTION FILE:LINE" of each
 * frame, innermost first. */
static void check_stack(const struct frag_trace *t, uint64_t event,
                        const char *text)
{
    const uint32_t stack = frag_trace_device(t, 0)->stack[event];
    char found[256] = "";
    size_t used = 0;

    for (uint64_t i = t->stack_first[stack]; i < t->stack_first[stack + 1]; i++)
        used +=
            (size_t)snprintf(found + used, sizeof(found) - used, "%s %s:%u, ",
                             t->strings[t->frames[i].function],
                             t->strings[t->frames[i].file], t->frames[i].line);
    assert_string_equal(found, text);
}

static void an_interpreted_stack_has_functions(void **state)
{
    struct frag_trace *t;

    (void)state;
    assert_int_equal(log_opened(INTERPRETED
                                "s 3 ./a\ns 4 main\ns 3 a.c\ns 1 f\ns 1 g\n"
                                "i 10 1 2 3 a\n"        /* main */
                                "i 20 1 4 3 b 5 3 1f\n" /* f, inlined in g */
                                "i 30 1\n"              /* not known */
                                "i 40 1 4\n"            /* without a file */
                                "t 1 0\nt 2 1\nt 3 2\nt 4 1\n"
                                "a 20 3\n+ 0\na 20 4\n+ 1\n+ 0\na 8 0\n+ 2\n",
                                &t),
                     FRAG_OK);
    check_stack(t, 0, "0x30 ./a:0, f a.c:11, g a.c:31, main a.c:10, ");
    check_stack(t, 1, "f ./a:0, main a.c:10, ");
    check_stack(t, 2, "0x30 ./a:0, f a.c:11, g a.c:31, main a.c:10, ");
    check_stack(t, 3, "");
    assert_null(frag_trace_device(t, 0)->recorded.addr);
    frag_trace_close(t);
}

static void a_raw_stack_has_addresses(void **state)
{
    struct frag_trace *t;

    (void)state;
    assert_int_equal(log_opened(RAW "t 7f10 0\nt 7f20 1\n+ 20 2 5500\n", &t),
                     FRAG_OK);
    check_stack(t, 0, "0x7f20 ?\?:0, 0x7f10 ?\?:0, ");
    assert_int_equal(frag_trace_device(t, 0)->recorded.addr[0], 0x5500);
    frag_trace_close(t);
}

/* heaptrack follows 64 calls at most; a longer chain must not cost memory. */
static void a_stack_is_bounded(void **state)
{
    enum { NODES = 1000 };
    char log[NODES * 16 + 64];
    size_t used = (size_t)snprintf(log, sizeof(log), "%s", RAW);
    struct frag_trace *t;

    (void)state;
    for (unsigned i = 0; i < NODES; i++)
        used += (size_t)snprintf(log + used, sizeof(log) - used, "t %x %x\n",
                                 i + 1, i);
    snprintf(log + used, sizeof(log) - used, "+ 20 %x 5500\n", NODES);
    assert_int_equal(log_opened(log, &t), FRAG_OK);
    assert_int_equal(t->stack_first[2] - t->stack_first[1], 256);
    frag_trace_close(t);
}

/* One address may have more functions, all but one of them inlined. */
static void an_inlined_stack_is_bounded(void **state)
{
    enum { FUNCTIONS = 1000 };
    char log[FUNCTIONS * 16 + 64];
    size_t used =
        (size_t)snprintf(log, sizeof(log), "%s", INTERPRETED "s 1 f\ni 1 0");
    struct frag_trace *t;

    (void)state;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        used += (size_t)snprintf(log + used, sizeof(log) - used, " 1 0 %x", i);
    snprintf(log + used, sizeof(log) - used, "\nt 1 0\na 20 1\n+ 0\n");
    assert_int_equal(log_opened(log, &t), FRAG_OK);
    assert_int_equal(t->stack_first[2] - t->stack_first[1], 256);
    frag_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(an_interpreted_stack_has_functions),
        cmocka_unit_test(a_raw_stack_has_addresses),
        cmocka_unit_test(a_stack_is_bounded),
        cmocka_unit_test(an_inlined_stack_is_bounded),
    };

    return LOG_TESTS("heaptrack", rows, tests);
}
