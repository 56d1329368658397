/* test_trace_file.c - tests trace files: a written file is read back, by
 * fragsim and by h5py, and a damaged file is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/trace_equal.h"
#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/file/guard.h"
#include "traces/file/trace_file.h"

/* HDF5 loses memory of its own on files it finds damaged. What we would lose
 * are identifiers, and these are counted below. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

static long open_identifiers(void)
{
    static const H5I_type_t types[] = {
        H5I_FILE,    H5I_GROUP, H5I_DATATYPE,   H5I_DATASPACE,
        H5I_DATASET, H5I_ATTR,  H5I_GENPROP_LST};
    struct hdf5_quiet quiet = hdf5_quiet_begin(NULL);
    hsize_t sum = 0;

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        hsize_t count = 0;

        H5Inmembers(types[i], &count);
        sum += count;
    }
    hdf5_quiet_end(quiet);
    return (long)sum;
}

static struct frag_error error;
static char folder[] = "/tmp/frag_trace_file_XXXXXX";

static const char *in_folder(const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

#define TRY(call)                       \
    do {                                \
        error.text[0] = '\0';           \
        if ((call) != FRAG_OK)          \
            fail_msg("%s", error.text); \
    } while (0)

static void entry(struct frag_build *b, uint32_t device,
                  enum frag_entry_kind kind, frag_addr addr, frag_size size,
                  uint64_t stream, uint32_t stack)
{
    static frag_time now;
    const struct frag_entry e = {.kind = kind,
                                 .stack = stack,
                                 .addr = addr,
                                 .size = size,
                                 .stream = stream,
                                 .time = ++now * 1000};

    TRY(frag_build_entry(b, device, &e, now, &error));
}

/* The final snapshot: a segment that was there before, with a block that was
 * there before, one that an entry made, and a free one. */
static void add_end(struct frag_build *b)
{
    const struct frag_snapshot_segment s = {.addr = 0x400000,
                                            .size = 2 * FRAG_MIB,
                                            .stream = 7,
                                            .pool = {0, 3},
                                            .is_small = true};
    const struct frag_snapshot_block blocks[] = {
        {0x400000, 1024, 1000, FRAG_ACTIVE_ALLOCATED},
        {0x400400, 512, 5, FRAG_ACTIVE_ALLOCATED},
        {0, 2 * FRAG_MIB - 1536, 0, FRAG_INACTIVE},
    };

    TRY(frag_build_segment(b, 1, &s, 1, &error));
    for (size_t i = 0; i < 3; i++)
        TRY(frag_build_block(b, 1, &blocks[i], 2, &error));
}

static void add_texts(struct frag_build *b)
{
    const struct frag_recorded_settings settings = {
        .conf = "expandable_segments:True"};

    TRY(frag_build_mark(b, 1, FRAG_MARK_BEGIN, 3500, "step 1", 6, &error));
    TRY(frag_build_mark(b, 1, FRAG_MARK_END, 5000, "step 1", 6, &error));
    TRY(frag_build_change(
        b, 0,
        &(struct frag_setting_change){
            .text = frag_build_string(b, "max_split_size_mb:20", 20),
            .time = 6000,
            .stack = 1},
        &settings, 1, &error));
    TRY(frag_build_change(
        b, 0,
        &(struct frag_setting_change){.kind = FRAG_CHANGE_LIMIT, .limit = 77},
        &settings, 0, &error));
    TRY(frag_build_note(b, "made by %s", "hand"));
    TRY(frag_build_settings(b, &settings, &error));
}

/* A trace with something in every part. */
static struct frag_trace *sample(void)
{
    struct frag_build *b = frag_build_open("x", "test");
    struct frag_trace *t = NULL;
    uint32_t file = frag_build_string(b, "train.py", 8);
    uint32_t function = frag_build_string(b, "step", 4);
    const struct frag_frame frames[] = {{file, function, 12},
                                        {file, function, 3}};
    uint32_t stack = frag_build_stack(b, frames, 2);

    assert_int_equal(stack, 1);
    assert_int_equal(frag_build_stack(b, frames, 2), 1);
    assert_int_equal(frag_build_stack(b, frames, 1), 2);
    assert_int_equal(frag_build_stack(b, NULL, 0), 0);
    entry(b, 0, FRAG_ENTRY_SEGMENT_ALLOC, 0x200000, 2 * FRAG_MIB, 9, stack);
    entry(b, 0, FRAG_ENTRY_ALLOC, 0x200000, 100, 9, stack);
    entry(b, 1, FRAG_ENTRY_ALLOC, 0x400400, 5, 7, 0);
    entry(b, 0, FRAG_ENTRY_ALLOC, 0x200200, 200, 4, 0);
    entry(b, 0, FRAG_ENTRY_FREE_REQUESTED, 0x200000, 100, 9, stack);
    entry(b, 0, FRAG_ENTRY_OOM, 1234, 4096, 4, 0);
    entry(b, 0, FRAG_ENTRY_FREE_COMPLETED, 0x200000, 100, 9, 0);
    add_end(b);
    add_texts(b);
    TRY(frag_build_finish(b, NULL, &t, &error));
    frag_build_close(b);
    return t;
}

static struct frag_trace *reopened(const char *path)
{
    struct frag_trace *t = NULL;

    TRY(trace_file_read(path, &t, &error));
    return t;
}

static unsigned char *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes;

    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void spill(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void what_is_written_is_read_again(void **state)
{
    struct frag_trace *t = sample(), *again;
    char path[256];
    const char *difference;

    (void)state;
    assert_int_equal(t->devices[1].initial, 1);
    assert_int_equal(t->devices[1].recorded.start.segment_count, 1);
    assert_int_equal(t->devices[1].mark_count, 2);
    assert_int_equal(t->devices[0].change_count, 2);
    assert_string_equal(t->devices[0].strings[t->devices[0].changes[0].text],
                        "max_split_size_mb:20");
    TRY(frag_trace_write(t, in_folder("a.h5", path), &error));
    again = reopened(path);
    difference = traces_differ(t, again);
    if (difference)
        fail_msg("%s", difference);
    frag_trace_close(t);
    frag_trace_close(again);
}

static void the_same_trace_gives_the_same_bytes(void **state)
{
    struct frag_trace *t = sample();
    char one[256], two[256];
    unsigned char *x, *y;
    size_t size, other;

    (void)state;
    TRY(frag_trace_write(t, in_folder("one.h5", one), &error));
    sleep(1); /* times are kept in seconds, if at all */
    TRY(frag_trace_write(t, in_folder("two.h5", two), &error));
    x = slurp(one, &size);
    y = slurp(two, &other);
    assert_int_equal(size, other);
    assert_memory_equal(x, y, size);
    free(x);
    free(y);
    frag_trace_close(t);
}

/* Whether a partial file of the path is there. */
static bool has_partial(const char *of)
{
    char pattern[300];
    glob_t found;
    bool has;

    snprintf(pattern, sizeof(pattern), "%s.partial-*", of);
    has = glob(pattern, 0, NULL, &found) == 0;
    globfree(&found);
    return has;
}

static void a_failed_write_leaves_nothing(void **state)
{
    struct frag_trace *t = sample();
    char path[256];

    (void)state;
    in_folder("absent/a.h5", path);
    assert_int_equal(frag_trace_write(t, path, &error), FRAG_IO);
    assert_non_null(strstr(error.text, "No such file"));
    in_folder("taken", path);
    mkdir(path, 0700);
    assert_int_equal(frag_trace_write(t, path, &error), FRAG_IO);
    assert_false(has_partial(path));
    frag_trace_close(t);
}

/* A disk that is full, as far as a process can make one. */
static void a_full_disk_leaves_nothing(void **state)
{
    static const rlim_t room[] = {100, 3000, 9000};
    struct rlimit was;
    struct frag_trace *t = sample();
    long ids = open_identifiers();
    char path[256];

    (void)state;
    in_folder("full.h5", path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof(room) / sizeof(*room); i++) {
        const struct rlimit small = {room[i], was.rlim_max};
        enum frag_err err;

        setrlimit(RLIMIT_FSIZE, &small);
        err = frag_trace_write(t, path, &error);
        setrlimit(RLIMIT_FSIZE, &was);
        assert_int_equal(err, FRAG_IO);
        assert_non_null(strstr(error.text, "File too large"));
        assert_int_not_equal(access(path, F_OK), 0);
        assert_false(has_partial(path));
    }
    assert_int_equal(open_identifiers(), ids);
    TRY(frag_trace_write(t, path, &error));
    frag_trace_close(t);
}

/* h5py. */

static bool python(const char *script, const char *path)
{
    char command[2048];

    snprintf(command, sizeof(command), "/usr/bin/python3 -c '%s' %s", script,
             path);
    return system(command) == 0;
}

static void need_h5py(void)
{
    if (python("import h5py", "2>/dev/null"))
        return;
    print_message("skipped: /usr/bin/python3 has no h5py\n");
    skip();
}

static void five_lines_of_h5py_make_a_trace(void **state)
{
    char path[256];
    struct frag_trace *t;

    (void)state;
    need_h5py();
    in_folder("python.h5", path);
    assert_true(python("import h5py, sys\n"
                       "g = h5py.File(sys.argv[1], \"w\")"
                       ".create_group(\"devices/0/events\")\n"
                       "g[\"op\"] = [0, 0, 1, 4, 1]\n"
                       "g[\"id\"] = [5 - 5, 1, 0, 0, 1]\n"
                       "g[\"bytes\"] = [100, 200, 0, 0, 0]\n",
                       path));
    t = reopened(path);
    assert_int_equal(t->device_count, 1);
    assert_int_equal(t->devices[0].count, 5);
    assert_int_equal(t->devices[0].slots, 2);
    assert_int_equal(t->devices[0].bytes[1], 200);
    assert_int_equal(t->devices[0].op[3], FRAG_EMPTY_CACHE);
    assert_int_equal(t->devices[0].stream_count, 1);
    frag_trace_close(t);
}

static void columns_that_are_packed_or_named_are_read_too(void **state)
{
    char path[256];
    struct frag_trace *t;

    (void)state;
    need_h5py();
    in_folder("packed.h5", path);
    assert_true(
        python("import h5py, sys, numpy as np\n"
               "f = h5py.File(sys.argv[1], \"w\")\n"
               "f.attrs[\"schema_name\"] = \"fragsim-trace\"\n"
               "f.attrs[\"schema_version\"] = \"1.7\"\n"
               "f.attrs[\"settings\"] = \"expandable_segments:True\"\n"
               "g = f.create_group(\"devices/3/events\")\n"
               "e = h5py.enum_dtype({\"alloc\": 0, \"free\": 1}, \"i4\")\n"
               "g.create_dataset(\"op\", data=[0, 1] * 500, dtype=e)\n"
               "g.create_dataset(\"id\", data=np.zeros(1000, \">i8\"), "
               "compression=\"gzip\")\n"
               "g.create_dataset(\"bytes\", data=[7, 0] * 500, "
               "chunks=(100,))\n"
               "g.create_dataset(\"stream\", data=[2, 0] * 500)\n",
               path));
    t = reopened(path);
    assert_int_equal(t->devices[0].device, 3);
    assert_int_equal(t->devices[0].stream[998], 2);
    assert_int_equal(t->devices[0].stream_count, 3);
    assert_int_equal(t->devices[0].bytes[998], 7);
    assert_string_equal(t->settings, "expandable_segments:True");
    frag_trace_close(t);
}

static void five_lines_of_h5py_read_a_trace(void **state)
{
    struct frag_trace *t = sample();
    char path[256];

    (void)state;
    TRY(frag_trace_write(t, in_folder("read.h5", path), &error));
    frag_trace_close(t);
    need_h5py();
    assert_true(
        python("import h5py, sys\n"
               "f = h5py.File(sys.argv[1])\n"
               "e = f[\"devices/0/events\"]\n"
               "assert list(e[\"bytes\"]) == [100, 200, 0, 4096, 0, 0], "
               "list(e[\"bytes\"])\n"
               "names = {v: k for k, v in "
               "h5py.check_enum_dtype(e[\"op\"].dtype).items()}\n"
               "assert [names[o] for o in e[\"op\"]][:3] == "
               "[\"alloc\", \"alloc\", \"free_requested\"]\n"
               "a = f[\"devices/0/recorded/actions\"]\n"
               "assert list(a[\"event\"]) == [0, 3] and a[1][\"device_free\"] "
               "== 1234\n"
               "def labelled(n, d):\n"
               "    assert not isinstance(d, h5py.Dataset) or (isinstance("
               "d.attrs[\"units\"], str) and d.attrs[\"long_name\"]), n\n"
               "f.visititems(labelled)\n"
               "assert f.attrs[\"schema_name\"] == b\"fragsim-trace\"\n",
               path));
}

static void broken_h5py_traces_are_refused(void **state)
{
    static const char *const breaks[] = {
        "g[\"op\"] = [0, 9]; g[\"id\"] = [0, 0]; g[\"bytes\"] = [1, 0]",
        "g[\"op\"] = [0, 1]; g[\"id\"] = [0]; g[\"bytes\"] = [1, 0]",
        "g[\"op\"] = [0, 1]; g[\"id\"] = [0, 0]",
        "g[\"op\"] = [0, 1]; g[\"id\"] = [-1, 0]; g[\"bytes\"] = [-5, 0]",
        "g[\"op\"] = [0, 1]; g[\"id\"] = [9, 9]; g[\"bytes\"] = [1, 0]",
        "g[\"op\"] = [0.5, 1]; g[\"id\"] = [0, 0]; g[\"bytes\"] = [1, 0]",
        "g[\"op\"] = [[0, 1]]; g[\"id\"] = [0, 0]; g[\"bytes\"] = [1, 0]",
        "g[\"op\"] = [0, 0]; g[\"id\"] = [0, 0]; g[\"bytes\"] = [1, 1]",
        "g[\"op\"] = b\"x\"; g[\"id\"] = [0, 0]; g[\"bytes\"] = [1, 1]",
        "f.attrs[\"schema_version\"] = \"2.0\"",
        "f.attrs[\"schema_name\"] = \"another\"",
        "f.attrs[\"schema_name\"] = 5",
        "g.create_dataset(\"op\", (1 << 50,), \"u1\", chunks=(9,)); "
        "g[\"id\"] = g[\"bytes\"] = 0",
        "g.create_dataset(\"op\", (1 << 40,), \"u1\"); "
        "g[\"id\"] = g[\"op\"]; g[\"bytes\"] = g[\"op\"]",
        "g[\"op\"] = h5py.ExternalLink(\"/etc/passwd\", \"x\")",
        "del f[\"devices\"]",
        "f[\"devices/x/events/op\"] = [0]",
    };
    char path[256];

    (void)state;
    need_h5py();
    in_folder("broken.h5", path);
    for (size_t i = 0; i < sizeof(breaks) / sizeof(*breaks); i++) {
        char script[1024];
        struct frag_trace *t = NULL;
        enum frag_err err;

        snprintf(script, sizeof(script),
                 "import h5py, sys\n"
                 "f = h5py.File(sys.argv[1], \"w\")\n"
                 "g = f.create_group(\"devices/0/events\")\n%s\n",
                 breaks[i]);
        assert_true(python(script, path));
        error.text[0] = '\0';
        err = trace_file_read(path, &t, &error);
        if (err != FRAG_CORRUPT || !strstr(error.text, "expected"))
            fail_msg("%s: %s \"%s\"", breaks[i], frag_err_text(err),
                     error.text);
    }
}

/* Edits of the sample that leave every dataset readable. */
static void tables_that_do_not_hold_together_are_refused(void **state)
{
    static const char *const edits[] = {
        "put(d + \"end_segments\", 0, \"block_count\", 2)",
        "put(d + \"end_segments\", 0, \"block_count\", 9)",
        "put(d + \"end_segments\", 0, \"first_block\", 1)",
        "put(d + \"end_segments\", 0, \"size\", 1 << 20)",
        "put(d + \"end_segments\", 0, \"size\", 1 << 22)",
        "put(d + \"end_segments\", 0, \"size\", 0)",
        "put(d + \"end_segments\", 0, \"stream\", 9)",
        "put(d + \"end_segments\", 0, \"pool\", 9)",
        "put(d + \"end_blocks\", 1, \"addr\", 0)",
        "put(d + \"end_blocks\", 2, \"size\", 1 << 63)",
        "put(d + \"end_blocks\", 0, \"state\", 3)",
        "put(d + \"end_blocks\", 0, \"slot\", 77)",
        "put(d + \"start_blocks\", 0, \"slot\", 77)",
        "put(\"devices/0/recorded/actions\", 0, \"action\", 5)",
        "put(\"devices/0/recorded/actions\", 0, \"event\", 99)",
        "put(\"devices/0/recorded/actions\", 0, \"event\", 4)",
        "put(\"devices/0/recorded/actions\", 0, \"stream\", 4)",
        "put(\"devices/0/recorded/actions\", 0, \"size\", 0)",
        "put(\"devices/1/marks\", 0, \"event\", 99)",
        "put(\"devices/1/marks\", 0, \"kind\", 2)",
        "put(\"devices/1/marks\", 0, \"name\", 99)",
        "put(\"devices/0/changes\", 0, \"event\", 99)",
        "put(\"devices/0/changes\", 0, \"event\", 5)",
        "put(\"devices/0/changes\", 0, \"kind\", 2)",
        "put(\"devices/0/changes\", 0, \"text\", 99)",
        "put(\"devices/0/changes\", 0, \"stack\", 99)",
        "put(\"devices/0/changes\", 0, \"origin\", 3)",
        "put(\"devices/1/pools\", 0, \"owner\", 1)",
        "put(\"stacks/frames\", 0, \"file\", 99)",
        "f[\"stacks/first\"][1] = 99",
        "f[\"stacks/first\"][3] = 99",
        "f[\"strings/first\"][1] = 0",
        "f[\"strings/first\"][1] = 999",
        "f[\"strings/text\"][8] = 65",
        "f[\"devices/0/streams\"][1] = 4",
        "f[\"devices/0/events/stack\"][0] = 99",
        "f[\"devices/0\"].attrs[\"slots\"] = 99",
        "f[\"devices/0\"].attrs[\"slots\"] = 1 << 33",
        "f[\"devices/0\"].attrs[\"initial\"] = 3",
    };
    struct frag_trace *t = sample();
    char path[256];

    (void)state;
    need_h5py();
    in_folder("edited.h5", path);
    for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
        struct frag_trace *again = NULL;
        char script[1024];
        enum frag_err err;

        TRY(frag_trace_write(t, path, &error));
        snprintf(script, sizeof(script),
                 "import h5py, sys\n"
                 "f = h5py.File(sys.argv[1], \"r+\")\n"
                 "d = \"devices/1/recorded/\"\n"
                 "def put(name, row, field, value):\n"
                 "    rows = f[name][:]\n"
                 "    rows[row][field] = value\n"
                 "    f[name][:] = rows\n%s\n",
                 edits[i]);
        assert_true(python(script, path));
        error.text[0] = '\0';
        err = trace_file_read(path, &again, &error);
        if (err != FRAG_CORRUPT || !strstr(error.text, "expected"))
            fail_msg("%s: %s \"%s\"", edits[i], frag_err_text(err), error.text);
    }
    frag_trace_close(t);
}

/* A pipe that nothing writes stands for a file on which an open() would hang.
 */
static void what_leads_out_of_the_file_is_refused(void **state)
{
    static const struct {
        const char *edit, *found;
    } rows[] = {
        {"link(\"devices\", h5py.ExternalLink(\"edited.h5\", \"/devices\"))",
         "a link into another file at \"/devices\""},
        {"link(\"devices\", h5py.ExternalLink(\"fifo\", \"/devices\"))",
         "a link into another file at \"/devices\""},
        {"link(events + \"bytes\", h5py.ExternalLink(\"fifo\", \"/x\"))",
         "a link into another file at \"/devices/0/events/bytes\""},
        {"link(\"strings\", h5py.ExternalLink(\"fifo\", \"/x\"))",
         "a link into another file at \"/strings\""},
        {"f.move(\"devices\", \"moved\")\n"
         "f[\"devices\"] = h5py.SoftLink(\"/moved\")",
         "a symbolic link at \"/devices\""},
        {"virtual(\"edited.h5\")",
         "a virtual dataset at \"/devices/0/events/bytes\""},
        {"virtual(\"fifo\")",
         "a virtual dataset at \"/devices/0/events/bytes\""},
        {"n = f[events + \"bytes\"].shape\n"
         "del f[events + \"bytes\"]\n"
         "f[events].create_dataset(\"bytes\", n, \"u8\", external="
         "[(\"raw\", 0, h5py.h5f.UNLIMITED)])",
         "data in another file at \"/devices/0/events/bytes\""},
        {"del f[events + \"bytes\"]\n"
         "f[events].create_dataset(\"bytes\", (1000,), \"u8\", chunks=(64,))",
         "more than --max-unpacked SIZE allows at "
         "\"/devices/0/events/bytes\""},
    };
    struct frag_trace *t = sample();
    char path[256], fifo[256];

    (void)state;
    need_h5py();
    assert_int_equal(mkfifo(in_folder("fifo", fifo), 0600), 0);
    setenv(SOURCE_MOST_VARIABLE, "4KiB", 1);
    in_folder("edited.h5", path);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_trace *again = NULL;
        char script[1024];
        enum frag_err err;

        TRY(frag_trace_write(t, path, &error));
        snprintf(
            script, sizeof(script),
            "import h5py, sys\n"
            "f = h5py.File(sys.argv[1], \"r+\")\n"
            "events = \"/devices/0/events/\"\n"
            "def link(name, to):\n"
            "    del f[name]\n"
            "    f[name] = to\n"
            "def virtual(source):\n"
            "    n = f[events + \"bytes\"].shape\n"
            "    del f[events + \"bytes\"]\n"
            "    rows = h5py.VirtualLayout(n, \"u8\", (None,))\n"
            "    of = h5py.VirtualSource(source, \"/x\", n, maxshape=(None,))\n"
            "    all = slice(0, h5py.h5s.UNLIMITED)\n"
            "    rows[all] = of[all]\n"
            "    f[events].create_virtual_dataset(\"bytes\", rows)\n"
            "%s\n",
            rows[i].edit);
        assert_true(python(script, path));
        error.text[0] = '\0';
        alarm(60); /* ends an open() that hangs */
        err = trace_file_read(path, &again, &error);
        alarm(0);
        if (err != FRAG_CORRUPT || !strstr(error.text, rows[i].found))
            fail_msg("%s: %s \"%s\"", rows[i].edit, frag_err_text(err),
                     error.text);
    }
    frag_trace_close(t);
    unsetenv(SOURCE_MOST_VARIABLE);
    unlink(fifo);
}

/* Damage. */

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* A file changed in 1 to 4 bytes, or cut short, opens or is refused in words.
 */
static void damaged_files_are_refused_in_words(void **state)
{
    struct frag_trace *t = sample();
    char path[256];
    unsigned char *whole, *bytes;
    size_t size;
    uint64_t seed = 1, refused = 0;
    long was_open;

    (void)state;
    TRY(frag_trace_write(t, in_folder("whole.h5", path), &error));
    frag_trace_close(t);
    whole = slurp(path, &size);
    bytes = malloc(size);
    in_folder("damaged.h5", path);
    for (int i = 0; i < 2000; i++) {
        size_t length = i % 8 ? size : next(&seed) % size;
        enum frag_err err;

        memcpy(bytes, whole, size);
        for (uint64_t k = next(&seed) % 4 + 1; k; k--)
            bytes[next(&seed) % size] = (unsigned char)next(&seed);
        spill(path, bytes, length);
        error.text[0] = '\0';
        was_open = open_identifiers();
        err = trace_file_read(path, &t, &error);
        assert_int_equal(open_identifiers(), was_open);
        if (err == FRAG_OK) {
            frag_trace_close(t);
            continue;
        }
        refused++;
        if ((err != FRAG_CORRUPT && err != FRAG_IO) || !error.text[0])
            fail_msg("mutation %d: %s \"%s\"", i, frag_err_text(err),
                     error.text);
    }
    assert_true(refused > 250);
    free(whole);
    free(bytes);
}

static bool is_mapped(const char *path)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    bool found = false;

    while (maps && fgets(line, sizeof(line), maps))
        found |= strstr(line, path) != NULL;
    if (maps)
        fclose(maps);
    return found;
}

static void a_closed_trace_is_not_mapped(void **state)
{
    struct frag_trace *t = sample();
    char path[256];

    (void)state;
    TRY(frag_trace_write(t, in_folder("mapped.h5", path), &error));
    frag_trace_close(t);
    t = reopened(path);
    assert_true(is_mapped(path));
    frag_trace_close(t);
    assert_false(is_mapped(path));
}

/* frag_trace_check. */

static void each_broken_rule_is_found(void **state)
{
    enum { COUNT = 4 };
    static const struct {
        const char *rule;
        uint8_t op[COUNT];
        uint32_t id[COUNT];
        uint64_t bytes[COUNT];
        frag_stream stream[COUNT];
        frag_pool pool[COUNT];
        uint64_t initial;
        int fault; /* -1: none */
    } rows[] = {
        /* clang-format off */
        {"none", {0, 2, 1, 4}, {0}, {1}, {0}, {0}, 1, -1},
        {"none", {0, 3, 0, 1}, {0, 0, 1, 1}, {1, 0, 2}, {1}, {1}, 0, -1},
        {"op", {0, 5, 1, 4}, {0}, {1}, {0}, {0}, 0, 1},
        {"id", {0, 0, 1, 4}, {0, 2}, {1, 1}, {0}, {0}, 0, 1},
        {"allocated twice", {0, 0, 1, 4}, {1, 1}, {1, 1}, {0}, {0}, 0, 1},
        {"freed twice", {0, 1, 1, 4}, {1, 1, 1}, {1}, {0}, {0}, 0, 2},
        {"freed while free", {1, 0, 1, 4}, {0}, {0, 1}, {0}, {0}, 0, 0},
        {"requested twice", {0, 2, 2, 4}, {0}, {1}, {0}, {0}, 0, 2},
        {"recorded while free", {0, 1, 3, 4}, {0}, {1}, {0}, {0}, 0, 2},
        {"size 0", {0, 1, 0, 4}, {0}, {1, 0, 0}, {0}, {0}, 0, 2},
        {"size 2^63", {0, 1, 0, 4}, {0}, {1, 0, 1ull << 63}, {0}, {0}, 0, 2},
        {"size of a free", {0, 1, 0, 4}, {0}, {1, 1, 1}, {0}, {0}, 0, 1},
        {"stream", {0, 1, 0, 4}, {0}, {1, 0, 1}, {0, 0, 2}, {0}, 0, 2},
        {"recorded stream", {0, 3, 1, 4}, {0}, {1}, {0, 2}, {0}, 0, 1},
        {"pool", {0, 1, 0, 4}, {0}, {1, 0, 1}, {0}, {0, 0, 2}, 0, 2},
        {"initial", {0, 1, 0, 4}, {0}, {1, 0, 1}, {0}, {0}, 2, 1},
        {"too many initial", {0, 1, 0, 4}, {0}, {1, 0, 1}, {0}, {0}, 5, 9},
        /* clang-format on */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct frag_device_trace d = {.slots = 2,
                                            .count = COUNT,
                                            .initial = rows[i].initial,
                                            .op = rows[i].op,
                                            .id = rows[i].id,
                                            .bytes = rows[i].bytes,
                                            .stream = rows[i].stream,
                                            .pool = rows[i].pool,
                                            .stream_count = 2,
                                            .pool_count = 2};
        enum frag_err err = frag_trace_check(&d, "x", &error);
        char words[32];

        assert_int_equal(err, rows[i].fault < 0 ? FRAG_OK : FRAG_CORRUPT);
        snprintf(words, sizeof(words), "event %d:", rows[i].fault);
        if (rows[i].fault >= 0 && rows[i].fault < COUNT &&
            !strstr(error.text, words))
            fail_msg("%s: %s", rows[i].rule, error.text);
    }
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[300];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(the_same_trace_gives_the_same_bytes),
        cmocka_unit_test(a_failed_write_leaves_nothing),
        cmocka_unit_test(a_full_disk_leaves_nothing),
        cmocka_unit_test(five_lines_of_h5py_make_a_trace),
        cmocka_unit_test(columns_that_are_packed_or_named_are_read_too),
        cmocka_unit_test(five_lines_of_h5py_read_a_trace),
        cmocka_unit_test(broken_h5py_traces_are_refused),
        cmocka_unit_test(tables_that_do_not_hold_together_are_refused),
        cmocka_unit_test(what_leads_out_of_the_file_is_refused),
        cmocka_unit_test(damaged_files_are_refused_in_words),
        cmocka_unit_test(a_closed_trace_is_not_mapped),
        cmocka_unit_test(each_broken_rule_is_found),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
