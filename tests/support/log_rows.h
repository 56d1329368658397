/* log_rows.h - tests of importers as tables: a log, and the events and notes
 * that must result; or a text, and the words of its refusal. */
#ifndef FRAG_TESTS_SUPPORT_LOG_ROWS_H
#define FRAG_TESTS_SUPPORT_LOG_ROWS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/facts.h"
#include "traces/trace.h"

/* Events of all devices: "+1:8" allocates 8 bytes in slot 1, "?1:8" is a
 * request that failed, "-1" frees it; "@2" is the raw stream, of a free only if
 * it is another than that of the alloc; "|" separates devices. */
struct log_row {
    const char *name, *log, *events;
    const char *note; /* words of a note; NULL: the format's note alone */
};

struct log_refusal {
    const char *log, *words;
};

static char log_path[] = "/tmp/frag_log_XXXXXX";
static struct frag_error log_error;

static inline enum frag_err log_open(const char *text, struct frag_trace **t)
{
    FILE *file = fopen(log_path, "wb");

    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
    log_error.text[0] = '\0';
    *t = NULL;
    return frag_trace_open(log_path, NULL, t, &log_error);
}

static inline void log_describe_event(const struct frag_device_trace *d,
                                      uint64_t i, FILE *out)
{
    uint64_t stream = 0;

    if (d->op[i] == FRAG_ALLOC) {
        fprintf(out, "%c%u:%llu", facts_has_failed(d, i) ? '?' : '+', d->id[i],
                (unsigned long long)d->bytes[i]);
        stream = d->streams[d->stream[i]];
    } else {
        fprintf(out, "-%u", d->id[i]);
    }
    if (stream || (d->op[i] == FRAG_FREE && d->free_streams && d->stream[i]))
        fprintf(out, "@%llu",
                (unsigned long long)(stream ? stream
                                            : d->streams[d->stream[i] - 1]));
}

static inline void log_describe(const struct frag_trace *t, char *text,
                                size_t room)
{
    FILE *out = fmemopen(text, room, "w");

    for (uint32_t k = 0; k < t->device_count; k++) {
        fputs(k ? " |" : "", out);
        for (uint64_t i = 0; i < t->devices[k].count; i++) {
            fputs(k || i ? " " : "", out);
            log_describe_event(&t->devices[k], i, out);
        }
    }
    fputc('\0', out);
    fclose(out);
}

/* A test function whose state is a row. */
static inline void log_row_matches(void **state)
{
    const struct log_row *row = *state;
    struct frag_trace *t;
    char events[512];

    if (log_open(row->log, &t) != FRAG_OK)
        fail_msg("%s", log_error.text);
    log_describe(t, events, sizeof(events));
    assert_string_equal(events, row->events);
    if (!row->note) /* those of the builder tell what was live before */
        assert_int_equal(t->note_count, t->devices[0].initial ? 4 : 1);
    if (row->note && !strstr(t->notes[0], row->note))
        fail_msg("expected the note \"%s\", found \"%s\"", row->note,
                 t->notes[0]);
    frag_trace_close(t);
}

static inline void log_is_refused(const struct log_refusal *r)
{
    struct frag_trace *t;

    if (log_open(r->log, &t) != FRAG_CORRUPT)
        fail_msg("accepted: %s", r->log);
    assert_null(t);
    if (!strstr(log_error.text, r->words))
        fail_msg("%s: %s", r->log, log_error.text);
}

/* Runs a test for each row. Returns the number of tests that failed. */
static inline int log_run_rows(const struct log_row *rows, size_t count)
{
    struct CMUnitTest tests[64];

    assert_true(count <= sizeof(tests) / sizeof(*tests));
    for (size_t i = 0; i < count; i++) {
        const void *row = &rows[i];

        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = log_row_matches};
        memcpy(&tests[i].initial_state, &row, sizeof(row));
    }
    return _cmocka_run_group_tests("rows", tests, count, NULL, NULL);
}

#endif
