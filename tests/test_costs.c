/* The cost model: what is built in is what was fitted to what was measured. */
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

#define DATA FRAG_SOURCE_DIR "/real/data/nvidia-h200-costs.csv"

static void the_default_is_the_fitted_file(void **state)
{
    struct frag_costs costs;

    (void)state;
    assert_int_equal(frag_costs_read(DATA, &costs, NULL), FRAG_OK);
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++) {
        assert_true(costs.call[i].fixed_ns == frag_costs_h200.call[i].fixed_ns);
        assert_true(costs.call[i].ns_per_mib ==
                    frag_costs_h200.call[i].ns_per_mib);
    }
}

/* What calls took in a calibration's rounds: what disturbs a call adds to it,
 * so the model may be half of most, and is a third more of few. */
static void the_model_is_near_the_measured_calls(void **state)
{
    FILE *in = fopen(FRAG_SOURCE_DIR "/real/data/nvidia-h200-calls.csv", "r");
    unsigned near = 0, all = 0;
    char text[256], name[32];

    (void)state;
    assert_non_null(in);
    while (fgets(text, sizeof(text), in)) {
        unsigned long long bytes;
        long round;
        double ns, ratio;
        int call = 0;

        if (sscanf(text, "%31[^,],%llu,%ld,%lf", name, &bytes, &round, &ns) !=
                4 ||
            !round)
            continue;
        while (strcmp(frag_driver_call_names[call], name))
            call++;
        ratio = (double)frag_cost_ns(&frag_costs_h200,
                                     (enum frag_driver_call)call, bytes) /
                ns;
        near += ratio > 0.5 && ratio < 1.5;
        all++;
    }
    fclose(in);
    assert_true(all > 1000);
    assert_true(near > all / 4 * 3);
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
    refused("call,fixed_ns,ns_per_mib\nmalloc,1,2\n", "no driver call");
    refused("call,fixed_ns,ns_per_mib\nmap,-1,2\n", "from 0 to");
    refused("call,fixed_ns,ns_per_mib\nmap,nan,2\n", "from 0 to");
    refused("call,fixed_ns,ns_per_mib\nmap,1e12,2\n", "from 0 to");
    refused("call,fixed_ns,ns_per_mib\nmap,1,-2\n", "from 0 to");
    refused("call,fixed_ns,ns_per_mib\nmap,1,inf\n", "from 0 to");
    refused("call,fixed_ns,ns_per_mib\nmap,1,2x\n", ":2: expected call");
    refused("call,fixed_ns,ns_per_mib\n#\n\nmap,1,2,more\r\nmap,1,2\n",
            ":5: a second row for map");
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
        cmocka_unit_test(the_default_is_the_fitted_file),
        cmocka_unit_test(the_model_is_near_the_measured_calls),
        cmocka_unit_test(time_passes_by_what_calls_cost),
        cmocka_unit_test(a_small_segment_costs_what_small_ones_do),
        cmocka_unit_test(each_map_of_an_unmap_has_its_price),
        cmocka_unit_test(a_broken_file_is_refused_with_its_line),
        cmocka_unit_test(a_line_that_is_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
