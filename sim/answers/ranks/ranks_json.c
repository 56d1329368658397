/* ranks_json.c - writes the ranks of a job as JSON. */
#include <math.h>

#include "sim/answers/ranks/ranks.h"

static void put_death(struct frag_json *j, const char *key,
                      const struct rank_death *death)
{
    if (death->event == FRAG_NEVER) {
        frag_json_null(j, key);
        return;
    }
    frag_json_object(j, key);
    frag_json_number(j, "event", death->event);
    frag_json_number(j, "request_bytes", death->bytes);
    frag_json_count(j, "time_ns", death->time ? death->time : UINT64_MAX);
    frag_json_real(j, "after_seconds",
                   death->time ? (double)death->after / 1e9 : NAN);
    frag_json_end(j);
}

static void put_capacity(struct frag_json *j, const struct ranks *r,
                         const struct rank *rank)
{
    if (r->capacity == FRAG_UNLIMITED)
        return;
    frag_json_number(j, "num_ooms_at_capacity", rank->ooms);
    frag_json_number(j, "free_at_peak_bytes",
                     r->capacity - rank->reserved_there);
    put_death(j, "replayed_oom", &rank->replayed);
}

static void put_rank(struct frag_json *j, const struct ranks *r, size_t i)
{
    const struct rank *rank = &r->items[i];

    frag_json_new_object(j, 2, NULL);
    frag_json_number(j, "rank", i);
    subject_json(j, &rank->on);
    frag_json_line(j, 3);
    frag_json_number(j, "events", rank->events);
    frag_json_number(j, "peak_requested_bytes", rank->peak_requested);
    frag_json_number(j, "peak_allocated_bytes", rank->peak_allocated);
    frag_json_number(j, "peak_reserved_bytes", rank->peak_reserved);
    frag_json_real(j, "fragmentation_ratio", rank->fragmentation);
    frag_json_line(j, 3);
    frag_json_number(j, "steps", rank->steps.count);
    frag_json_real(j, "growth_bytes_per_step",
                   rank->steps.count > 1 ? (double)rank->steps.growth : NAN);
    frag_json_number(j, "num_recorded_ooms", rank->recorded_ooms);
    put_death(j, "recorded_oom", &rank->recorded);
    put_capacity(j, r, rank);
    frag_json_line(j, 3);
    subject_json_notes(j, &rank->on);
    frag_json_end(j);
}

void ranks_json(const struct ranks *r, struct frag_json *j)
{
    for (size_t i = 0; i < r->count; i++)
        put_rank(j, r, i);
}

static void put_imbalance(struct frag_json *j, const char *key,
                          const struct rank_imbalance b)
{
    frag_json_new_object(j, 2, key);
    frag_json_real(j, "max_to_mean_ratio", b.ratio);
    frag_json_number(j, "most_rank", b.most);
    frag_json_number(j, "least_rank", b.least);
    frag_json_number(j, "difference_bytes", b.difference);
    frag_json_end(j);
}

static void put_first(struct frag_json *j, const char *key,
                      const struct ranks *r, size_t offset)
{
    const struct ranks_first first = ranks_first(r, offset);

    frag_json_line(j, 2);
    if (first.rank == RANKS_NONE) {
        frag_json_null(j, key);
        return;
    }
    frag_json_object(j, key);
    frag_json_number(j, "rank", first.rank);
    frag_json_number(j, "num_dying", first.dying);
    frag_json_text(j, "order", first.by_time ? "time" : "event");
    frag_json_end(j);
}

void ranks_json_answers(const struct ranks *r, struct frag_json *j)
{
    frag_json_line(j, 1);
    frag_json_count(j, "capacity_bytes", r->capacity);
    frag_json_new_object(j, 1, "imbalance");
    put_imbalance(j, "peak_requested",
                  ranks_imbalance(r, offsetof(struct rank, peak_requested)));
    put_imbalance(j, "peak_reserved",
                  ranks_imbalance(r, offsetof(struct rank, peak_reserved)));
    frag_json_end(j);
    frag_json_new_object(j, 1, "dies_first");
    put_first(j, "recorded", r, offsetof(struct rank, recorded));
    put_first(j, "at_capacity", r, offsetof(struct rank, replayed));
    frag_json_end(j);
}
