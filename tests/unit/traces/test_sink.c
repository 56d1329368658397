/* test_sink.c - tests outputs, which appear complete or not at all: a file is
 * on the disk before it has its name, and a failure leaves the previous file in
 * place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/bytes/sink.h"

static char folder[] = "/tmp/frag_sink_XXXXXX";
static char path[64];
static bool disk_fails;
static int64_t synced; /* bytes of the file at the last fsync; -1: none yet */
static bool was_named; /* the file had its name by then */
static bool folder_fails;
static bool folder_synced; /* after the file had its name */

/* Replaces the C library's function. */
int fsync(int fd)
{
    struct stat at;
    bool fails = disk_fails;

    assert_int_equal(fstat(fd, &at), 0);
    if (S_ISDIR(at.st_mode)) {
        folder_synced = access(path, F_OK) == 0;
        fails = folder_fails;
    } else {
        synced = at.st_size;
        was_named = access(path, F_OK) == 0;
    }
    errno = EIO;
    return fails ? -1 : 0;
}

/* Commits so many bytes. */
static enum frag_err put(size_t count, struct frag_error *e)
{
    struct sink s;

    synced = -1;
    folder_synced = false;
    assert_int_equal(sink_open(&s, path, e), FRAG_OK);
    for (size_t i = 0; i < count; i++)
        fputc('x', s.out);
    return sink_commit(&s, e);
}

static size_t files(void)
{
    char command[100], text[20] = "";
    FILE *in;

    snprintf(command, sizeof(command), "ls -A %s | wc -l", folder);
    in = popen(command, "r");
    assert_non_null(fgets(text, sizeof(text), in));
    pclose(in);
    return strtoul(text, NULL, 10);
}

static void a_file_is_on_the_disk_before_it_has_its_name(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 100000};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct frag_error e;
        struct stat at;

        unlink(path);
        assert_int_equal(put(sizes[i], &e), FRAG_OK);
        assert_int_equal(synced, sizes[i]);
        assert_false(was_named);
        assert_true(folder_synced);
        assert_int_equal(stat(path, &at), 0);
        assert_int_equal(at.st_size, sizes[i]);
        assert_int_equal(files(), 1);
    }
}

static void a_disk_that_fails_leaves_what_was_there(void **state)
{
    struct frag_error e;
    struct stat at;

    (void)state;
    assert_int_equal(put(5, &e), FRAG_OK);
    disk_fails = true;
    assert_int_equal(put(9, &e), FRAG_IO);
    disk_fails = false;
    assert_non_null(strstr(e.text, path));
    assert_non_null(strstr(e.text, strerror(EIO)));
    assert_int_equal(stat(path, &at), 0);
    assert_int_equal(at.st_size, 5);
    assert_int_equal(files(), 1);
}

static void what_is_aborted_leaves_nothing(void **state)
{
    struct frag_error e;
    struct sink s;

    (void)state;
    unlink(path);
    assert_int_equal(sink_open(&s, path, &e), FRAG_OK);
    fputc('x', s.out);
    sink_abort(&s);
    assert_int_equal(files(), 0);
}

static void without_a_path_there_is_no_output(void **state)
{
    struct frag_error e;
    struct sink s;

    (void)state;
    assert_int_equal(sink_open(&s, NULL, &e), FRAG_OK);
    assert_null(s.out);
    assert_int_equal(sink_commit(&s, &e), FRAG_OK);
}

static void a_device_that_is_full_is_an_error(void **state)
{
    struct frag_error e;
    struct sink s;

    (void)state;
    unlink(path); /* a link: a failure would replace the device itself */
    assert_int_equal(symlink("/dev/full", path), 0);
    assert_int_equal(sink_open(&s, path, &e), FRAG_OK);
    fputc('x', s.out);
    assert_int_equal(sink_commit(&s, &e), FRAG_IO);
    assert_non_null(strstr(e.text, path));
    assert_non_null(strstr(e.text, strerror(ENOSPC)));
    unlink(path);
}

/* The last write succeeds, one before it did not. */
static void a_write_that_failed_early_is_an_error(void **state)
{
    struct rlimit was, small;
    struct frag_error e;
    struct sink s;

    (void)state;
    assert_int_equal(put(5, &e), FRAG_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){100, was.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(sink_open(&s, path, &e), FRAG_OK);
    setvbuf(s.out, NULL, _IONBF, 0);
    setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 200; i++)
        fputc('x', s.out);
    setrlimit(RLIMIT_FSIZE, &was);
    assert_int_equal(sink_commit(&s, &e), FRAG_IO);
    assert_non_null(strstr(e.text, path));
    assert_null(strstr(e.text, strerror(0)));
    assert_int_equal(files(), 1);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/out", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_on_the_disk_before_it_has_its_name),
        cmocka_unit_test(a_disk_that_fails_leaves_what_was_there),
        cmocka_unit_test(what_is_aborted_leaves_nothing),
        cmocka_unit_test(without_a_path_there_is_no_output),
        cmocka_unit_test(a_device_that_is_full_is_an_error),
        cmocka_unit_test(a_write_that_failed_early_is_an_error),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
