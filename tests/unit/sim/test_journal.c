/* test_journal.c - tests that a journal, opened again, holds every entry that
 * was added to it, wherever the file was cut off and whichever byte was
 * changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/experiments/sweep/journal.h"

enum { RECORDS = 5, ROOM = 1 << 16 };

static const char who[] = "fragsim 1 (test)";
static const struct {
    uint32_t kind;
    const char *text;
} records[RECORDS] = {
    {1, "one"},
    {2, ""},
    {2, "a longer one, of forty bytes or a few more"},
    {7, "x"},
    {1, "the last"},
};

static char folder[] = "/tmp/frag_journal_XXXXXX";
static char path[64];

/* The entries that an opened journal reported. */
struct seen {
    int count;
    uint64_t offsets[RECORDS + 1];
    bool wrong;
};

static enum frag_err note(void *user, const struct journal_entry *entry,
                          struct frag_error *e)
{
    struct seen *s = user;
    const char *text = s->count < RECORDS ? records[s->count].text : "";

    (void)e;
    if (s->count >= RECORDS || entry->kind != records[s->count].kind ||
        entry->size != strlen(text) || memcmp(entry->bytes, text, entry->size))
        s->wrong = true;
    else
        s->offsets[s->count++] = entry->offset;
    return FRAG_OK;
}

static void put_all(struct journal *j)
{
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(journal_put(j, records[i].kind, records[i].text,
                                     strlen(records[i].text), NULL, NULL),
                         FRAG_OK);
    assert_int_equal(journal_sync(j, NULL), FRAG_OK);
}

static struct journal *open_as(enum journal_mode mode, struct seen *seen)
{
    struct frag_error e = {""};
    struct journal *j = NULL;
    enum frag_err err =
        journal_open(path, mode, false, who, note, seen, &j, &e);

    if (err != FRAG_OK)
        fail_msg("%s", e.text);
    return j;
}

static size_t slurp(char *bytes)
{
    FILE *in = fopen(path, "rb");
    size_t n;

    assert_non_null(in);
    n = fread(bytes, 1, ROOM, in);
    fclose(in);
    return n;
}

static void spill(const char *bytes, size_t size)
{
    FILE *out = fopen(path, "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

/* The file with all records. */
static size_t whole(char *bytes)
{
    struct seen seen = {0};

    unlink(path);
    struct journal *j = open_as(JOURNAL_NEW, &seen);
    put_all(j);
    journal_close(j);
    return slurp(bytes);
}

static void records_come_back(void **state)
{
    char bytes[ROOM];
    struct seen seen = {0};
    struct journal *j;

    (void)state;
    whole(bytes);
    j = open_as(JOURNAL_RESUME, &seen);
    assert_false(seen.wrong);
    assert_int_equal(seen.count, RECORDS);
    assert_int_equal(journal_dropped(j), 0);
    for (int i = RECORDS - 1; i >= 0; i--) {
        void *found;
        size_t size;

        assert_int_equal(journal_get(j, seen.offsets[i], &found, &size, NULL),
                         FRAG_OK);
        assert_int_equal(size, strlen(records[i].text));
        assert_memory_equal(found, records[i].text, size);
        free(found);
    }
    journal_close(j);
}

/* After a cut anywhere the whole records before it are there, no more, and the
 * journal can be gone on with. */
static void any_cut_keeps_what_is_before(void **state)
{
    static char bytes[ROOM];
    size_t size = whole(bytes);
    int last = -1;

    (void)state;
    for (size_t n = 0; n <= size; n++) {
        struct seen seen = {0}, again = {0};
        struct journal *j;

        spill(bytes, n);
        j = open_as(JOURNAL_RESUME, &seen);
        assert_false(seen.wrong);
        assert_in_range(seen.count, last < 0 ? 0 : last, last + 1);
        last = seen.count;
        for (int i = seen.count; i < RECORDS; i++)
            assert_int_equal(journal_put(j, records[i].kind, records[i].text,
                                         strlen(records[i].text), NULL, NULL),
                             FRAG_OK);
        journal_close(j);
        j = open_as(JOURNAL_RESUME, &again);
        assert_int_equal(again.count, RECORDS);
        assert_false(again.wrong);
        journal_close(j);
    }
    assert_int_equal(last, RECORDS);
}

/* A changed byte is seen: the records before it are there, none is wrong. */
static void any_changed_byte_is_seen(void **state)
{
    static char bytes[ROOM];
    size_t size = whole(bytes);

    (void)state;
    for (size_t i = 0; i < size; i++) {
        struct seen seen = {0};
        struct journal *j = NULL;
        enum frag_err err;

        bytes[i] = (char)(bytes[i] ^ 0x10);
        spill(bytes, size);
        bytes[i] = (char)(bytes[i] ^ 0x10);
        err = journal_open(path, JOURNAL_RESUME, false, who, note, &seen, &j,
                           NULL);
        if (err == FRAG_OK) {
            assert_false(seen.wrong);
            assert_in_range(seen.count, 0, RECORDS - 1);
            assert_true(journal_dropped(j) > 0);
            journal_close(j);
        } else {
            assert_int_equal(err, FRAG_CORRUPT);
            assert_int_equal(seen.count, 0);
        }
    }
}

static void only_one_may_write(void **state)
{
    struct seen seen = {0};
    struct frag_error e = {""};
    struct journal *j, *other = NULL;

    (void)state;
    unlink(path);
    j = open_as(JOURNAL_NEW, &seen);
    put_all(j);
    for (int mode = JOURNAL_NEW; mode <= JOURNAL_RESUME; mode++) {
        assert_int_equal(journal_open(path, (enum journal_mode)mode, false, who,
                                      note, &seen, &other, &e),
                         FRAG_IO);
        assert_non_null(strstr(e.text, "another process"));
    }
    journal_close(j);
    j = open_as(JOURNAL_RESUME, &seen);
    assert_int_equal(seen.count, RECORDS);
    journal_remove(j);
    assert_int_equal(access(path, F_OK), -1);
}

static void what_is_not_ours_is_left_alone(void **state)
{
    static const char text[] = "Dear diary, this is no journal of a sweep.\n";
    char bytes[ROOM], after[ROOM];
    size_t size = whole(bytes);
    struct seen seen = {0};
    struct journal *j = NULL;

    (void)state;
    assert_int_equal(
        journal_open(path, JOURNAL_NEW, false, who, note, &seen, &j, NULL),
        FRAG_IO);
    assert_int_equal(journal_open(path, JOURNAL_RESUME, false, "fragsim 2",
                                  note, &seen, &j, NULL),
                     FRAG_UNSUPPORTED);
    assert_int_equal(slurp(after), size);
    assert_memory_equal(after, bytes, size);
    assert_int_equal(seen.count, 0);

    spill(text, sizeof(text));
    assert_int_equal(
        journal_open(path, JOURNAL_RESUME, false, who, note, &seen, &j, NULL),
        FRAG_CORRUPT);
    assert_int_equal(slurp(after), sizeof(text));
    assert_memory_equal(after, text, sizeof(text));
}

static void a_new_one_replaces(void **state)
{
    char bytes[ROOM];
    struct seen seen = {0};
    struct journal *j;

    (void)state;
    whole(bytes);
    journal_close(open_as(JOURNAL_REPLACE, &seen));
    j = open_as(JOURNAL_RESUME, &seen);
    assert_int_equal(seen.count, 0);
    journal_close(j);
}

/* In a child process with a limit on the size of files. */
static int fill(rlim_t limit)
{
    const struct rlimit small = {limit, limit};
    struct seen seen = {0};
    struct journal *j;
    char big[5000] = "";

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &small) < 0)
        return 2;
    if (journal_open(path, JOURNAL_RESUME, false, who, note, &seen, &j, NULL))
        return 3;
    if (journal_put(j, 1, big, sizeof(big), NULL, NULL) != FRAG_IO)
        return 4;
    /* A small entry still fits at the place where the large one was cut off. */
    if (journal_put(j, records[0].kind, records[0].text,
                    strlen(records[0].text), NULL, NULL) != FRAG_OK)
        return 5;
    journal_close(j);
    return 0;
}

static void a_full_disk_leaves_whole_records(void **state)
{
    struct seen seen = {0};
    struct journal *j;
    int status;
    pid_t child;

    (void)state;
    unlink(path);
    child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(fill(1000));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    j = open_as(JOURNAL_RESUME, &seen);
    assert_false(seen.wrong);
    assert_int_equal(seen.count, 1);
    assert_int_equal(journal_dropped(j), 0);
    journal_close(j);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/j", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(any_cut_keeps_what_is_before),
        cmocka_unit_test(any_changed_byte_is_seen),
        cmocka_unit_test(only_one_may_write),
        cmocka_unit_test(what_is_not_ours_is_left_alone),
        cmocka_unit_test(a_new_one_replaces),
        cmocka_unit_test(a_full_disk_leaves_whole_records),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
