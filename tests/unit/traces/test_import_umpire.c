/* test_import_umpire.c - tests the importer of Umpire's replay logs on small
 * logs: each rule by its events, each error by its words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/trace_equal.h"

static struct frag_error error;
static char path[] = "/tmp/frag_umpire_XXXXXX";

static enum frag_err opened(const char *text, struct frag_trace **t)
{
    FILE *file = fopen(path, "wb");

    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
    error.text[0] = '\0';
    *t = NULL;
    return frag_trace_open(path, NULL, t, &error);
}

/* Lines of the format. */
#define LINE(name, numbers, strings, tags)                        \
    "{\"category\":\"operation\",\"name\":\"" name                \
    "\",\"numeric_args\":{" numbers "},\"string_args\":{" strings \
    "},\"tags\":{" tags "},\"timestamp\":7}\n"
#define REF(ref)    "\"allocator_ref\":\"" ref "\""
#define NAMED(name) "\"allocator_name\":\"" name "\",\"replay\":\"true\""
#define VERSION                                                          \
    "{\"category\":\"metadata\",\"name\":\"version\",\"numeric_args\":{" \
    "\"major\":2024},\"string_args\":{\"rc\":\"\"},\"tags\":{},"         \
    "\"timestamp\":1}\n"
#define RESOURCE(ref, name) \
    LINE("make_memory_resource", "", REF(ref), NAMED(name))
#define MAKE(ref, name, parent, type)                               \
    LINE("make_allocator", "",                                      \
         REF(ref) ",\"arg0\":\"" parent "\",\"type\":\"" type "\"", \
         NAMED(name))
#define POOL(ref, name, parent) \
    MAKE(ref, name, parent, "N6umpire8strategy9QuickPoolE")
#define WRAP(ref, name, parent) \
    MAKE(ref, name, parent, "N6umpire8strategy19ThreadSafeAllocatorE")
#define ALLOC(ref, pointer, size)       \
    LINE("allocate", "\"size\":" #size, \
         REF(ref) ",\"pointer\":\"" pointer "\"", "")
#define FREE(ref, pointer)                                                 \
    "{\"category\":\"operation\",\"name\":\"deallocate\",\"string_args\":" \
    "{" REF(ref) ",\"pointer\":\"" pointer                                 \
                 "\"},\"tags\":{},\"timestamp\":9}\n"
#define INTENT(ref, pointer, size)        \
    LINE("reallocate", "\"size\":" #size, \
         REF(ref) ",\"current_ptr\":\"" pointer "\"", "")
#define RESULT(ref, pointer) \
    LINE("reallocate", "", REF(ref) ",\"new_ptr\":\"" pointer "\"", "")
#define HOST  RESOURCE("0x1", "HOST")
#define START VERSION HOST

/* Lines of the older format. */
#define OLD(event, payload, rest)                                            \
    "{ \"kind\":\"replay\", \"uid\":1, \"timestamp\":7, \"event\": \"" event \
    "\", \"payload\": { " payload " }" rest " }\n"
#define OLD_START                                                              \
    "# a comment\n" OLD("version", "\"major\":0", "") OLD(                     \
        "makeMemoryResource", "\"name\": \"HOST\"", ", \"result\": \"0x1\"")   \
        OLD("makeAllocator",                                                   \
            "\"type\":\"umpire::strategy::QuickPool\", "                       \
            "\"allocator_name\":\"pool\", \"args\": [ \"HOST\", 64 ]",         \
            "") OLD("makeAllocator",                                           \
                    "\"type\":\"umpire::strategy::QuickPool\", "               \
                    "\"allocator_name\":\"pool\", \"args\": [ \"HOST\", 64 ]", \
                    ", \"result\": { \"allocator_ref\":\"0x2\" }")
#define OLD_SIZE(size) "\"allocator_ref\": \"0x2\", \"size\": " #size
#define OLD_ALLOC(pointer, size)        \
    OLD("allocate", OLD_SIZE(size), "") \
    OLD("allocate", OLD_SIZE(size),     \
        ", \"result\": { \"memory_ptr\": \"" pointer "\" }")
#define OLD_FREE(pointer) \
    OLD("deallocate",     \
        "\"allocator_ref\": \"0x2\", \"memory_ptr\": \"" pointer "\"", "")

/* A log, and the events of all its devices: "d0" begins device 0, "+1:8p2"
 * allocates 8 bytes in slot 1 and in pool 2 of Umpire, "-1" frees it, "e" is an
 * empty_cache. */
static const struct row {
    const char *name, *log, *events, *note;
} rows[] = {
    {"an alloc and a free", START ALLOC("0x1", "0xa0", 8) FREE("0x1", "0xa0"),
     "d0 +0:8p0 -0", "device 0 is the memory resource HOST"},
    {"a named allocation",
     START LINE("named_allocate", "\"size\":8",
                REF("0x1") ",\"pointer\":\"0xa0\",\"allocation_name\":\"mesh\"",
                ""),
     "d0 +0:8p0", NULL},
    {"an allocator with memory is a pool",
     START POOL("0x2", "quick", "HOST") ALLOC("0x1", "0xa0", 8) ALLOC(
         "0x2", "0xb0", 9) POOL("0x3", "list", "quick") ALLOC("0x3", "0xc0", 7),
     "d0 +0:8p0 +1:9p1 +2:7p2", "of its pools, 1 is quick, 2 is list"},
    {"one without has the pool of its parent",
     START POOL("0x2", "quick", "HOST") WRAP("0x3", "safe", "quick")
         WRAP("0x4", "host_safe", "HOST") ALLOC("0x3", "0xa0", 8)
             ALLOC("0x4", "0xb0", 9),
     "d0 +0:8p1 +1:9p0", "of its pools, 1 is quick"},
    {"a resource is a device",
     START RESOURCE("0x5", "DEVICE::1") POOL("0x6", "gpu", "DEVICE::1")
         ALLOC("0x6", "0xa0", 8) ALLOC("0x1", "0xb0", 9) FREE("0x6", "0xa0"),
     "d0 +0:9p0 d1 +0:8p1 -0",
     "device 1 is the memory resource DEVICE::1; of its pools, 1 is gpu"},
    {"a reference may be used again",
     START POOL("0x2", "quick", "HOST") POOL("0x2", "list", "HOST")
         ALLOC("0x2", "0xa0", 8),
     "d0 +0:8p2", NULL},
    {"a reallocate with calls between its lines",
     START ALLOC("0x1", "0xa0", 8) INTENT("0x1", "0xa0", 9)
         ALLOC("0x1", "0xb0", 9) LINE("copy", "", "", "") FREE("0x1", "0xa0")
             RESULT("0x1", "0xb0"),
     "d0 +0:8p0 +1:9p0 -0", NULL},
    {"a reallocate without",
     START ALLOC("0x1", "0xa0", 8) INTENT("0x1", "0xa0", 9)
         RESULT("0x1", "0xa0") FREE("0x1", "0xa0"),
     "d0 +0:8p0 -0 +0:9p0 -0", NULL},
    {"a reallocate of null with a copy alone",
     START ALLOC("0x1", "0xa0", 8) INTENT("0x1", "0xa0", 9)
         LINE("copy", "", "", "") RESULT("0x1", "0xa0"),
     "d0 +0:8p0", NULL},
    {"a release and a coalesce of a pool",
     START POOL("0x2", "quick", "HOST") ALLOC("0x2", "0xa0", 8) LINE(
         "release", "", REF("0x2"), "") LINE("coalesce", "", "", NAMED("quick"))
         LINE("release", "", REF("0x1"), ""),
     "d0 +0:8p1 e e", "2 calls of release and coalesce"},
    {"null is no block",
     START ALLOC("0x1", "(nil)", 8) FREE("0x1", "(nil)") FREE("0x1", "0"), "d0",
     NULL},
    {"no bytes take nothing",
     START ALLOC("0x1", "0xa0", 0) ALLOC("0x1", "0xa0", 8) FREE("0x1", "0xa0")
         FREE("0x1", "0xa0"),
     "d0 +0:8p0 -0", "1 allocations of 0 bytes are left out"},
    {"a block of before is no block",
     START ALLOC("0x1", "0xa0", 8) FREE("0x1", "0xb0"), "d0 +0:8p0",
     "1 frees of addresses that no line allocated"},
    {"an address is allocated again",
     START ALLOC("0x1", "0xa0", 8) ALLOC("0x1", "0xa0", 9),
     "d0 +0:8p0 -0 +0:9p0", "1 addresses were allocated again"},
    {"external memory is none of the allocator's",
     START LINE("register_external_allocation", "\"size\":40",
                REF("0x1") ",\"pointer\":\"0xa0\"", "")
         LINE("deregister_external_allocation", "", "", ""),
     "d0", NULL},
    {"other operations are counted", START LINE("prefetch", "", "", ""), "d0",
     "1 lines with other operations"},
    {"the last line may be torn",
     START ALLOC("0x1", "0xa0", 8) "{\"category\":\"operation\",\"na",
     "d0 +0:8p0", "1 line, the last one, is incomplete"},
    {"the older format", OLD_START OLD_ALLOC("0xa0", 8) OLD_FREE("0xa0"),
     "d0 +0:8p1 -0", "1 lines of comments"},
    {"an allocate of the older format without a result failed",
     OLD_START OLD("allocate", OLD_SIZE(9), "") OLD_ALLOC("0xa0", 8)
         OLD("allocate", OLD_SIZE(7), "") OLD_FREE("0xa0")
             OLD("allocate", OLD_SIZE(5), ""),
     "d0 +0:9p1 -0 +0:8p1 +1:7p1 -1 -0 +0:5p1 -0", NULL},
};

static size_t describe(const struct frag_device_trace *d, char *text,
                       size_t room)
{
    size_t used = (size_t)snprintf(text, room, "d%u", d->device);

    for (uint64_t i = 0; i < d->count; i++)
        if (d->op[i] == FRAG_ALLOC)
            used += (size_t)snprintf(
                text + used, room - used, " +%u:%llup%llu", d->id[i],
                (unsigned long long)d->bytes[i],
                (unsigned long long)d->pools[d->pool[i]].number);
        else if (d->op[i] == FRAG_EMPTY_CACHE)
            used += (size_t)snprintf(text + used, room - used, " e");
        else
            used +=
                (size_t)snprintf(text + used, room - used, " -%u", d->id[i]);
    return used;
}

static bool has_note(const struct frag_trace *t, const char *words)
{
    for (uint32_t i = 0; i < t->note_count; i++)
        if (strstr(t->notes[i], words))
            return true;
    return false;
}

static void a_log_becomes_its_events(void **state)
{
    const struct row *row = *state;
    struct frag_trace *t;
    char events[512];
    size_t used = 0;

    if (opened(row->log, &t) != FRAG_OK)
        fail_msg("%s", error.text);
    assert_string_equal(t->format, "umpire");
    for (uint32_t i = 0; i < t->device_count; i++) {
        if (i)
            events[used++] = ' ';
        used += describe(&t->devices[i], events + used, sizeof(events) - used);
    }
    assert_string_equal(events, row->events);
    if (row->note && !has_note(t, row->note))
        fail_msg("no note has \"%s\"", row->note);
    assert_true(has_note(t, "no failed requests") ==
                !strstr(row->log, "payload"));
    assert_int_equal(has_note(t, "incomplete"),
                     row->note && strstr(row->note, "incomplete"));
    frag_trace_close(t);
}

static void a_named_allocation_has_its_name_as_stack(void **state)
{
    struct frag_trace *t;
    const struct frag_device_trace *d;
    const struct frag_frame *frame;

    (void)state;
    assert_int_equal(
        opened(START LINE("named_allocate", "\"size\":8",
                          REF("0x1") ",\"pointer\":\"0xa0\","
                                     "\"allocation_name\":\"mesh\"",
                          "") ALLOC("0x1", "0xb0", 8),
               &t),
        FRAG_OK);
    d = &t->devices[0];
    assert_int_equal(d->time[0], 7);
    assert_int_not_equal(d->stack[0], 0);
    assert_int_equal(d->stack[1], 0);
    frame = &t->frames[t->stack_first[d->stack[0]]];
    assert_string_equal(t->strings[frame->function], "mesh");
    assert_string_equal(t->strings[frame->file], "HOST");
    frag_trace_close(t);
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {START ALLOC("0x9", "0xa0", 8),
         ":3: expected an allocator that an earlier line made, found \"0x9\""},
        {START POOL("0x2", "quick", "UM"),
         ":3: expected the name of a parent that an earlier line made, found "
         "\"UM\""},
        {START ALLOC("0x1", "0xag", 8), ":3: expected an address"},
        {START ALLOC("0x1", "0xa0", -8), ":3: expected a number of bytes"},
        {START ALLOC("0x1", "0xa0", "8"), ":3: expected a number of bytes"},
        {START ALLOC("0x1", "0xa0", 9223372036854775808), "3: expected a size"},
        {START LINE("allocate", "\"size\":8", REF("0x1"), ""),
         ":3: expected an address such as \"0x7fc891338010\", found a line "
         "without it"},
        {START RESULT("0x1", "0xa0"), ":3: expected the first line of this "
                                      "reallocate"},
        {START LINE("release", "", "", NAMED("x")),
         ":3: expected an allocator that an earlier line made"},
        {START LINE("release", "", "", ""), ":3: expected the name of an"},
        {START "{\"category\":\"operation\",\n" HOST,
         ":3: expected a JSON object, found one that does not end on its line"},
        {START "{]\n", ":3: expected JSON, found parse error"},
        {START "7\n", ":3: expected an object"},
        {START "{\"timestamp\":1}\n", ":3: expected the name of an operation"},
        {START "{\"name\":\"copy\"}\n", ":3: expected a time in ns"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct frag_trace *t;

        if (opened(bad[i].text, &t) != FRAG_CORRUPT)
            fail_msg("%s: %s", bad[i].text, error.text);
        assert_null(t);
        if (!strstr(error.text, bad[i].words))
            fail_msg("%s: %s", bad[i].text, error.text);
    }
}

enum { ROWS = sizeof(rows) / sizeof(*rows) };

static int run_rows(void)
{
    static struct CMUnitTest tests[ROWS];

    for (size_t i = 0; i < ROWS; i++) {
        const void *row = &rows[i];

        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = a_log_becomes_its_events};
        memcpy(&tests[i].initial_state, &row, sizeof(row));
    }
    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_named_allocation_has_its_name_as_stack),
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
    };
    const int file = mkstemp(path);
    int failed;

    if (file < 0)
        return 1;
    close(file);
    failed = run_rows() + cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
