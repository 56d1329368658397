/* test_torch_experiments.c - tests the setting experiment of the torch policy:
 * for each pull request or proposal a small picture of memory whose next
 * request is served otherwise with its rule than without it. The answers follow
 * from the texts of enum torch_experiment (policies/torch/torch_conf.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/policies.h"
#include "policies/torch/torch.h"
#include "policies/torch/torch_conf.h"
#include "sim/arena/arena.h"

enum { BLOCKS = 8 };

/* The experiments of a text add up, and its description has all of them. */
static void experiments_add_up(void **state)
{
    static const char text[] = "torch_version:2.6,experiment:pr193400+pr191302";
    struct frag_params *params;
    struct torch_conf conf;

    (void)state;
    assert_int_equal(torch_conf_parse(&conf, text, NULL), FRAG_OK);
    assert_int_equal(conf.experiments, TORCH_PR_191302 | TORCH_PR_193400);
    assert_int_equal(frag_params_read(&frag_policy_torch, text, &params, NULL),
                     FRAG_OK);
    assert_non_null(strstr(params->text, ",experiment:pr191302+pr193400"));
    assert_int_equal(strncmp(params->text, "torch_version:2.6,", 18), 0);
    free(params);
}

/* A heap whose device waits: a synchronize completes the free of `waiting`. */
static struct rig {
    struct frag_backend *arena;
    struct frag_backend_ops ops;
    struct frag_heap heap;
    struct frag_torch_observer observer;
    struct frag_block *waiting;
} rig;

static enum frag_err wait_for_device(struct frag_backend *mem)
{
    (void)mem;
    if (rig.waiting)
        frag_policy_torch.free(&rig.heap, rig.waiting);
    rig.waiting = NULL;
    return FRAG_OK;
}

static void rig_open(const char *settings, frag_size capacity)
{
    const struct frag_arena_options opts = {
        .capacity = capacity,
        .total = FRAG_H200_TOTAL,
        .rule = FRAG_RULE_DRIVER,
    };
    struct frag_error e;

    memset(&rig, 0, sizeof(rig));
    rig.arena = frag_arena_open(&opts);
    assert_non_null(rig.arena);
    rig.ops = *rig.arena->ops;
    rig.ops.synchronize = wait_for_device;
    rig.arena->ops = &rig.ops;
    assert_int_equal(
        frag_heap_open(&rig.heap, &frag_policy_torch, rig.arena, settings, &e),
        FRAG_OK);
    frag_torch_observe(&rig.heap, &rig.observer);
}

static void rig_close(void)
{
    assert_null(frag_policy_torch.check(&rig.heap));
    frag_heap_close(&rig.heap);
    assert_int_equal(frag_arena_used(rig.arena), 0);
    frag_arena_close(rig.arena);
}

static enum frag_err ask(frag_size mebibytes, frag_stream stream,
                         struct frag_block *b)
{
    const struct frag_request req = {
        .size = mebibytes * FRAG_MIB, .stream = stream, .frees_at = FRAG_NEVER};

    return frag_policy_torch.alloc(&rig.heap, &req, b);
}

/* Asks for and frees blocks of so many MiB in turn on streams 0, 1, ..., and
 * leaves their addresses; one after the other, all live at once. */
static void leave_idle(const frag_size *mebibytes, frag_stream streams,
                       frag_addr *addr)
{
    struct frag_block b[BLOCKS];

    for (frag_stream s = 0; s < streams; s++)
        assert_int_equal(ask(mebibytes[s], s, &b[s]), FRAG_OK);
    for (frag_stream s = 0; s < streams; s++) {
        addr[s] = b[s].addr;
        frag_policy_torch.free(&rig.heap, &b[s]);
    }
}

/* The device is full with one segment of 20 MiB: a of 8 MiB, whose free waits
 * for the device, b of 8 MiB, and 4 MiB free. The release of cached blocks
 * completes the free of a, and can return nothing. */
static void pr191302_searches_again(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++) {
        struct frag_block a, b, c;

        rig_open(with ? "experiment:pr191302" : "", 20 * FRAG_MIB);
        assert_int_equal(ask(8, 0, &a), FRAG_OK);
        assert_int_equal(ask(8, 0, &b), FRAG_OK);
        frag_policy_torch.free_requested(&rig.heap, &a);
        rig.waiting = &a;
        assert_int_equal(ask(6, 0, &c), with ? FRAG_OK : FRAG_OOM);
        if (with)
            assert_int_equal(c.addr, a.addr);
        assert_int_equal(rig.observer.counters.num_alloc_retries, 1);
        assert_int_equal(rig.observer.counters.num_ooms, !with);
        rig_close();
    }
}

/* 100 MiB are free before a live block: a request below max_split_size of 64
 * MiB, or one of more than 20 MiB less, does not get them. In an expandable
 * segment it does with the rule, and gets no more than it asked for. */
static void pr193400_uses_large_expandable_blocks(void **state)
{
    static const struct {
        const char *settings;
        bool reuses;
    } rows[] = {
        {"expandable_segments:True,max_split_size_mb:64", false},
        {"expandable_segments:True,max_split_size_mb:64,experiment:pr193400",
         true},
        {"max_split_size_mb:64,experiment:pr193400", false},
        {"max_split_size_mb:64,experiment:pr191302+pr186232", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (frag_size size = 30; size <= 70; size += 40) {
            struct frag_block a, b, c;

            rig_open(rows[i].settings, FRAG_UNLIMITED);
            assert_int_equal(ask(100, 0, &a), FRAG_OK);
            assert_int_equal(ask(2, 0, &b), FRAG_OK);
            frag_policy_torch.free(&rig.heap, &a);
            assert_int_equal(ask(size, 0, &c), FRAG_OK);
            assert_int_equal(c.addr == a.addr, rows[i].reuses);
            assert_int_equal(c.size, size * FRAG_MIB);
            rig_close();
        }
}

/* Segments of 40, 32 and 36 MiB are idle on streams 0, 1 and 2. A request of 24
 * MiB on stream 3 takes the smallest, which then belongs to stream 3; the next
 * one takes the next. */
static void pr186232_takes_an_idle_segment(void **state)
{
    static const frag_size sizes[] = {40, 32, 36};

    (void)state;
    for (int with = 0; with < 2; with++) {
        struct frag_block b[3];
        frag_addr addr[3];

        rig_open(with ? "experiment:pr186232" : "", FRAG_UNLIMITED);
        leave_idle(sizes, 3, addr);
        assert_int_equal(ask(24, 3, &b[0]), FRAG_OK);
        assert_int_equal(b[0].addr == addr[1], with);
        assert_int_equal(ask(24, 3, &b[1]), FRAG_OK);
        assert_int_equal(b[1].addr == addr[2], with);
        frag_policy_torch.free(&rig.heap, &b[0]);
        assert_int_equal(ask(30, 1, &b[2]), FRAG_OK);
        assert_int_equal(b[2].addr, addr[1]);
        assert_int_equal(rig.observer.counters.num_device_alloc, with ? 3 : 5);
        rig_close();
    }
}

/* Segments that are not reclaimed: one in part, one that max_split_size
 * refuses, an expandable one, one that is too small. */
static void pr186232_leaves_other_segments(void **state)
{
    static const struct {
        const char *settings;
        frag_size idle, size;
    } rows[] = {
        {"experiment:pr186232,max_split_size_mb:32", 40, 12},
        {"experiment:pr186232,max_split_size_mb:22", 60, 24},
        {"experiment:pr186232,expandable_segments:True", 40, 24},
        {"experiment:pr186232", 22, 24},
    };
    struct frag_block a, b, c;
    frag_addr addr;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        rig_open(rows[i].settings, FRAG_UNLIMITED);
        leave_idle(&rows[i].idle, 1, &addr);
        assert_int_equal(ask(rows[i].size, 1, &c), FRAG_OK);
        assert_int_not_equal(c.addr, addr);
        rig_close();
    }
    rig_open("experiment:pr186232", FRAG_UNLIMITED);
    leave_idle(&(frag_size){40}, 1, &addr);
    assert_int_equal(ask(20, 0, &a), FRAG_OK);
    assert_int_equal(ask(12, 1, &b), FRAG_OK);
    assert_int_equal(a.addr, addr);
    assert_true(b.addr < addr || b.addr >= addr + 40 * FRAG_MIB);
    rig_close();
}

/* 54 MiB of 48000 MiB as a fraction are one byte less if the product is cut:
 * PyTorch 2.12.1 refused a request of 54 MiB, 2.13.0 served it. It rounds to
 * the nearest: half a byte less is too little. */
static void pr179444_rounds_the_limit(void **state)
{
    enum { NEAR = 54 };
    static const struct {
        const char *settings;
        double below; /* bytes that the fraction is below 54 MiB */
        frag_size missing;
    } rows[] = {
        {"torch_version:2.12", 0, 1},
        {"torch_version:2.12,experiment:pr179444", 0, 0},
        {"torch_version:2.13", 0, 0},
        {"torch_version:2.13,experiment:pr179444", 0, 0},
        {"torch_version:2.15", 0.4, 0},
        {"torch_version:2.15", 0.6, 1},
        {"torch_version:2.12", 0.4, 1},
    };
    const frag_size total = 48000 * FRAG_MIB, most = NEAR * FRAG_MIB;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct torch_conf conf;
        struct frag_error e;

        assert_int_equal(torch_conf_parse(&conf, rows[i].settings, &e),
                         FRAG_OK);
        assert_true(torch_conf_limit(&conf, total) == FRAG_UNLIMITED);
        conf.memory_fraction = ((double)most - rows[i].below) / (double)total;
        assert_int_equal(torch_conf_limit(&conf, total),
                         most - rows[i].missing);
    }
}

/* A device of 24 MiB, and a request of 3 MiB on each of two streams, which have
 * segments of their own: pages of 20 MiB do not fit twice. */
static void small_pages_have_2_mib(void **state)
{
    static const char *const settings[] = {
        "expandable_segments:True",
        "expandable_segments:True,experiment:small_pages"};

    (void)state;
    for (int with = 0; with < 2; with++) {
        struct frag_block a, b;

        rig_open(settings[with], 24 * FRAG_MIB);
        assert_int_equal(ask(3, 0, &a), FRAG_OK);
        assert_int_equal(ask(3, 1, &b), with ? FRAG_OK : FRAG_OOM);
        if (with)
            assert_int_equal(frag_arena_used(rig.arena), 8 * FRAG_MIB);
        rig_close();
    }
}

/* 40 MiB are free and mapped under a limit of 65 MiB. A request of 50 MiB maps
 * 20 MiB more, which is within the limit; 40 and 50 MiB are not. */
static void mapped_limit_counts_pages(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++) {
        char text[200];
        struct frag_block a;

        snprintf(text, sizeof(text),
                 "expandable_segments:True,per_process_memory_fraction:%.17g%s",
                 65.0 * FRAG_MIB / FRAG_H200_TOTAL,
                 with ? ",experiment:mapped_limit" : "");
        rig_open(text, FRAG_UNLIMITED);
        assert_int_equal(ask(40, 0, &a), FRAG_OK);
        frag_policy_torch.free(&rig.heap, &a);
        assert_int_equal(ask(50, 0, &a), FRAG_OK);
        assert_int_equal(rig.observer.counters.num_alloc_retries, !with);
        assert_int_equal(ask(30, 0, &a), FRAG_OOM);
        rig_close();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experiments_add_up),
        cmocka_unit_test(pr191302_searches_again),
        cmocka_unit_test(pr193400_uses_large_expandable_blocks),
        cmocka_unit_test(pr186232_takes_an_idle_segment),
        cmocka_unit_test(pr186232_leaves_other_segments),
        cmocka_unit_test(pr179444_rounds_the_limit),
        cmocka_unit_test(small_pages_have_2_mib),
        cmocka_unit_test(mapped_limit_counts_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
