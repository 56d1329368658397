/* test_free_set.c - tests the free set against a sorted array that is searched
 * from one end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/mechanism/free_set.h"
#include "tests/support/damage.h"

enum { NODES = 300, STEPS = 40000 };

struct naive {
    struct free_node *in[NODES];
    size_t count;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int by_size_then_address(const struct free_node *a,
                                const struct free_node *b)
{
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static void naive_insert(struct naive *s, struct free_node *n)
{
    size_t at = 0;

    while (at < s->count && by_size_then_address(s->in[at], n) < 0)
        at++;
    memmove(&s->in[at + 1], &s->in[at], (s->count - at) * sizeof(*s->in));
    s->in[at] = n;
    s->count++;
}

static void naive_remove(struct naive *s, struct free_node *n)
{
    size_t at = 0;

    while (s->in[at] != n)
        at++;
    s->count--;
    memmove(&s->in[at], &s->in[at + 1], (s->count - at) * sizeof(*s->in));
}

static struct free_node *naive_fit(const struct naive *s, frag_size size)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->in[i]->size >= size)
            return s->in[i];
    return NULL;
}

static struct free_node *naive_after(const struct naive *s,
                                     const struct free_node *n)
{
    for (size_t i = 0; i < s->count; i++)
        if (by_size_then_address(s->in[i], n) > 0)
            return s->in[i];
    return NULL;
}

static struct free_node *naive_before(const struct naive *s,
                                      const struct free_node *n)
{
    for (size_t i = s->count; i-- > 0;)
        if (by_size_then_address(s->in[i], n) < 0)
            return s->in[i];
    return NULL;
}

/* Sizes over many octaves, or (few) so that ties by address are common. */
static frag_size random_size(uint64_t *rng, bool few)
{
    if (few)
        return 512 * (1 + next_random(rng) % 3);
    return 512 * (1 + (next_random(rng) >> 20) % (1u << next_random(rng) % 30));
}

static const char *check(const struct free_set *set, size_t most)
{
    struct met met = {.most = most};

    return free_set_check(set, NULL, &met);
}

static void agrees(bool few)
{
    struct free_node *nodes = calloc(NODES, sizeof(*nodes));
    struct free_set *set = calloc(1, sizeof(*set));
    struct naive naive = {.count = 0};
    bool in[NODES] = {false};
    uint64_t rng = 88172645463325252u;

    assert_non_null(nodes);
    assert_non_null(set);
    for (int step = 0; step < STEPS; step++) {
        size_t k = next_random(&rng) % NODES;
        struct free_node probe = {.size = random_size(&rng, few),
                                  .addr = 512 * (next_random(&rng) % 4096)};

        if (in[k]) {
            free_set_remove(set, &nodes[k]);
            naive_remove(&naive, &nodes[k]);
        } else {
            nodes[k].size = random_size(&rng, few);
            nodes[k].addr = 512 * k;
            free_set_insert(set, &nodes[k]);
            naive_insert(&naive, &nodes[k]);
        }
        in[k] = !in[k];
        assert_null(check(set, naive.count));
        assert_ptr_equal(free_set_fit(set, probe.size),
                         naive_fit(&naive, probe.size));
        assert_ptr_equal(free_set_after(set, &probe),
                         naive_after(&naive, &probe));
        assert_ptr_equal(free_set_before(set, &probe),
                         naive_before(&naive, &probe));
        assert_ptr_equal(free_set_first(set), naive.count ? naive.in[0] : NULL);
        assert_ptr_equal(free_set_last(set),
                         naive.count ? naive.in[naive.count - 1] : NULL);
    }
    free_set_fini(set);
    free(set);
    free(nodes);
}

static void agrees_with_a_sorted_array(void **state)
{
    (void)state;
    agrees(false);
}

static void of_equal_sizes_the_lowest_address_wins(void **state)
{
    (void)state;
    agrees(true);
}

/* Inserts and removes nodes until the set has a table, which is empty then. */
static void make_table(struct free_set *set)
{
    for (unsigned i = set->insertions + 1; i <= FREE_MANY; i++) {
        struct free_node node = {.addr = 512, .size = 512 * i};

        assert_null(set->table);
        free_set_insert(set, &node);
        assert_int_equal(set->table != NULL, i == FREE_MANY);
        assert_null(check(set, 1));
        free_set_remove(set, &node);
    }
    assert_null(free_set_first(set));
}

static void the_largest_sizes_have_a_bin(void **state)
{
    struct free_set *set = calloc(1, sizeof(*set));
    struct free_node huge = {.size = UINT64_MAX & ~(uint64_t)511};

    (void)state;
    assert_non_null(set);
    make_table(set);
    free_set_insert(set, &huge);
    assert_null(check(set, 1));
    assert_ptr_equal(free_set_fit(set, (uint64_t)1 << 62), &huge);
    assert_ptr_equal(free_set_last(set), &huge);
    free_set_remove(set, &huge);
    assert_null(free_set_first(set));
    free_set_fini(set);
    free(set);
}

static void a_set_of_few_insertions_has_no_table(void **state)
{
    struct free_node nodes[FREE_MANY - 1] = {{.size = 0}};
    struct free_set set = {0};

    (void)state;
    for (unsigned i = 0; i < FREE_MANY - 1; i++) {
        nodes[i].addr = 512 * i;
        nodes[i].size = (frag_size)512 << i % 40;
        free_set_insert(&set, &nodes[i]);
        assert_null(check(&set, i + 1));
    }
    assert_null(set.table);
    for (unsigned i = 0; i < FREE_MANY - 1; i++)
        free_set_remove(&set, &nodes[i]);
    assert_null(free_set_first(&set));
}

/* The bins are an order of sizes: each begins where the one before it ends. */
static void a_larger_size_has_no_lower_bin(void **state)
{
    unsigned last = 0;

    (void)state;
    for (frag_size size = 0; size < FRAG_MIB; size++) {
        const unsigned bin = free_bin_of(size);

        assert_true(bin == last || bin == last + 1);
        last = bin;
    }
    for (unsigned bit = 20; bit < 64; bit++) {
        const frag_size size = (frag_size)1 << bit;

        assert_int_equal(free_bin_of(size - 1) + 1, free_bin_of(size));
    }
    assert_int_equal(free_bin_of(UINT64_MAX), FREE_BINS - 1);
}

static void a_set_that_is_damaged_is_found(void **state)
{
    struct free_set *set = calloc(1, sizeof(*set));
    struct free_node nodes[3] = {{.size = 512 * 80, .addr = 512},
                                 {.size = 512 * 80, .addr = 1024},
                                 {.size = 512 * 3, .addr = 4096}};

    (void)state;
    assert_non_null(set);
    for (int i = 0; i < 3; i++)
        free_set_insert(set, &nodes[i]);
    DAMAGE(nodes[1].addr, 512, check(set, 3),
           "the nodes of a free set are not in order");
    for (int i = 0; i < 3; i++)
        free_set_remove(set, &nodes[i]);
    make_table(set);
    for (int i = 0; i < 3; i++)
        free_set_insert(set, &nodes[i]);
    expect_text(check(set, 2), "a free set has more nodes than are free");
    DAMAGE(set->table->used[0], set->table->used[0] | 1, check(set, 3),
           "the bitmap of a free set does not match the bins in use");
    DAMAGE(set->table->used[0], 0, check(set, 3),
           "the bitmap of a free set does not match the bins in use");
    DAMAGE(nodes[2].size, 512 * 4, check(set, 3),
           "a node of a free set is not in the bin of its size");
    DAMAGE(nodes[2].size, 512 * 2, check(set, 3),
           "a node of a free set is not in the bin of its size");
    DAMAGE(nodes[0].size, 512 * 81, check(set, 3),
           "the nodes of a free set are not in order");
    DAMAGE(nodes[1].addr, 512, check(set, 3),
           "the nodes of a free set are not in order");
    free_set_fini(set);
    free(set);
}

/* One of two equal blocks must be above the other: the reverse order is a
 * fault. */
static void a_set_of_the_wrong_shape_is_found(void **state)
{
    struct free_set set = {0};
    struct free_node nodes[3] = {{.size = 512, .addr = 512},
                                 {.size = 512, .addr = 1024},
                                 {.size = 512, .addr = 1536}};
    struct free_node *const low = &nodes[1], *const high = &nodes[2];
    struct free_node *top;

    (void)state;
    for (int i = 0; i < 3; i++)
        free_set_insert(&set, &nodes[i]);
    DAMAGE(nodes[0].left, low, check(&set, 3),
           "the first node of a bin is not its least one");
    top = nodes[0].right == low ? high : low;
    nodes[0].right = top;
    low->left = low->right = high->left = high->right = NULL;
    if (top == low)
        top->right = high;
    else
        top->left = low;
    expect_text(check(&set, 3), "a node of a free set has a higher priority "
                                "than the one above it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_sorted_array),
        cmocka_unit_test(of_equal_sizes_the_lowest_address_wins),
        cmocka_unit_test(the_largest_sizes_have_a_bin),
        cmocka_unit_test(a_set_of_few_insertions_has_no_table),
        cmocka_unit_test(a_larger_size_has_no_lower_bin),
        cmocka_unit_test(a_set_that_is_damaged_is_found),
        cmocka_unit_test(a_set_of_the_wrong_shape_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
