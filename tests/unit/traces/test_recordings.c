/* test_recordings.c - tests the import of real recordings: the result agrees
 * with the recorder's own counts (NAME.json beside NAME.pickle.xz), and with
 * the layouts that a replay of the addresses computes without the builder.
 * Skipped without ../shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "traces/trace.h"

static struct frag_error error;

static struct frag_trace *open_or_fail(const char *path, frag_size limit)
{
    const struct frag_read_options opts = {.limit = limit};
    struct frag_trace *t = NULL;

    if (frag_trace_open(path, &opts, &t, &error) != FRAG_OK)
        fail_msg("%s", error.text);
    return t;
}

static yajl_val read_json(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t size;
    yajl_val json;

    assert_non_null(file);
    size = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[size] = '\0';
    json = yajl_tree_parse(text, NULL, 0);
    assert_non_null(json);
    return json;
}

static uint64_t number(yajl_val json, const char *group, const char *name)
{
    const char *path[] = {group ? group : name, group ? name : NULL, NULL};
    yajl_val value = yajl_tree_get(json, path, yajl_t_number);

    assert_non_null(value);
    return (uint64_t)YAJL_GET_INTEGER(value);
}

struct counts {
    uint64_t ops[FRAG_OP_COUNT], actions[FRAG_ACTION_COUNT];
};

static struct counts count(const struct frag_device_trace *d)
{
    struct counts c = {{0}, {0}};

    for (uint64_t i = 0; i < d->count; i++)
        c.ops[d->op[i]]++;
    for (uint64_t i = 0; i < d->recorded.action_count; i++)
        c.actions[d->recorded.actions[i].action]++;
    return c;
}

/* The visible empty_cache calls: known from the recorded programs. */
static uint64_t known_empty_cache(const char *name)
{
    static const struct {
        const char *name;
        uint64_t calls;
    } rows[] = {
        {"llama_empty", 18},
        {"llama_empty__exp", 24},
        {"cudagraph", 5},
        {"cudagraph__exp", 4},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (!strcmp(rows[i].name, name))
            return rows[i].calls;
    return 0;
}

static void check_counts(const char *name, const struct frag_device_trace *d,
                         yajl_val json)
{
    const struct counts c = count(d);
    uint64_t ooms = number(json, "stats", "num_ooms");

#define EQUAL(found, want)                             \
    if ((found) != (want))                             \
    fail_msg("%s: %s is %llu, not %llu", name, #found, \
             (unsigned long long)(found), (unsigned long long)(want))
    EQUAL(c.ops[FRAG_ALLOC] - ooms,
          number(json, "stats", "allocation.all.allocated"));
    EQUAL(c.ops[FRAG_FREE] - ooms, number(json, "stats", "active.all.freed"));
    EQUAL(c.actions[FRAG_OOM_REPORTED], ooms);
    EQUAL(c.actions[FRAG_SEGMENT_ALLOC] + c.actions[FRAG_SEGMENT_MAP],
          number(json, "stats", "num_device_alloc"));
    EQUAL(c.actions[FRAG_SEGMENT_FREE] + c.actions[FRAG_SEGMENT_UNMAP],
          number(json, "stats", "num_device_free"));
    EQUAL(c.ops[FRAG_EMPTY_CACHE], known_empty_cache(name));
    EQUAL(d->initial, 0ull);
    EQUAL(d->recorded.start.segment_count, 0ull);
    EQUAL(d->slots >= number(json, "stats", "active.all.peak"), true);
    EQUAL(d->slots <= number(json, "stats", "active.all.peak") + 1, true);
#undef EQUAL
}

/* The blocks that are live at the end of the events are those of the final
 * snapshot. */
static void check_end(const char *name, const struct frag_device_trace *d)
{
    const struct frag_layout *end = &d->recorded.end;
    frag_addr *at = calloc((size_t)d->slots + 1, sizeof(*at));
    uint64_t live = 0;

    for (uint64_t i = 0; i < d->count; i++) {
        if (d->op[i] == FRAG_ALLOC)
            at[d->id[i]] = d->recorded.addr[i];
        else if (d->op[i] == FRAG_FREE)
            at[d->id[i]] = 0;
    }
    for (uint32_t k = 0; k < d->slots; k++)
        live += at[k] != 0;
    for (uint64_t i = 0; i < end->block_count; i++) {
        const struct frag_recorded_block *b = &end->blocks[i];

        if (b->state == FRAG_INACTIVE)
            continue;
        if (b->slot >= d->slots || at[b->slot] != b->addr)
            fail_msg("%s: final block %llu has slot %u", name,
                     (unsigned long long)i, b->slot);
        live--;
    }
    assert_int_equal(live, 0);
    free(at);
}

static void check_recording(const char *folder, const char *name)
{
    char path[512];
    struct frag_trace *t;
    yajl_val json;
    uint64_t cap;

    snprintf(path, sizeof(path), "%s/%s.json", folder, name);
    json = read_json(path);
    cap = number(json, NULL, "cap");
    snprintf(path, sizeof(path), "%s/%s.pickle.xz", folder, name);
    t = open_or_fail(path, cap ? cap : FRAG_UNLIMITED);
    assert_int_equal(t->device_count, 1);
    check_counts(name, &t->devices[0], json);
    check_end(name, &t->devices[0]);
    frag_trace_close(t);
    yajl_tree_free(json);
}

static void recordings_agree_with_their_counters(void **state)
{
    const char *folder = FRAG_SHARED_DIR "/recorded/dev";
    DIR *entries = opendir(folder);
    struct dirent *entry;
    unsigned checked = 0;

    (void)state;
    if (!entries) {
        print_message("skipped: there is no %s\n", folder);
        skip();
    }
    while ((entry = readdir(entries))) {
        char name[256], *end;

        snprintf(name, sizeof(name), "%s", entry->d_name);
        end = strstr(name, ".pickle.xz");
        if (!end || strstr(name, ".cpp."))
            continue;
        *end = '\0';
        check_recording(folder, name);
        checked++;
    }
    closedir(entries);
    assert_true(checked > 90);
}

/* Whether [addr, addr + size) lies in one block of a layout that is not live.
 */
static bool is_vacant(const struct frag_layout *l, frag_addr addr,
                      frag_size size)
{
    for (uint64_t i = 0; i < l->block_count; i++)
        if (addr >= l->blocks[i].addr &&
            addr - l->blocks[i].addr < l->blocks[i].size)
            return l->blocks[i].state == FRAG_INACTIVE &&
                   size <= l->blocks[i].addr + l->blocks[i].size - addr;
    return false;
}

static bool overlap(frag_addr a, frag_size n, frag_addr b, frag_size m)
{
    return n && m && a < b + m && b < a + n;
}

/* The public snapshot whose recording began late: no alloc overlaps a block
 * that is live at the start, since none of those is ever freed; and no two live
 * blocks overlap. */
static void the_start_leaves_room_for_every_answer(void **state)
{
    const char *path =
        FRAG_SHARED_DIR "/foreign/pytorch/memory_forward_bf16_128.pickle.xz";
    FILE *file = fopen(path, "rb");
    struct frag_trace *t;
    const struct frag_device_trace *d;
    frag_addr at[1024];
    frag_size size[1024] = {0};

    (void)state;
    if (!file) {
        print_message("skipped: there is no %s\n", path);
        skip();
    }
    fclose(file);
    t = open_or_fail(path, 0);
    d = &t->devices[0];
    assert_int_equal(d->initial, 137);
    assert_int_equal(d->count, 137 + 937 * 2);
    assert_int_equal(d->recorded.start.segment_count, 43);
    assert_true(d->slots < 1024);
    for (uint64_t i = 0; i < d->count; i++) {
        uint32_t id = d->id[i];

        if (d->op[i] == FRAG_FREE) {
            size[id] = 0;
            continue;
        }
        at[id] = d->recorded.addr[i];
        for (uint32_t k = 0; k < d->slots; k++)
            assert_false(k != id &&
                         overlap(at[id], d->bytes[i], at[k], size[k]));
        size[id] = d->bytes[i];
        if (i >= d->initial)
            assert_true(is_vacant(&d->recorded.start, at[id], d->bytes[i]));
    }
    check_end("memory_forward", d);
    frag_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recordings_agree_with_their_counters),
        cmocka_unit_test(the_start_leaves_room_for_every_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
