/* summary_json.c - writes a summary as JSON: the counters by the names of
 * torch.cuda.memory_stats(), nested at their dots, and the fragmentation. */
#include <inttypes.h>
#include <stdio.h>

#include "sim/answers/summary/summary_parts.h"

static const char *const stat_keys[] = {
#define X(name, text) text,
    FRAG_TORCH_STATS(X)
#undef X
};

static void put_count(struct frag_json *j, const char *key,
                      const struct frag_torch_count *n)
{
    frag_json_object(j, key);
    frag_json_count(j, "current", n->current);
    frag_json_count(j, "peak", n->peak);
    frag_json_count(j, "allocated", n->allocated);
    frag_json_count(j, "freed", n->freed);
    frag_json_end(j);
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
    frag_json_count(j, "num_ooms", c->num_ooms);
    frag_json_count(j, "num_oom_rejections", c->num_oom_rejections);
    frag_json_count(j, "num_alloc_retries", c->num_alloc_retries);
    frag_json_count(j, "num_sync_all_streams", c->num_sync_all_streams);
    frag_json_count(j, "num_device_alloc", c->num_device_alloc);
    frag_json_count(j, "num_device_free", c->num_device_free);
    frag_json_end(j);
}

static void put_fragmentation(const struct summary *s, struct frag_json *j)
{
    frag_json_new_object(j, 3, "fragmentation");
    for (const struct measure *m = summary_measures; m->label; m++) {
        frag_json_line(j, 4);
        if (m->kind == MEASURE_BYTES)
            frag_json_count(j, m->key, summary_bytes(s, m));
        else
            frag_json_real(j, m->key, summary_real(s, m));
    }
    frag_json_end(j);
}

void summary_json(const struct summary *s, struct frag_json *j)
{
    frag_json_number(j, "device", s->device);
    frag_json_number(j, "event", s->event);
    frag_json_number(j, "events", s->events);
    frag_json_text(j, "policy", s->policy);
    frag_json_text(j, "params", s->params);
    frag_json_bool(j, "recorded", s->is_recorded);
    put_counters(s, j);
    put_fragmentation(s, j);
    frag_json_new_array(j, 3, "cautions");
    for (size_t i = 0; i < s->note_count; i++)
        frag_json_text(j, NULL, s->notes[i]);
    frag_json_end(j);
}
