/* test_meter.c - tests that the meter counts as the device does: memory that is
 * mapped twice counts once, and every address is found in the segment that
 * contains it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/arena/arena.h"
#include "sim/meter/meter.h"

#define MIB FRAG_MIB

static void open_meter(struct meter *m, enum frag_address_rule rule,
                       frag_size capacity)
{
    struct frag_backend *arena = frag_arena_open(
        &(struct frag_arena_options){.capacity = capacity, .rule = rule});

    assert_non_null(arena);
    assert_int_equal(meter_open(m, arena, NULL), FRAG_OK);
}

static void close_meter(struct meter *m)
{
    struct frag_backend *arena = m->relay.under;

    meter_close(m);
    assert_int_equal(frag_arena_used(arena), 0);
    assert_int_equal(frag_arena_reserved_va(arena), 0);
    frag_arena_close(arena);
}

static void memory_mapped_twice_counts_once_until_it_is_gone(void **state)
{
    struct meter m;
    struct frag_backend *mem;
    const struct frag_backend_ops *ops;
    frag_addr va = 0;
    frag_phys phys = 0;

    (void)state;
    open_meter(&m, FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    mem = &m.base;
    ops = mem->ops;
    assert_int_equal(ops->va_reserve(mem, 32 * MIB, &va), FRAG_OK);
    assert_int_equal(ops->phys_create(mem, 2 * MIB, &phys), FRAG_OK);
    assert_int_equal(m.reserved, 2 * MIB);
    assert_int_equal(m.reserved_peak, 0); /* not before it is of use */
    assert_int_equal(ops->map(mem, va, 2 * MIB, phys), FRAG_OK);
    assert_int_equal(ops->map(mem, va + 4 * MIB, 2 * MIB, phys), FRAG_OK);
    assert_int_equal(m.reserved, 2 * MIB);
    assert_int_equal(m.reserved_peak, 2 * MIB);
    assert_int_equal(ops->phys_release(mem, phys, 2 * MIB), FRAG_OK);
    assert_int_equal(m.reserved, frag_arena_used(m.relay.under));
    assert_int_equal(ops->unmap(mem, va, 2 * MIB), FRAG_OK);
    assert_int_equal(m.reserved, 2 * MIB);
    assert_int_equal(m.reserved, frag_arena_used(m.relay.under));
    assert_int_equal(meter_find(&m, va), METER_NOWHERE);
    assert_int_not_equal(meter_find(&m, va + 5 * MIB), METER_NOWHERE);
    assert_int_equal(ops->unmap(mem, va + 4 * MIB, 2 * MIB), FRAG_OK);
    assert_int_equal(m.reserved, 0);
    assert_int_equal(m.calls[FRAG_CALL_MAP], 2);
    assert_int_equal(m.calls[FRAG_CALL_UNMAP], 2);
    close_meter(&m);
}

static void what_is_still_held_goes_back_at_the_end(void **state)
{
    struct meter m;
    frag_addr va = 0, segment = 0;
    frag_phys mapped = 0, idle = 0;

    (void)state;
    open_meter(&m, FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    assert_int_equal(m.relay.ops.segment_alloc(&m.base, 100, &segment),
                     FRAG_OK);
    assert_int_equal(m.relay.ops.va_reserve(&m.base, 4 * MIB, &va), FRAG_OK);
    assert_int_equal(m.relay.ops.phys_create(&m.base, 2 * MIB, &mapped),
                     FRAG_OK);
    assert_int_equal(m.relay.ops.phys_create(&m.base, 2 * MIB, &idle), FRAG_OK);
    assert_int_equal(m.relay.ops.map(&m.base, va, 2 * MIB, mapped), FRAG_OK);
    close_meter(&m);
}

static void memory_created_for_a_map_that_fails_is_no_peak(void **state)
{
    struct meter m;
    frag_phys a = 0, b = 0;

    (void)state;
    open_meter(&m, FRAG_RULE_DRIVER, 2 * MIB);
    assert_int_equal(m.relay.ops.phys_create(&m.base, 2 * MIB, &a), FRAG_OK);
    assert_int_equal(m.relay.ops.phys_create(&m.base, 2 * MIB, &b), FRAG_OOM);
    assert_int_equal(m.relay.ops.phys_release(&m.base, a, 2 * MIB), FRAG_OK);
    assert_false(meter_settle(&m)); /* refused, and not requested again */
    assert_int_equal(m.reserved_peak, 0);
    assert_int_equal(m.relay.ops.phys_create(&m.base, 2 * MIB, &a), FRAG_OK);
    assert_int_equal(m.relay.ops.phys_create(&m.base, 2 * MIB, &b), FRAG_OOM);
    assert_int_equal(m.relay.ops.phys_create(&m.base, 2 * MIB, &b), FRAG_OOM);
    assert_true(meter_settle(&m));
    assert_false(meter_settle(&m));
    assert_int_equal(m.reserved_peak, 2 * MIB);
    close_meter(&m);
}

/* Segments of all sizes, many in a granule; each address is looked up by the
 * meter and in a plain list. */
static void count_call(void *run)
{
    ++*(int *)run;
}

/* But for what makes the peak higher. */
static void it_is_said_before_a_range_comes_or_goes(void **state)
{
    struct meter m;
    struct frag_backend *mem;
    const struct frag_backend_ops *ops;
    frag_addr first = 0, second = 0, va = 0;
    frag_phys phys = 0;
    int told = 0;

    (void)state;
    open_meter(&m, FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    mem = &m.base;
    ops = mem->ops;
    m.rearranges = count_call;
    m.run = &told;
    assert_int_equal(ops->segment_alloc(mem, 4 * MIB, &first), FRAG_OK);
    assert_int_equal(ops->segment_alloc(mem, 4 * MIB, &second), FRAG_OK);
    assert_int_equal(told, 0);
    assert_int_equal(ops->segment_free(mem, second, 4 * MIB), FRAG_OK);
    assert_int_equal(told, 1);
    assert_int_equal(ops->segment_alloc(mem, 4 * MIB, &second), FRAG_OK);
    assert_int_equal(told, 2); /* as high as it was */
    assert_int_equal(ops->va_reserve(mem, 32 * MIB, &va), FRAG_OK);
    assert_int_equal(ops->phys_create(mem, 2 * MIB, &phys), FRAG_OK);
    assert_int_equal(ops->map(mem, va, 2 * MIB, phys), FRAG_OK);
    assert_int_equal(told, 2);
    assert_int_equal(ops->map(mem, va + 2 * MIB, 2 * MIB, phys), FRAG_OK);
    assert_int_equal(told, 3);
    assert_int_equal(ops->unmap(mem, va, 4 * MIB), FRAG_OK);
    assert_int_equal(told, 4);
    close_meter(&m);
}

static void every_address_is_found_in_the_segment_that_holds_it(void **state)
{
    enum { LIVE = 48, STEPS = 3000 };
    static const enum frag_address_rule rules[] = {FRAG_RULE_DRIVER,
                                                   FRAG_RULE_HOSTILE};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct {
            frag_addr addr;
            frag_size size;
        } live[LIVE] = {{0, 0}};
        struct meter m;
        uint64_t rng = 7;

        open_meter(&m, rules[k], FRAG_UNLIMITED);
        for (int step = 0; step < STEPS; step++) {
            size_t i = (rng = rng * 6364136223846793005u + 1) % 1013 % LIVE;
            frag_size size = 1 + (rng >> 33) % (rng >> 63 ? 5000 : 9 * MIB);

            if (live[i].size) {
                assert_int_equal(m.relay.ops.segment_free(&m.base, live[i].addr,
                                                          live[i].size),
                                 FRAG_OK);
                assert_int_equal(meter_find(&m, live[i].addr), METER_NOWHERE);
                live[i].size = 0;
            } else {
                live[i].size = size;
                assert_int_equal(
                    m.relay.ops.segment_alloc(&m.base, size, &live[i].addr),
                    FRAG_OK);
            }
            for (size_t j = 0; j < LIVE; j++) {
                const struct segment *first, *last;

                if (!live[j].size)
                    continue;
                first = &m.segments[meter_find(&m, live[j].addr)];
                last = &m.segments[meter_find(&m,
                                              live[j].addr + live[j].size - 1)];
                assert_ptr_equal(first, last);
                assert_int_equal(first->addr, live[j].addr);
                assert_int_equal(first->size, live[j].size);
            }
        }
        close_meter(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_mapped_twice_counts_once_until_it_is_gone),
        cmocka_unit_test(what_is_still_held_goes_back_at_the_end),
        cmocka_unit_test(memory_created_for_a_map_that_fails_is_no_peak),
        cmocka_unit_test(it_is_said_before_a_range_comes_or_goes),
        cmocka_unit_test(every_address_is_found_in_the_segment_that_holds_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
