/* summary_json.c - writes a summary as JSON: the counters by the names of
 * torch.cuda.memory_stats(), nested at their dots, and the fragmentation. */
#include <inttypes.h>
#include <stdio.h>

#include "sim/answers/summary/summary_parts.h"
#include "sim/results/row.h"

static const char *const stat_keys[] = {
#define X(name, text) text,
    FRAG_TORCH_STATS(X)
#undef X
};

static void put_count(struct frag_json *j, const char *key,
                      const struct frag_torch_count *n)
{
    JSON_OBJECT(j, key, frag_torch_count, n, NUMBER("current", current),
                NUMBER("peak", peak), NUMBER("allocated", allocated),
                NUMBER("freed", freed));
}

static void put_counts(const struct summary *s, struct frag_json *j,
                       const char *key, const struct frag_torch_count *counts)
{
    static const char *const pools[] = {"all", "large_pool", "small_pool"};
    const int pool_count = s->has_pools ? FRAG_TORCH_POOLS_COUNT : 1;

    frag_json_new_object(j, 4, key);
    for (int k = 0; k < pool_count; k++)
        put_count(j, pools[k], &counts[k]);
    frag_json_end(j);
}

/* By PyTorch's names of the private pools. */
static void put_pools(const struct summary *s, struct frag_json *j)
{
    const struct frag_device_trace *d = s->trace_device;
    char name[FRAG_POOL_NAME];

    frag_json_new_object(j, 4, "reserved_bytes_by_private_pools");
    for (uint32_t i = 1; s->by_pool && i < d->pool_count; i++) {
        snprintf(name, sizeof(name), "%" PRIu64 "_%" PRIu64, d->pools[i].owner,
                 d->pools[i].number);
        put_counts(s, j, name, s->by_pool[i].of);
    }
    frag_json_end(j);
}

static void put_counters(const struct summary *s, struct frag_json *j)
{
    const struct frag_torch_counters *c = &s->counters;

    frag_json_new_object(j, 3, "stats");
    for (int i = 0; i < FRAG_TORCH_STAT_COUNT; i++)
        put_counts(s, j, stat_keys[i], c->stat[i]);
    put_pools(s, j);
    frag_json_line(j, 4);
    put_count(j, "oversize_allocations", &c->oversize_allocations);
    put_count(j, "oversize_segments", &c->oversize_segments);
    frag_json_line(j, 4);
    JSON_ROW(j, frag_torch_counters, c, NUMBER("num_ooms", num_ooms),
             NUMBER("num_oom_rejections", num_oom_rejections),
             NUMBER("num_alloc_retries", num_alloc_retries),
             NUMBER("num_sync_all_streams", num_sync_all_streams),
             NUMBER("num_device_alloc", num_device_alloc),
             NUMBER("num_device_free", num_device_free));
    frag_json_end(j);
}

void summary_json(const struct summary *s, struct frag_json *j)
{
    JSON_ROW(j, summary, s, NUMBER("device", device), NUMBER("event", event),
             NUMBER("events", events), TEXT("policy", policy),
             TEXT("params", params), NUMBER("recorded", is_recorded));
    put_counters(s, j);
    frag_json_line(j, 3);
    frag_object_json(j, "fragmentation", summary_measures, &s->fragmentation);
    frag_json_new_array(j, 3, "cautions");
    for (size_t i = 0; i < s->note_count; i++)
        frag_json_text(j, NULL, s->notes[i]);
    frag_json_end(j);
}
