/* ranks.h - compares the ranks of a distributed job: who needs the most memory,
 * and which rank dies first. A rank is a device of a trace; ranks are numbered
 * from 0 in the order in which they are added. */
#ifndef FRAG_SIM_ANSWERS_RANKS_RANKS_H
#define FRAG_SIM_ANSWERS_RANKS_RANKS_H

#include "sim/answers/replayed.h"
#include "sim/answers/subject.h"
#include "sim/results/json.h"

/* The first request of a rank that failed. */
struct rank_death {
    uint64_t event;  /* FRAG_NEVER: no request failed */
    frag_time time;  /* of the event; 0 if no times were recorded */
    frag_time after; /* ns since the first recorded event */
    frag_size bytes; /* of the request */
};

struct rank {
    struct subject on; /* owned */
    uint64_t events;
    /* Under the policy, as recorded or without a bound
     * (recording_bound_for). */
    frag_size peak_requested, peak_allocated, peak_reserved;
    double fragmentation; /* 1 - peak allocated / peak reserved */
    struct replayed_steps steps;
    uint64_t recorded_ooms; /* reports in the recording */
    struct rank_death recorded;
    /* At the capacity in question; 0 and FRAG_NEVER without one. */
    uint64_t ooms;
    frag_size reserved_there; /* peak reserved */
    struct rank_death replayed;
};

struct ranks {
    struct rank *items;
    size_t count, room;
    frag_size capacity; /* FRAG_UNLIMITED: no capacity is in question */
};

/* Adds a device as the next rank. The trace may be closed afterwards. Errors of
 * replayed_run; on error the ranks are unchanged. */
enum frag_err ranks_add(struct ranks *r, const struct replay_settings *s,
                        const struct input *in,
                        struct frag_error *e) FRAG_MUST_CHECK;
void ranks_free(struct ranks *r); /* zeroed is fine */

/* How unequal a measure is. */
struct rank_imbalance {
    size_t most, least;   /* ranks; the first one of several */
    double ratio;         /* largest / mean; 1 if all are equal */
    frag_size difference; /* largest - smallest */
};

/* Of the member of struct rank at that offset, a frag_size. There is at least
 * one rank. */
struct rank_imbalance ranks_imbalance(const struct ranks *r, size_t offset);

#define RANKS_NONE SIZE_MAX

/* The rank that dies first. */
struct ranks_first {
    size_t rank;  /* RANKS_NONE: none dies */
    size_t dying; /* how many ranks die */
    bool by_time; /* compared by the recorded clock; else by the number of the
                     event, because a rank has no times */
};

/* Of the deaths at that offset in struct rank: `recorded` or `replayed`. */
struct ranks_first ranks_first(const struct ranks *r, size_t offset);

/* The death at that offset in a rank. */
const struct rank_death *rank_death_at(const struct rank *rank, size_t offset);

/* Writes the ranks as the items of the array that is open. */
void ranks_json(const struct ranks *r, struct frag_json *j);
/* Writes the members `imbalance` and `dies_first` of the object that is open.
 */
void ranks_json_answers(const struct ranks *r, struct frag_json *j);

#endif
