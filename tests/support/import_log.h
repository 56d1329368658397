/* import_log.h - the frame of the tests of importers of call logs: tables of
 * logs with the events, notes and errors that they must result in. A test
 * includes this file once, after cmocka.h. */
#ifndef FRAG_TESTS_SUPPORT_IMPORT_LOG_H
#define FRAG_TESTS_SUPPORT_IMPORT_LOG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/trace.h"

/* A log, and the events that must result: "+1:8" allocates 8 bytes in slot 1,
 * "-1" frees it. A "!" follows a request that failed in the recorded program.
 */
struct log_row {
    const char *name, *log, *events;
    const char *note; /* a part of one note; NULL: any notes */
};

/* A log that is malformed, and a part of its message. */
struct bad_log {
    const char *log, *words;
};

static struct frag_error log_error;
static char log_path[] = "/tmp/frag_log_XXXXXX";
static const char *log_format;

static enum frag_err log_opened(const char *text, struct frag_trace **t)
{
    FILE *file = fopen(log_path, "wb");

    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
    log_error.text[0] = '\0';
    *t = NULL;
    return frag_trace_open(log_path, NULL, t, &log_error);
}

static void log_describe(const struct frag_device_trace *d, char *text,
                         size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint64_t i = 0; i < d->count && used < room; i++) {
        const char *blank = i ? " " : "";

        if (d->op[i] != FRAG_ALLOC)
            used += (size_t)snprintf(text + used, room - used, "%s-%u", blank,
                                     d->id[i]);
        else
            used += (size_t)snprintf(
                text + used, room - used, "%s+%u:%llu%s", blank, d->id[i],
                (unsigned long long)d->bytes[i],
                d->recorded.addr && !d->recorded.addr[i] ? "!" : "");
    }
}

static bool log_has_note(const struct frag_trace *t, const char *words)
{
    for (uint32_t i = 0; i < t->note_count; i++)
        if (strstr(t->notes[i], words))
            return true;
    return false;
}

static void log_becomes_its_events(void **state)
{
    const struct log_row *row = *state;
    struct frag_trace *t;
    char events[512];

    if (log_opened(row->log, &t) != FRAG_OK)
        fail_msg("%s", log_error.text);
    assert_string_equal(t->format, log_format);
    log_describe(frag_trace_device(t, 0), events, sizeof(events));
    assert_string_equal(events, row->events);
    if (row->note && !log_has_note(t, row->note))
        fail_msg("no note \"%s\"", row->note);
    frag_trace_close(t);
}

static void log_is_refused(const struct bad_log *bad, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct frag_trace *t;

        if (log_opened(bad[i].log, &t) != FRAG_CORRUPT)
            fail_msg("%s is read", bad[i].log);
        assert_null(t);
        if (!strstr(log_error.text, bad[i].words))
            fail_msg("%s: %s", bad[i].log, log_error.text);
    }
}

/* Runs a test for each row (at most 64), then the other tests. Returns the
 * number of failures, for main. */
static int log_tests(const char *format, const struct log_row *rows,
                     size_t count, const struct CMUnitTest *others,
                     size_t other_count)
{
    static struct CMUnitTest tests[64];
    const int file = mkstemp(log_path);
    int failed;

    if (file < 0 || count > sizeof(tests) / sizeof(*tests))
        return 1;
    close(file);
    log_format = format;
    for (size_t i = 0; i < count; i++) {
        const void *row = &rows[i];

        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = log_becomes_its_events};
        memcpy(&tests[i].initial_state, &row, sizeof(row));
    }
    failed = _cmocka_run_group_tests("rows", tests, count, NULL, NULL) +
             _cmocka_run_group_tests("others", others, other_count, NULL, NULL);
    unlink(log_path);
    return failed;
}

#define LOG_TESTS(format, rows, others)                             \
    log_tests(format, rows, sizeof(rows) / sizeof(*(rows)), others, \
              sizeof(others) / sizeof(*(others)))

#endif
