/* test_import_static.c - tests the importer of static instances: the events of
 * each line, and the refusal of wrong lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/trace.h"

static enum frag_err open_text(const char *text, struct frag_trace **t,
                               struct frag_error *e)
{
    char path[] = "/tmp/frag_static_XXXXXX";
    int file = mkstemp(path);
    enum frag_err err;

    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    err = frag_trace_open(path, NULL, t, e);
    unlink(path);
    return err;
}

/* The events as "+size" and "-size of the freed", in units of `unit`. */
static void tell(const struct frag_trace *t, frag_size unit, char *text)
{
    const struct frag_device_trace *d = &t->devices[0];
    frag_size sizes[64];

    for (uint64_t i = 0; i < d->count; i++) {
        const bool is_alloc = d->op[i] == FRAG_ALLOC;

        if (is_alloc)
            sizes[d->id[i]] = d->bytes[i] / unit;
        text +=
            sprintf(text, "%c%d ", is_alloc ? '+' : '-', (int)sizes[d->id[i]]);
    }
}

static const struct {
    const char *text;
    frag_size unit;
    const char *events;
} good[] = {
    /* Times order the events; at equal ones deaths come first, then births in
     * the order of the lines. */
    {"id,lower,upper,size\n0,4,9,512\n1,0,4,1024\n", 512, "+2 -2 +1 -1 "},
    {"id,lower,upper,size\n0,1,2,512\n1,1,3,1024\n", 512, "+1 +2 -1 -2 "},
    /* Any order of columns, blanks, CRLF, empty lines, no last line end. */
    {"size, upper ,lower,id\r\n512,4,0,x\r\n\r\n1024,9,4,y", 512,
     "+1 -1 +2 -2 "},
    /* An id of no letters is one like others. */
    {"id,lower,upper,size\n,0,1,512\n", 512, "+1 -1 "},
    /* A column `end` is inclusive. */
    {"id,lower,end,size\n0,0,4,512\n1,4,5,1024\n", 512, "+1 +2 -1 -2 "},
    /* Sizes that are not multiples: a unit is 512 bytes then. */
    {"id,lower,upper,size\n0,0,1,3\n1,2,3,1024\n", 512, "+3 -3 +1024 -1024 "},
    /* Other columns, wherever they are. */
    {"id,hint,lower,upper,size,offset\n0,,0,1,512,7\n1,x,1,2,1024,\n", 512,
     "+1 -1 +2 -2 "},
    {"alignment,id,lower,upper,size\n8,0,0,1,512\n1,1,1,2,1024\n", 512,
     "+1 -1 +2 -2 "},
};

static void lines_become_births_and_deaths(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        struct frag_trace *t;
        struct frag_error e;
        char events[256] = "";

        assert_int_equal(open_text(good[i].text, &t, &e), FRAG_OK);
        assert_string_equal(t->format, "static");
        tell(t, good[i].unit, events);
        assert_string_equal(events, good[i].events);
        frag_trace_close(t);
    }
}

static void a_scaled_instance_says_so(void **state)
{
    struct frag_trace *t;
    struct frag_error e;

    (void)state;
    assert_int_equal(open_text(good[0].text, &t, &e), FRAG_OK);
    assert_int_equal(t->note_count, 0);
    frag_trace_close(t);
    assert_int_equal(open_text(good[5].text, &t, &e), FRAG_OK);
    assert_int_equal(t->note_count, 1);
    assert_non_null(strstr(t->notes[0], "512"));
    frag_trace_close(t);
}

/* The note that an input leads to, "" if to none. */
static const struct {
    const char *text, *note;
} noted[] = {
    {"id,lower,upper,size\n0,0,1,512\n", ""},
    {"id,lower,upper,size,offset\n0,0,1,512,0\n", "not read: offset"},
    {"hint,id,lower,upper,offset,size\n,0,0,1,,512\n",
     "not read: hint, offset"},
    /* Addresses are multiples of 512 bytes: of 512 units, or of one. */
    {"id,lower,upper,size,alignment\n0,0,1,512,512\n1,0,1,512,1\n", ""},
    {"id,lower,upper,size,alignment\n0,0,1,512,1024\n1,0,1,512,1\n",
     "alignment of 1 of the 2 buffers"},
    {"id,lower,upper,size,alignment\n0,0,1,512,384\n1,0,1,512,3\n",
     "alignment of 2 of the 2 buffers"},
};

static void what_is_not_taken_over_is_noted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(noted) / sizeof(*noted); i++) {
        const bool any = noted[i].note[0];
        struct frag_trace *t;
        struct frag_error e = {""};

        if (open_text(noted[i].text, &t, &e) != FRAG_OK)
            fail_msg("%zu: %s", i, e.text);
        assert_int_equal(t->note_count, any);
        if (any && !strstr(t->notes[0], noted[i].note))
            fail_msg("%zu: %s", i, t->notes[0]);
        frag_trace_close(t);
    }
}

/* A unit of 512 bytes is all that addresses are a multiple of. */
static void an_alignment_counts_in_units_of_the_file(void **state)
{
    struct frag_trace *t;
    struct frag_error e;

    (void)state;
    assert_int_equal(open_text("id,lower,upper,size,alignment\n"
                               "0,0,1,3,1\n1,0,1,8,2\n2,0,1,8,8\n",
                               &t, &e),
                     FRAG_OK);
    assert_int_equal(t->note_count, 2);
    assert_non_null(strstr(t->notes[0], "in bytes by 512"));
    assert_non_null(strstr(t->notes[1], "alignment of 2 of the 3 buffers"));
    frag_trace_close(t);
}

static const struct {
    const char *text, *words;
} bad[] = {
    {"id,lower,upper,size,alignment\n0,4,9,512,0\n", "an alignment, 1 to"},
    {"id,lower,upper,size,alignment\n0,4,9,512,\n", "an alignment, 1 to"},
    {"id,lower,upper,size,offset\n0,4,9,512\n", "as many fields"},
    {"id,lower,upper,size,alignment,alignment\n0,4,9,512,1,1\n",
     "a known format"},
    {"id,lower,upper,size\n0,4,4,512\n", "a buffer that ends after it begins"},
    {"id,lower,upper,size\n0,4,9,0\n", "a size, 1 to"},
    {"id,lower,upper,size\n0,4,9,-1\n", "a size, 1 to"},
    {"id,lower,upper,size\n0,,9,5\n", ":2: expected a time"},
    {"id,lower,upper,size\n0,1,2,512\n0,4,9\n", ":3: expected as many fields"},
    {"id,lower,upper,size\n0,4,9,512,7\n", "as many fields"},
    {"id,lower,upper,size\n0,4,9223372036854775808,512\n", "a time, 0 to"},
    {"id,lower,upper,size\n0,4,9,9223372036854775807\n", "sizes below 2^54"},
    {"id,lower,upper,end,size\n0,4,9,9,512\n", "a known format"},
    {"id,lower,size\n0,4,512\n", "a known format"},
    {"name,lower,upper,size\n0,4,9,512\n", "a known format"},
    {"id,lower,upper,size,size\n0,4,9,512,512\n", "a known format"},
    /* The quoted input is cut at 60 characters. */
    {"id,lower,upper,size\n0,4,9,"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "\n",
     "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\""},
};

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct frag_trace *t;
        struct frag_error e;

        assert_int_equal(open_text(bad[i].text, &t, &e), FRAG_CORRUPT);
        if (!strstr(e.text, bad[i].words))
            fail_msg("%zu: %s", i, e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_births_and_deaths),
        cmocka_unit_test(a_scaled_instance_says_so),
        cmocka_unit_test(what_is_not_taken_over_is_noted),
        cmocka_unit_test(an_alignment_counts_in_units_of_the_file),
        cmocka_unit_test(what_is_wrong_is_said),
    };

    return cmocka_run_group_tests_name("static", tests, NULL, NULL);
}
