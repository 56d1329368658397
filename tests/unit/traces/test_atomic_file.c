/* test_atomic_file.c - tests that a file appears complete under its name or not
 * at all: for writers that open the name themselves, and for every failure on
 * the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "traces/bytes/atomic_file.h"
#include "traces/bytes/temporary.h"

static char folder[] = "/tmp/frag_atomic_XXXXXX";
static char path[64];
static struct frag_error error;

static bool file_fails, folder_fails;
static int file_syncs, folder_syncs; /* the latter after the rename */

/* Replaces the C library's function. */
int fsync(int fd)
{
    struct stat at;

    assert_int_equal(fstat(fd, &at), 0);
    errno = ENOSPC;
    if (!S_ISDIR(at.st_mode)) {
        file_syncs++;
        return file_fails ? -1 : 0;
    }
    folder_syncs += access(path, F_OK) == 0;
    return folder_fails ? -1 : 0;
}

static void write_text(const char *name, const char *text)
{
    FILE *out = fopen(name, "w");

    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static void assert_text(const char *name, const char *text)
{
    char found[32] = "";
    FILE *in = fopen(name, "r");

    assert_non_null(in);
    (void)!fgets(found, sizeof(found), in);
    fclose(in);
    assert_string_equal(found, text);
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

#define TRY(call)                       \
    do {                                \
        if ((call) != FRAG_OK)          \
            fail_msg("%s", error.text); \
    } while (0)

static struct atomic_file begin(const char *suffix)
{
    struct atomic_file f;

    if (atomic_file_begin(&f, path, suffix, &error) != FRAG_OK)
        fail_msg("%s", error.text);
    return f;
}

static void a_file_is_renamed_once_it_is_on_the_disk(void **state)
{
    static const char *const suffixes[] = {"", ".svg"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct atomic_file f = begin(suffixes[i]);
        const size_t length = strlen(path) + strlen(".partial-");
        struct atomic_file other = begin(suffixes[i]);

        assert_memory_equal(f.partial, path, strlen(path));
        assert_memory_equal(f.partial + strlen(path), ".partial-", 9);
        assert_int_equal(strlen(f.partial), length + 8 + strlen(suffixes[i]));
        assert_string_equal(f.partial + length + 8, suffixes[i]);
        assert_string_not_equal(f.partial, other.partial);
        atomic_file_abort(&other);
        assert_text(f.partial, "");
        write_text(f.partial, "new");
        file_syncs = folder_syncs = 0;
        assert_int_equal(atomic_file_commit(&f, &error), FRAG_OK);
        assert_int_equal(file_syncs, 1);
        assert_int_equal(folder_syncs, 1);
        assert_null(f.partial);
        assert_text(path, "new");
        assert_int_equal(files(), 1);
        unlink(path);
    }
}

/* Browsers and editors write another file and rename it themselves. */
static void the_writer_may_make_another_file(void **state)
{
    struct atomic_file f = begin("");
    char other[100];

    (void)state;
    snprintf(other, sizeof(other), "%s.other", path);
    write_text(other, "other");
    assert_int_equal(rename(other, f.partial), 0);
    assert_int_equal(atomic_file_commit(&f, &error), FRAG_OK);
    assert_text(path, "other");
    assert_int_equal(files(), 1);
    unlink(path);
}

static void an_abort_leaves_what_was_there(void **state)
{
    struct atomic_file f, none = {0};

    (void)state;
    atomic_file_abort(&none);
    write_text(path, "old");
    f = begin(".h5");
    write_text(f.partial, "new");
    assert_int_equal(files(), 2);
    atomic_file_abort(&f);
    assert_null(f.partial);
    assert_text(path, "old");
    assert_int_equal(files(), 1);
    unlink(path);
}

/* The longest name of a file has a partial file, too; only a name that has room
 * for the whole of it is known again after a kill. */
static void a_long_name_is_written(void **state)
{
    static const size_t lengths[] = {200, 238, 239, 243, 255};

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        char name[400];
        struct atomic_file f, killed;

        snprintf(name, sizeof(name), "%s/%0*d", folder, (int)lengths[i], 7);
        TRY(atomic_file_begin(&f, name, ".html", &error));
        write_text(f.partial, "new");
        TRY(atomic_file_commit(&f, &error));
        assert_text(name, "new");
        TRY(atomic_file_begin(&killed, name, "", &error));
        assert_int_equal(files(), 2);
        atomic_file_remove_dead(name);
        assert_int_equal(files(), lengths[i] <= 238 ? 1 : 2);
        atomic_file_abort(&killed);
        unlink(name);
    }
}

/* The names are those that once were used, and those that look like one. */
static void a_planted_link_is_not_followed(void **state)
{
    static const char *const left[] = {
        ".partial-abcdefg", ".partial-abcdefgh.h5", ".partial-ABCDEFGH",
        ".partial-", ".partiol-abcdefgh"};
    char name[100], victim[100];
    struct atomic_file f;

    (void)state;
    snprintf(victim, sizeof(victim), "%s/victim", folder);
    write_text(victim, "victim");
    snprintf(name, sizeof(name), "%s.partial-%ld", path, (long)getpid());
    assert_int_equal(symlink(victim, name), 0);
    f = begin("");
    write_text(f.partial, "new");
    assert_int_equal(unlink(f.partial), 0);
    assert_int_equal(symlink(victim, f.partial), 0);
    assert_int_equal(atomic_file_open(&f), -1);
    atomic_file_abort(&f);
    assert_text(victim, "victim");
    unlink(name);
    for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
        snprintf(name, sizeof(name), "%s%s", path, left[i]);
        write_text(name, "mine");
        atomic_file_remove_dead(path);
        assert_text(name, "mine");
        unlink(name);
    }
    unlink(victim);
}

/* A signal handler removes what this process made, but not its children. */
static void all_is_removed_at_once(void **state)
{
    int status = 0;
    pid_t child;

    (void)state;
    write_text(path, "old");
    child = fork();
    if (child == 0) {
        struct atomic_file f = begin(".svg");
        char *place = temporary_folder(path, ""), name[100];
        pid_t inner;

        snprintf(name, sizeof(name), "%s/deep", place);
        if (mkdir(name, 0700) < 0 || files() != 3)
            _exit(1);
        snprintf(name, sizeof(name), "%s/deep/file", place);
        write_text(name, "text");
        inner = fork();
        if (inner == 0) {
            temporary_remove_all();
            _exit(0);
        }
        waitpid(inner, &status, 0);
        if (files() != 3)
            _exit(2);
        temporary_remove_all();
        _exit(temporary_file(path, "") || files() != 1 ? 3 : 0);
        (void)f;
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    unlink(path);
}

static void a_kill_leaves_what_was_there(void **state)
{
    int status = 0;
    pid_t child;

    (void)state;
    write_text(path, "old");
    child = fork();
    if (child == 0) {
        struct atomic_file f;

        if (atomic_file_begin(&f, path, "", &error) == FRAG_OK)
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_text(path, "old");
    assert_int_equal(files(), 2);
    atomic_file_remove_dead(path);
    assert_int_equal(files(), 1);
    unlink(path);
}

static void assert_commit_fails(int reason)
{
    struct atomic_file f = begin("");

    write_text(f.partial, "new");
    if (reason == ENOENT)
        unlink(f.partial);
    assert_int_equal(atomic_file_commit(&f, &error), FRAG_IO);
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, strerror(reason)));
    assert_null(f.partial);
    assert_text(path, "old");
    assert_int_equal(files(), 1);
}

static void a_commit_that_fails_leaves_what_was_there(void **state)
{
    (void)state;
    write_text(path, "old");
    file_fails = true;
    assert_commit_fails(ENOSPC);
    file_fails = false;
    assert_commit_fails(ENOENT);
    unlink(path);
}

/* Some file systems cannot; the file is complete and has its name. */
static void a_folder_that_cannot_be_synced_is_no_failure(void **state)
{
    struct atomic_file f = begin("");

    (void)state;
    write_text(f.partial, "new");
    folder_fails = true;
    assert_int_equal(atomic_file_commit(&f, &error), FRAG_OK);
    folder_fails = false;
    assert_text(path, "new");
    unlink(path);
}

static void a_name_that_cannot_be_written_is_refused(void **state)
{
    char pipe[100], none[100], device[100];
    const struct {
        const char *name, *reason;
    } names[] = {{folder, "it is no regular file"},
                 {device, "it is no regular file"},
                 {pipe, "it is no regular file"},
                 {none, "cannot create it: No such file or directory"}};

    (void)state;
    snprintf(pipe, sizeof(pipe), "%s/pipe", folder);
    snprintf(none, sizeof(none), "%s/none/file", folder);
    /* The path is a link: if this test failed, it would replace the link and
     * not the device. */
    snprintf(device, sizeof(device), "%s/full", folder);
    assert_int_equal(symlink("/dev/full", device), 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct atomic_file f;
        char text[200];

        snprintf(text, sizeof(text), "%s: %s", names[i].name, names[i].reason);
        assert_int_equal(atomic_file_begin(&f, names[i].name, "", &error),
                         FRAG_IO);
        assert_string_equal(error.text, text);
        assert_null(f.partial);
    }
    assert_int_equal(files(), 2);
    unlink(pipe);
    unlink(device);
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
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_renamed_once_it_is_on_the_disk),
        cmocka_unit_test(the_writer_may_make_another_file),
        cmocka_unit_test(an_abort_leaves_what_was_there),
        cmocka_unit_test(a_long_name_is_written),
        cmocka_unit_test(a_planted_link_is_not_followed),
        cmocka_unit_test(all_is_removed_at_once),
        cmocka_unit_test(a_kill_leaves_what_was_there),
        cmocka_unit_test(a_commit_that_fails_leaves_what_was_there),
        cmocka_unit_test(a_folder_that_cannot_be_synced_is_no_failure),
        cmocka_unit_test(a_name_that_cannot_be_written_is_refused),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
