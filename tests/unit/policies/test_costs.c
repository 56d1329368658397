/* test_costs.c - tests the cost model: the built-in costs are the regression of
 * the measured times, and cost files are read and refused correctly. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "policies/device/backend.h"
#include "policies/device/costs.h"
#include "sim/arena/arena.h"

#define DATA FRAG_SOURCE_DIR "/real/data/nvidia-"

/* The first line of a file of costs: "# device NVIDIA H200, CUDA driver ...".
 */
static void read_device(const char *path, char *text, int room)
{
    FILE *in = fopen(path, "r");

    assert_non_null(in);
    assert_non_null(fgets(text, room, in));
    fclose(in);
}

static void the_measured_costs_are_the_files(void **state)
{
    glob_t files;
    size_t count = 0;

    (void)state;
    assert_string_equal(frag_measured_costs[0].name, "h200");
    for (const struct frag_measured_costs *m = frag_measured_costs; m->name;
         m++, count++) {
        struct frag_costs costs;
        char path[512], text[256];

        snprintf(path, sizeof(path), DATA "%s-costs.csv", m->name);
        assert_int_equal(frag_costs_read(path, &costs, NULL), FRAG_OK);
        assert_memory_equal(&costs, m->costs, sizeof(costs));
        read_device(path, text, sizeof(text));
        assert_ptr_equal(frag_costs_of_device(text + strlen("# device ")), m);
        assert_ptr_equal(frag_costs_named(m->name), m);
    }
    assert_null(frag_costs_named("NVIDIA H200"));
    assert_null(frag_costs_of_device("NVIDIA H200 NVL, CUDA"));
    assert_null(frag_costs_of_device("NVIDIA"));
    assert_int_equal(glob(DATA "*-costs.csv", 0, NULL, &files), 0);
    assert_int_equal(files.gl_pathc, count);
    globfree(&files);
}

/* ---- the model and what was measured ---- */

enum { MAX_SIZES = 256 };

/* The time of a call of one size: the least of its rounds except the warm-up,
 * since a disturbance can only add time. */
struct least {
    int call;
    unsigned long long bytes;
    double ns;
};

static int call_named(const char *name)
{
    int call = 0;

    while (strcmp(frag_driver_call_names[call], name))
        call++;
    return call;
}

static void note(struct least *sizes, size_t *count, struct least one)
{
    size_t i = 0;

    while (i < *count &&
           (sizes[i].call != one.call || sizes[i].bytes != one.bytes))
        i++;
    assert_true(i < MAX_SIZES);
    if (i == *count)
        sizes[(*count)++] = one;
    else if (one.ns < sizes[i].ns)
        sizes[i].ns = one.ns;
}

/* Opens the measured times (calls) or the costs of that device. */
static FILE *open_data(const struct frag_measured_costs *m, const char *what)
{
    char path[512];
    FILE *in;

    snprintf(path, sizeof(path), DATA "%s-%s.csv", m->name, what);
    in = fopen(path, "r");
    assert_non_null(in);
    return in;
}

static size_t read_calls(const struct frag_measured_costs *m,
                         struct least *sizes)
{
    FILE *in = open_data(m, "calls");
    char text[256], name[32];
    size_t count = 0;

    while (fgets(text, sizeof(text), in)) {
        struct least one;
        long round;

        if (sscanf(text, "%31[^,],%llu,%ld,%lf", name, &one.bytes, &round,
                   &one.ns) != 4 ||
            !round)
            continue;
        one.call = call_named(name);
        note(sizes, &count, one);
    }
    fclose(in);
    return count;
}

/* The largest deviation from the line of each call, as stated in the file. */
static void read_worst(const struct frag_measured_costs *m,
                       double worst[FRAG_DRIVER_CALL_COUNT])
{
    FILE *in = open_data(m, "costs");
    char text[256], name[32];
    unsigned count = 0;
    double most;

    while (fgets(text, sizeof(text), in))
        if (sscanf(text, "%31[^,],%*f,%*f,%*f,%lf", name, &most) == 2) {
            worst[call_named(name)] = most;
            count++;
        }
    fclose(in);
    assert_int_equal(count, FRAG_DRIVER_CALL_COUNT);
}

/* For each call and size, the model deviates by at most the value in the file,
 * and at one size by exactly that value. The file has three decimals, and a
 * cost has whole nanoseconds. */
static void check_worst(const struct frag_measured_costs *m)
{
    double worst[FRAG_DRIVER_CALL_COUNT], found[FRAG_DRIVER_CALL_COUNT] = {0};
    struct least sizes[MAX_SIZES];
    const size_t count = read_calls(m, sizes);

    read_worst(m, worst);
    assert_int_equal(count, 154);
    for (size_t i = 0; i < count; i++) {
        const enum frag_driver_call call = (enum frag_driver_call)sizes[i].call;
        const double ratio =
            (double)frag_cost_ns(m->costs, call, sizes[i].bytes) / sizes[i].ns;
        const double off = ratio > 1 ? ratio - 1 : 1 - ratio;

        found[call] = off > found[call] ? off : found[call];
    }
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        if (found[i] < worst[i] - 0.001 || found[i] > worst[i] + 0.001)
            fail_msg("%s of %s is off by %.4f, and its file says %.3f",
                     frag_driver_call_names[i], m->device, found[i], worst[i]);
}

static void the_model_is_as_far_off_as_its_file_says(void **state)
{
    (void)state;
    for (const struct frag_measured_costs *m = frag_measured_costs; m->name;
         m++)
        check_worst(m);
}

static void time_passes_by_what_calls_cost(void **state)
{
    struct frag_costs costs = frag_costs_h200;
    struct frag_arena_options opts = {
        .capacity = FRAG_UNLIMITED, .rule = FRAG_RULE_DRIVER, .costs = &costs};
    struct frag_backend *mem;
    frag_addr addr;

    (void)state;
    costs.call[FRAG_DRIVER_SEGMENT_ALLOC] = (struct frag_cost){1000, 10};
    mem = frag_arena_open(&opts);
    assert_non_null(mem);
    assert_int_equal(mem->ops->now(mem), 0);
    assert_int_equal(mem->ops->segment_alloc(mem, 20 * FRAG_MIB, &addr),
                     FRAG_OK);
    assert_int_equal(mem->ops->now(mem), 1200);
    assert_int_equal(mem->ops->segment_free(mem, addr, 20 * FRAG_MIB), FRAG_OK);
    frag_arena_close(mem);
}

static void a_small_segment_costs_what_small_ones_do(void **state)
{
    struct frag_costs costs = frag_costs_h200;
    struct frag_arena_options opts = {
        .capacity = FRAG_UNLIMITED, .rule = FRAG_RULE_DRIVER, .costs = &costs};
    struct frag_backend *mem;
    frag_addr addr;

    (void)state;
    costs.call[FRAG_DRIVER_SEGMENT_ALLOC] = (struct frag_cost){1000, 0};
    costs.call[FRAG_DRIVER_SEGMENT_FREE] = (struct frag_cost){2000, 0};
    costs.call[FRAG_DRIVER_SMALL_ALLOC] = (struct frag_cost){3, 0};
    costs.call[FRAG_DRIVER_SMALL_FREE] = (struct frag_cost){40, 0};
    mem = frag_arena_open(&opts);
    assert_int_equal(mem->ops->segment_alloc(mem, FRAG_MIB - 1, &addr),
                     FRAG_OK);
    assert_int_equal(mem->ops->now(mem), 3);
    assert_int_equal(mem->ops->segment_free(mem, addr, FRAG_MIB - 1), FRAG_OK);
    assert_int_equal(mem->ops->now(mem), 43);
    assert_int_equal(mem->ops->segment_alloc(mem, FRAG_MIB, &addr), FRAG_OK);
    assert_int_equal(mem->ops->now(mem), 1043);
    assert_int_equal(mem->ops->segment_free(mem, addr, FRAG_MIB), FRAG_OK);
    assert_int_equal(mem->ops->now(mem), 3043);
    frag_arena_close(mem);
}

static void each_map_of_an_unmap_has_its_price(void **state)
{
    struct frag_costs costs = {.call = {{0, 0}}};
    struct frag_arena_options opts = {
        .capacity = FRAG_UNLIMITED, .rule = FRAG_RULE_DRIVER, .costs = &costs};
    struct frag_backend *mem;
    frag_addr addr;
    frag_phys phys;

    (void)state;
    costs.call[FRAG_DRIVER_UNMAP] = (struct frag_cost){100, 1};
    mem = frag_arena_open(&opts);
    assert_int_equal(mem->ops->va_reserve(mem, 6 * FRAG_MIB, &addr), FRAG_OK);
    for (frag_size at = 0; at < 6 * FRAG_MIB; at += 2 * FRAG_MIB) {
        assert_int_equal(mem->ops->phys_create(mem, 2 * FRAG_MIB, &phys),
                         FRAG_OK);
        assert_int_equal(mem->ops->map(mem, addr + at, 2 * FRAG_MIB, phys),
                         FRAG_OK);
        assert_int_equal(mem->ops->phys_release(mem, phys, 2 * FRAG_MIB),
                         FRAG_OK);
    }
    assert_int_equal(mem->ops->unmap(mem, addr, 6 * FRAG_MIB), FRAG_OK);
    assert_int_equal(mem->ops->now(mem), 3 * 102);
    assert_int_equal(mem->ops->va_free(mem, addr, 6 * FRAG_MIB), FRAG_OK);
    frag_arena_close(mem);
}

static void refused(const char *content, const char *words)
{
    char path[] = "/tmp/fragsim-costs-XXXXXX";
    struct frag_costs costs = {.call = {{7, 7}}};
    struct frag_error e = {""};
    int file = mkstemp(path);

    assert_true(file >= 0);
    assert_int_equal(write(file, content, strlen(content)), strlen(content));
    close(file);
    assert_int_equal(frag_costs_read(path, &costs, &e), FRAG_CORRUPT);
    assert_non_null(strstr(e.text, words));
    assert_true(costs.call[0].fixed_ns == 7);
    unlink(path);
}

static void a_broken_file_is_refused_with_its_line(void **state)
{
    (void)state;
    refused("map,1,2\n", ":1: expected the header");
    refused("call,fixed_ns,ns_per_mib\nmap,1\n", ":2: expected call");
    refused("call,fixed_ns,ns_per_mib\nmalloc,1,2\n",
            "name of a driver call, found \"malloc\"");
    refused("call,fixed_ns,ns_per_mib\nmap,-1,2\n", "from 0 to");
    refused("call,fixed_ns,ns_per_mib\nmap,nan,2\n", "from 0 to");
    refused("call,fixed_ns,ns_per_mib\nmap,1e12,2\n", "from 0 to");
    refused("call,fixed_ns,ns_per_mib\nmap,1,-2\n", "from 0 to");
    refused("call,fixed_ns,ns_per_mib\nmap,1,inf\n", "from 0 to");
    refused("call,fixed_ns,ns_per_mib\nmap,1,2x\n", ":2: expected call");
    refused("call,fixed_ns,ns_per_mib\n#\n\nmap,1,2,more\r\nmap,1,2\n",
            ":5: expected one row for each call, found a second row for map");
    refused("call,fixed_ns,ns_per_mibs\n", ":1: expected the header");
    refused("", "no row for");
    refused("call,fixed_ns,ns_per_mib\nmap,1,2\n", "no row for");
}

/* A comment of so many bytes. */
static void of_length(size_t length, const char *words)
{
    char text[400] = "call,fixed_ns,ns_per_mib\n#";

    memset(text + strlen(text), 'x', length - 1);
    refused(strcat(text, "\n"), words);
}

static void a_line_that_is_too_long_is_refused(void **state)
{
    struct frag_costs costs;

    (void)state;
    of_length(254, "no row for");
    of_length(255, ":2: expected a line of at most 254 bytes");
    assert_int_equal(frag_costs_read("/nonexistent", &costs, NULL), FRAG_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_measured_costs_are_the_files),
        cmocka_unit_test(the_model_is_as_far_off_as_its_file_says),
        cmocka_unit_test(time_passes_by_what_calls_cost),
        cmocka_unit_test(a_small_segment_costs_what_small_ones_do),
        cmocka_unit_test(each_map_of_an_unmap_has_its_price),
        cmocka_unit_test(a_broken_file_is_refused_with_its_line),
        cmocka_unit_test(a_line_that_is_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
