/* poll.h - what a monitor would have seen that reads the memory of a job every
 * so often.
 *
 * A monitor of period P reads at the times t, t + P, t + 2P, ... Where it
 * begins is chance, so POLL_PHASES beginnings are tried, evenly spread over the
 * first period after the first recorded event. Between two events the memory is
 * that after the first of them.
 */
#ifndef FRAG_SIM_ANSWERS_CHECK_POLL_H
#define FRAG_SIM_ANSWERS_CHECK_POLL_H

#include "sim/answers/replayed.h"
#include "sim/results/json.h"

enum { POLL_PHASES = 100 };

/* The counter that a monitor reads. */
enum poll_signal {
    POLL_ALLOCATED, /* as torch.cuda.memory_allocated() */
    POLL_RESERVED,  /* as torch.cuda.memory_reserved() */
    POLL_SIGNALS
};

extern const char *const poll_signal_names[POLL_SIGNALS];

/* Memory over time: readings[s][i] is the value of signal s from at[i] until
 * at[i + 1]; the last one holds at its time alone. */
struct poll_series {
    uint64_t count;
    frag_time *at;
    frag_size *readings[POLL_SIGNALS];
    frag_size peak[POLL_SIGNALS]; /* also within an event */
    frag_size capacity;           /* FRAG_UNLIMITED: none */
    bool died;                    /* a request failed */
    frag_time death;              /* its time, if `died` */
};

struct poll_seen {
    enum poll_signal signal;
    frag_time period;
    frag_size peak;        /* the true one */
    frag_size least, most; /* largest reading, over the phases */
    unsigned whole;        /* phases that read the true peak */
    /* If a request failed: phases in which a reading before it was at or above
     * the threshold, and the time from the first such reading to the failure,
     * over those phases. */
    unsigned warned;
    frag_time shortest, longest;
};

/* Replays the device at the capacity and keeps its memory over time. CORRUPT if
 * the recording has no times, and the errors of replayed_run. The caller closes
 * *out; on error it need not. poll_close frees the arrays and keeps the other
 * members, which poll_json reads. */
enum frag_err poll_open(const struct replay_settings *s, const struct input *in,
                        frag_size capacity, struct poll_series *out,
                        struct frag_error *e) FRAG_MUST_CHECK;
void poll_close(struct poll_series *p);

/* The view of a monitor with that period. The threshold is a share of the
 * capacity; without a capacity nothing is a warning. The time is proportional
 * to the events, whatever the period, which is more than 0. */
struct poll_seen poll_see(const struct poll_series *p, enum poll_signal signal,
                          frag_time period, double threshold);

/* Reads a list of periods such as "100ms,1s"; units are us, ms, s and min. The
 * caller frees *out, on error too. INVALID, NOMEM. */
enum frag_err poll_periods_read(const char *text, frag_time **out,
                                size_t *count,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* Writes what was seen as members of the object that is open. */
void poll_json(struct frag_json *j, const struct poll_series *p,
               const struct poll_seen *seen);

#endif
