/* test_results.c - tests result files: the written values are the measured
 * values. They are read back by the reader, and by h5dump, which shares no code
 * with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hdf5.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/results/row.h"

enum { POINTS = 3000 };

static const struct frag_provenance maker = {.version = "0.1.0",
                                             .commit = "0123abc",
                                             .command =
                                                 "fragsim replay \"a b.csv\"",
                                             .started = 1700000000};

static const struct frag_policy policy = {.name = "first_fit",
                                          .source = "Knuth"};
static const char *const notes[] = {"sizes are uncertain", "one more"};
static const struct frag_run_identity identity = {
    .trace = {.name = "a b",
              .path = "folder/a b.csv",
              .format = "csv",
              .sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca49599"
                        "1b7852b855",
              .file_bytes = 77,
              .note_count = 2,
              .notes = notes,
              .edit = "pad:bytes=3",
              .device = 3,
              .events = 4242},
    .policy = "first_fit:segment=20MiB,x=\"1\"",
    .policy_used = &policy,
    .bound = {.bytes = FRAG_UNLIMITED},
    .capacity = "1.05x",
    .total = FRAG_GIB,
    .backend = "arena",
    .seed = 7,
    .checked = true,
};

static struct frag_point points[POINTS];
static struct frag_oom ooms[2];
static struct frag_segment_row segments[1];
static char folder[] = "/tmp/frag_results_XXXXXX";
static char path[64];

/* Every count differs from every other, so that a swap would show. */
static struct frag_run measured(void)
{
    struct frag_run run = {.point_count = POINTS,
                           .points = points,
                           .oom_count = 2,
                           .ooms = ooms,
                           .segment_count = 1,
                           .segments = segments,
                           .params = "segment=20MiB,limit=1GiB"};
    struct frag_summary *s = &run.summary;

    s->events = 1001;
    s->peak_requested = 1002;
    s->peak_allocated = 1003;
    s->peak_active = 1004;
    s->peak_reserved = 1005;
    s->end_reserved = 1006;
    s->peak_inactive_split = 1007;
    s->fragmentation_ratio = 0.1;
    s->fragmentation_at_peak = 1.0 / 3;
    s->fragmentation_mean = NAN;
    s->overhead = 1.25;
    s->num_ooms = 2;
    s->first_oom_event = FRAG_NEVER;
    for (uint64_t i = 0; i < FRAG_CALL_COUNT; i++)
        s->calls[i] = 1100 + i;
    s->peak_reserved_event = 1200;
    s->at_peak = (struct frag_breakdown){1, 2, 3, 4, 5, 6, 7};
    for (uint64_t i = 0; i < POINTS; i++)
        points[i] = (struct frag_point){
            .event = i * 2, .reserved = i * FRAG_MIB, .largest_free = i};
    ooms[0] = (struct frag_oom){.event = 17, .bytes = 512, .stream = 9};
    ooms[1] = (struct frag_oom){.event = 23, .bytes = 1024, .pool = 4};
    segments[0] =
        (struct frag_segment_row){UINT64_MAX - 511, 512, 256, 42, 1, 0};
    return run;
}

static enum frag_err write_file(const char *to, const struct frag_run *run,
                                int times, struct frag_error *e)
{
    struct frag_results *r;

    FRAG_TRY(frag_results_open(to, &maker, &r, e));
    for (int i = 0; i < times; i++) {
        enum frag_err err = frag_results_add(r, &identity, run, e);

        if (err != FRAG_OK) {
            frag_results_abort(r);
            return err;
        }
    }
    return frag_results_commit(r, 1700000060, e);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/r.h5", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails if anything else was left */
}

static char *read_file(const char *from, size_t *size)
{
    FILE *in = fopen(from, "rb");
    char *bytes = malloc(1 << 24);

    assert_non_null(in);
    assert_non_null(bytes);
    *size = fread(bytes, 1, (1 << 24) - 1, in);
    bytes[*size] = '\0';
    fclose(in);
    return bytes;
}

static void a_file_reads_back_as_it_was_measured(void **state)
{
    struct frag_run run = measured();
    struct frag_loaded loaded;
    struct frag_error e;

    (void)state;
    assert_int_equal(write_file(path, &run, 2, &e), FRAG_OK);
    assert_int_equal(frag_results_load(path, &loaded, &e), FRAG_OK);
    assert_int_equal(loaded.count, 2);
    for (int i = 0; i < 2; i++) {
        const struct frag_loaded_run *r = &loaded.runs[i];

        assert_string_equal(r->id.trace.name, "a b");
        assert_string_equal(r->id.policy, identity.policy);
        assert_string_equal(r->run.params, run.params);
        assert_int_equal(r->id.trace.device, 3);
        assert_true(r->id.bound.bytes == FRAG_UNLIMITED);
        assert_true(r->id.checked && !r->id.stopped_at_oom);
        assert_string_equal(r->id.trace.edit, "pad:bytes=3");
        assert_true(isnan(r->run.summary.fragmentation_mean));
        run.summary.fragmentation_mean = r->run.summary.fragmentation_mean;
        assert_memory_equal(&r->run.summary, &run.summary, sizeof(run.summary));
        assert_int_equal(r->run.point_count, POINTS);
        assert_memory_equal(r->run.points, points, sizeof(points));
        assert_int_equal(r->run.oom_count, 2);
        assert_memory_equal(r->run.ooms, ooms, sizeof(ooms));
    }
    frag_results_unload(&loaded);
}

static void an_optional_number_reads_back(void **state)
{
    static const uint64_t numbers[] = {0,          1,          (1ull << 53) - 1,
                                       1ull << 53, 1ull << 63, FRAG_NEVER};
    enum { COUNT = sizeof(numbers) / sizeof(*numbers) };
    struct frag_results *r;
    struct frag_loaded loaded;
    struct frag_error e;

    (void)state;
    assert_int_equal(frag_results_open(path, &maker, &r, &e), FRAG_OK);
    for (size_t i = 0; i < COUNT; i++) {
        const struct frag_run run = {.summary.first_oom_event = numbers[i],
                                     .params = ""};
        struct frag_run_identity id = identity;

        id.bound.bytes = numbers[i];
        assert_int_equal(frag_results_add(r, &id, &run, &e), FRAG_OK);
    }
    assert_int_equal(frag_results_commit(r, 0, &e), FRAG_OK);
    assert_int_equal(frag_results_load(path, &loaded, &e), FRAG_OK);
    assert_int_equal(loaded.count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(loaded.runs[i].id.bound.bytes == numbers[i]);
        assert_true(loaded.runs[i].run.summary.first_oom_event == numbers[i]);
    }
    frag_results_unload(&loaded);
}

static void only_a_count_or_none_is_an_optional_number(void **state)
{
    static const double none[] = {NAN, -NAN, -1};
    static const double wrong[] = {-2, 0.5, -0.5, 0x1p64, INFINITY, -INFINITY};
    uint64_t n = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_false(frag_optional_count(wrong[i], &n));
    assert_true(n == 7);
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        n = 7;
        assert_true(frag_optional_count(none[i], &n));
        assert_true(n == UINT64_MAX);
    }
}

static void equal_runs_make_equal_bytes(void **state)
{
    const struct frag_run run = measured();
    struct frag_error e;
    size_t first_size, second_size;
    char *first, *second;

    (void)state;
    assert_int_equal(write_file(path, &run, 3, &e), FRAG_OK);
    first = read_file(path, &first_size);
    sleep(1); /* a time anywhere in the file would now differ */
    assert_int_equal(write_file(path, &run, 3, &e), FRAG_OK);
    second = read_file(path, &second_size);
    assert_int_equal(first_size, second_size);
    assert_memory_equal(first, second, first_size);
    free(first);
    free(second);
}

/* Text that h5dump prints for one object of the file. */
static char *dump(const char *option, const char *object)
{
    char command[256], *text = calloc(1, 1 << 20);
    FILE *in;

    snprintf(command, sizeof(command), "h5dump %s '%s' '%s' 2>&1", option,
             object, path);
    in = popen(command, "r");
    assert_non_null(in);
    assert_non_null(text);
    (void)!fread(text, 1, (1 << 20) - 1, in);
    if (pclose(in) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void h5dump_reads_the_same_numbers(void **state)
{
    static const struct {
        const char *option, *object, *expected;
    } rows[] = {
        {"-d", "/summary", "first_fit:segment=20MiB,x="},
        {"-d", "/summary", "STRSIZE 4;"}, /* "a b" and its null */
        {"-d", "/summary", "STRPAD H5T_STR_NULLTERM;"},
        {"-d", "/summary", "\"1.05x\""},
        {"-a", "/runs/0/trace", "(0): \"a b\""},
        {"-a", "/runs/0/capacity", "(0): \"1.05x\""},
        {"-d", "/summary", "1005,"},
        {"-d", "/summary", "H5T_STD_I64LE \"num_ooms\""},
        {"-d", "/summary", "H5T_IEEE_F64LE \"first_oom_event\""},
        {"-d", "/summary", "H5T_IEEE_F64LE \"capacity_bytes\""},
        {"-a", "/summary/units", "\"byte\""},
        {"-a", "/summary/formula", "1 - peak_allocated_bytes"},
        {"-d", "/runs/1/oom/request", "(0): 512, 1024"},
        {"-a", "/runs/1/oom/request/units", "\"byte\""},
        {"-d", "/runs/0/segments/address", "18446744073709551104"},
        {"-a", "/runs/0/series/event/CLASS", "DIMENSION_SCALE"},
        {"-a", "/runs/0/series/reserved/DIMENSION_LIST", "DATASET"},
        {"-p -d", "/runs/0/series/reserved", "DEFLATE"},
        {"-p -d", "/runs/0/oom/event", "COMPACT"},
        {"-a", "/runs/0/trace_sha256", "e3b0c442"},
        {"-a", "/runs/0/trace_notes", "sizes are uncertain"},
        {"-a", "/runs/0/edit", "pad:bytes=3"},
        {"-a", "/runs/0/capacity_bytes", "(0): nan"},
        {"-a", "/runs/0/checked", "(0): 1"},
        {"-a", "/history", "2023-11-14T22:13:20Z: fragsim replay"},
        {"-a", "/ended", "2023-11-14T22:14:20Z"},
        {"-a", "/schema_version", FRAG_RESULTS_SCHEMA},
        {"-a", "/complete", "(0): 1"},
    };
    const struct frag_run run = measured();
    struct frag_error e;
    char *text;

    (void)state;
    if (system("h5dump --version >/dev/null 2>&1") != 0) {
        print_message("h5dump is not there: skipped\n");
        skip();
    }
    assert_int_equal(write_file(path, &run, 2, &e), FRAG_OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        text = dump(rows[i].option, rows[i].object);
        if (!text || !strstr(text, rows[i].expected))
            fail_msg("h5dump %s %s has no \"%s\":\n%s", rows[i].option,
                     rows[i].object, rows[i].expected, text ? text : "");
        free(text);
    }
}

static void an_empty_file_is_a_good_file(void **state)
{
    struct frag_loaded loaded;
    struct frag_error e;

    (void)state;
    assert_int_equal(write_file(path, NULL, 0, &e), FRAG_OK);
    assert_int_equal(frag_results_load(path, &loaded, &e), FRAG_OK);
    assert_int_equal(loaded.count, 0);
    frag_results_unload(&loaded);
}

static void a_run_without_notes_points_or_ooms_is_kept(void **state)
{
    struct frag_run_identity id = identity;
    const struct frag_run run = {.summary = {.events = 5}, .params = ""};
    struct frag_results *r;
    struct frag_loaded loaded;
    struct frag_error e;

    (void)state;
    id.trace = (struct frag_trace_identity){
        .name = "a b", .path = "folder/a b.csv", .device = 3, .events = 4242};
    assert_int_equal(frag_results_open(path, &maker, &r, &e), FRAG_OK);
    assert_int_equal(frag_results_add(r, &id, &run, &e), FRAG_OK);
    assert_int_equal(frag_results_commit(r, 0, &e), FRAG_OK);
    assert_int_equal(frag_results_load(path, &loaded, &e), FRAG_OK);
    assert_int_equal(loaded.count, 1);
    assert_int_equal(loaded.runs[0].run.summary.events, 5);
    assert_int_equal(loaded.runs[0].run.point_count, 0);
    frag_results_unload(&loaded);
}

static void an_aborted_file_leaves_the_old_one(void **state)
{
    const struct frag_run run = measured();
    struct frag_results *r;
    struct frag_error e;
    char *before, *after;
    size_t size, now;

    (void)state;
    assert_int_equal(write_file(path, &run, 1, &e), FRAG_OK);
    before = read_file(path, &size);
    assert_int_equal(frag_results_open(path, &maker, &r, &e), FRAG_OK);
    assert_int_equal(frag_results_add(r, &identity, &run, &e), FRAG_OK);
    frag_results_abort(r);
    after = read_file(path, &now);
    assert_int_equal(size, now);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    struct frag_results *r = NULL;
    struct frag_error e;

    (void)state;
    assert_int_equal(frag_results_open("/nowhere/r.h5", &maker, &r, &e),
                     FRAG_IO);
    assert_null(r);
    assert_non_null(strstr(e.text, "/nowhere/r.h5"));
    assert_non_null(strstr(e.text, strerror(ENOENT)));
}

/* A limit on the size of files is a disk that is full, for one process. */
static void a_full_disk_leaves_nothing_and_says_so(void **state)
{
    const struct rlimit small = {8192, 8192};
    const struct frag_run run = measured();
    int status;
    pid_t child;

    (void)state;
    unlink(path);
    child = fork();
    if (child == 0) {
        struct frag_error e;

        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &small);
        if (write_file(path, &run, 1, &e) != FRAG_IO)
            _exit(1);
        if (!strstr(e.text, strerror(EFBIG)) || !strstr(e.text, path))
            _exit(2);
        exit(0); /* runs what HDF5 does at exit */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(access(path, F_OK), -1);
}

static void what_is_no_result_file_is_refused(void **state)
{
    struct frag_loaded loaded;
    struct frag_error e;
    FILE *out;

    (void)state;
    assert_int_equal(frag_results_load("/nowhere.h5", &loaded, &e), FRAG_IO);
    out = fopen(path, "w");
    assert_non_null(out);
    fputs("op,id,bytes,stream\n", out);
    fclose(out);
    assert_int_equal(frag_results_load(path, &loaded, &e), FRAG_CORRUPT);
    assert_non_null(strstr(e.text, "no HDF5"));
}

/* A pipe that nothing writes stands for a file on which an open() would hang.
 */
static void what_leads_out_of_the_file_is_refused(void **state)
{
    static const char *const names[] = {"/summary", "/runs", "/runs/0",
                                        "/runs/0/series",
                                        "/runs/0/segments/size"};
    const struct frag_run run = measured();
    char fifo[80], found[120];

    (void)state;
    snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    for (size_t i = 0; i < 2 * sizeof(names) / sizeof(*names); i++) {
        const char *name = names[i / 2];
        struct frag_loaded loaded;
        struct frag_error e = {""};
        hid_t file;

        assert_int_equal(write_file(path, &run, 1, &e), FRAG_OK);
        file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        assert_true(
            H5Lmove(file, name, file, "/moved", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        if (i % 2)
            H5Lcreate_external("fifo", "/x", file, name, H5P_DEFAULT,
                               H5P_DEFAULT);
        else
            H5Lcreate_soft("/moved", file, name, H5P_DEFAULT, H5P_DEFAULT);
        H5Fclose(file);
        snprintf(found, sizeof(found), "a %s at \"%s\"",
                 i % 2 ? "link into another file" : "symbolic link", name);
        alarm(60); /* ends an open() that hangs */
        assert_int_equal(frag_results_load(path, &loaded, &e), FRAG_CORRUPT);
        alarm(0);
        if (!strstr(e.text, found))
            fail_msg("%s: \"%s\"", found, e.text);
    }
    unlink(fifo);
}

static char *as_text(bool json, const struct frag_run *run)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const struct frag_result_row row = frag_result_row(&identity, run);
    struct frag_json j;

    assert_non_null(out);
    if (json) {
        frag_results_json_open(&j, out, &maker);
        frag_object_json(&j, NULL, frag_summary_columns, &row);
    } else {
        frag_header_csv(out, frag_summary_columns);
        frag_row_csv(out, frag_summary_columns, &row);
    }
    fclose(out);
    return text;
}

static void json_has_nulls_and_escapes(void **state)
{
    static const char *const expected[] = {
        "\"schema_version\": \"" FRAG_JSON_SCHEMA "\"",
        "\"tool\": \"fragsim 0.1.0 (0123abc)\"",
        "\"command\": \"fragsim replay \\\"a b.csv\\\"\"",
        "\"policy\": \"first_fit:segment=20MiB,x=\\\"1\\\"\"",
        "\"capacity_bytes\": null",
        "\"first_oom_event\": null",
        "\"fragmentation_mean\": null",
        "\"fragmentation_ratio\": 0.1,",
        "\"fragmentation_at_peak\": 0.3333333333333333,",
        "\"peak_reserved_bytes\": 1005,",
        "\"num_map\": 1102,",
        "\"at_peak_unusable_bytes\": 7,",
    };
    const struct frag_run run = measured();
    char *text = as_text(true, &run);

    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
        if (!strstr(text, expected[i]))
            fail_msg("no %s in %s", expected[i], text);
    free(text);
}

static void csv_quotes_what_needs_it(void **state)
{
    const struct frag_run run = measured();
    char *text = as_text(false, &run);
    const char *row = strchr(text, '\n') + 1;
    const char expected[] =
        "a "
        "b,3,\"first_fit:segment=20MiB,x=\"\"1\"\"\",\"segment=20MiB,limit="
        "1GiB\",,arena,"
        "1001,1002,1003,1004,1005,1006,1007,0.1,0.3333333333333333,,1.25,2,,";

    (void)state;
    assert_memory_equal(text, "trace,device,policy,params,capacity_bytes,", 42);
    if (strncmp(row, expected, strlen(expected)) != 0)
        fail_msg("%s", row);
    free(text);
}

/* A row of an answer, with each kind that the tables of results lack. */
struct answer_row {
    char name[8], none[8], *unset;
    enum frag_bound_kind kind;
    bool is_on;
    uint16_t pool;
    uint32_t device;
    uint64_t zero, ns;
    struct frag_bound bound;
};

static void an_answer_is_written_by_its_types(void **state)
{
    typedef struct answer_row ROW;
    static const char *const words[] = {"off", "on"};
    static const struct frag_column columns[] = {
        TEXT("name", name),
        FILLED("none", none),
        TEXT("unset", unset),
        WORD("kind", kind, frag_bound_words),
        WORD("word", is_on, words),
        NUMBER("is", is_on),
        NOT("not", is_on),
        NUMBER("pool", pool),
        COLUMN(FRAG_COLUMN_DEVICE, "device", device),
        POSITIVE("zero", zero),
        BOUND(bound),
        NS("s", ns),
        END};
    const struct answer_row row = {
        .name = "a,b",
        .kind = FRAG_BOUND_LIMIT,
        .is_on = true,
        .pool = 7,
        .device = UINT32_MAX,
        .ns = 1500000000,
        .bound = {.bytes = 9, .kind = FRAG_BOUND_LIMIT}};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    frag_object_json(&(struct frag_json){.out = out}, NULL, columns, &row);
    fputc('\n', out);
    frag_row_csv(out, columns, &row);
    fclose(out);
    assert_string_equal(
        text, "{\"name\": \"a,b\", \"none\": null, \"unset\": null, "
              "\"kind\": \"process limit\", \"word\": \"on\", \"is\": true, "
              "\"not\": false, \"pool\": 7, \"device\": null, \"zero\": null, "
              "\"capacity_bytes\": null, \"process_limit_bytes\": 9, "
              "\"s\": 1.500000000}\n"
              "\"a,b\",,,process limit,on,1,0,7,,,,9,1500000000\n");
    free(text);
}

/* The keys that scripts rely on, in their order. */
static void the_promised_columns_come_first(void **state)
{
    static const char *const promised[] = {
        "trace",
        "device",
        "policy",
        "params",
        "capacity_bytes",
        "backend",
        "events",
        "peak_requested_bytes",
        "peak_allocated_bytes",
        "peak_active_bytes",
        "peak_reserved_bytes",
        "end_reserved_bytes",
        "peak_inactive_split_bytes",
        "fragmentation_ratio",
        "fragmentation_at_peak",
        "fragmentation_mean",
        "overhead",
        "num_ooms",
        "first_oom_event",
        "num_alloc_retries",
        "num_segment_alloc",
        "num_segment_free",
        "num_map",
        "num_unmap",
        "peak_segments",
        "bytes_moved",
        "modelled_device_seconds",
        "ns_per_event",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(promised) / sizeof(*promised); i++)
        assert_string_equal(frag_summary_columns[i].name, promised[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_promised_columns_come_first),
        cmocka_unit_test(a_file_reads_back_as_it_was_measured),
        cmocka_unit_test(an_optional_number_reads_back),
        cmocka_unit_test(only_a_count_or_none_is_an_optional_number),
        cmocka_unit_test(equal_runs_make_equal_bytes),
        cmocka_unit_test(h5dump_reads_the_same_numbers),
        cmocka_unit_test(an_empty_file_is_a_good_file),
        cmocka_unit_test(a_run_without_notes_points_or_ooms_is_kept),
        cmocka_unit_test(an_aborted_file_leaves_the_old_one),
        cmocka_unit_test(a_folder_that_is_not_there_is_named),
        cmocka_unit_test(a_full_disk_leaves_nothing_and_says_so),
        cmocka_unit_test(what_is_no_result_file_is_refused),
        cmocka_unit_test(what_leads_out_of_the_file_is_refused),
        cmocka_unit_test(json_has_nulls_and_escapes),
        cmocka_unit_test(csv_quotes_what_needs_it),
        cmocka_unit_test(an_answer_is_written_by_its_types),
    };

    return cmocka_run_group_tests_name("results", tests, make_folder,
                                       remove_folder);
}
