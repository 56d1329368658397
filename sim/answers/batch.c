/* batch.c - replays batch sizes, and searches for the largest one that fits. */
#include "sim/answers/batch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "traces/grow.h"

struct asked {
    const struct batch_question *q;
    struct batch_answer *answer;
    size_t policy;
    struct frag_error *e;
};

/* ---- what limits it ---- */

/* The first event after which most bytes are live. */
static uint64_t peak_of(const struct blocks *b)
{
    uint64_t peak = 0;

    for (uint64_t i = 1; i <= b->events; i++)
        if (b->live[i] > b->live[peak])
            peak = i;
    return peak;
}

/* The peak is that of the trace with the sizes of this batch size, also if the
 * batch size was recorded: only the requests of the template are known as
 * functions of the batch. */
static enum frag_err find_limits(const struct scaling *s, struct batch_row *row,
                                 struct frag_error *e)
{
    struct frag_device_trace made = *s->template;
    uint64_t *bytes = calloc((size_t)made.count + 1, sizeof(*bytes));
    struct blocks blocks;
    enum frag_err err;
    uint64_t peak;

    if (!bytes)
        return frag_no_memory(e, "the sizes of the requests");
    for (uint64_t b = 0; b < s->blocks.count; b++)
        bytes[s->blocks.lives[b].alloc] =
            scale_at(s, b, row->batch, NULL).bytes;
    made.bytes = bytes;
    err = blocks_open(&made, made.count, &blocks, e);
    if (err == FRAG_OK) {
        double grown;

        peak = peak_of(&blocks);
        for (uint64_t b = 0; b < s->blocks.count; b++)
            if (block_is_live(&blocks, (uint32_t)b, peak))
                row->per_sample += scale_at(s, b, row->batch, NULL).per_sample;
        row->requested = blocks.live[peak];
        grown = row->per_sample * (double)row->batch;
        if (grown < (double)row->requested)
            row->constant = row->requested - (frag_size)grown;
        blocks_close(&blocks);
    }
    free(bytes);
    return err;
}

double batch_growing_share(const struct batch_row *r)
{
    const double grown = r->per_sample * (double)r->batch;

    return grown > 0 ? grown / (grown + (double)r->constant) : 0;
}

/* ---- one replay ---- */

static enum frag_err replay(const struct asked *a,
                            const struct frag_device_trace *trace,
                            struct frag_summary *out)
{
    const struct batch_question *q = a->q;
    struct frag_run_identity id = {
        .policy = q->policies[a->policy].text,
        .policy_used = q->policies[a->policy].policy,
        .bound = q->bound,
    };
    struct frag_run run;

    FRAG_TRY(cell_run(q->settings, trace, &id, q->params[a->policy], q->tick,
                      q->user, &run, a->e));
    *out = run.summary;
    frag_run_free(&run);
    return FRAG_OK;
}

/* The row of this policy and batch size; NULL if it was not replayed. */
static const struct batch_row *find_row(const struct asked *a, uint64_t batch)
{
    for (size_t i = 0; i < a->answer->count; i++)
        if (a->answer->rows[i].policy == a->policy &&
            a->answer->rows[i].batch == batch)
            return &a->answer->rows[i];
    return NULL;
}

static const double sure = 0.02;

bool batch_is_sure(const struct batch_row *r)
{
    const double peak = (double)r->summary.peak_reserved;

    if (r->num_replays_with_oom > 0)
        return r->num_replays_with_oom == r->num_replays;
    return (double)r->high_reserved <= peak * (1 + sure) &&
           (double)r->low_reserved >= peak * (1 - sure);
}

static void widen(struct batch_row *row, const struct frag_summary *s)
{
    if (s->peak_reserved < row->low_reserved)
        row->low_reserved = s->peak_reserved;
    if (s->peak_reserved > row->high_reserved)
        row->high_reserved = s->peak_reserved;
    row->num_replays++;
    row->num_replays_with_oom += s->num_ooms > 0;
}

/* Replays the batch size with the sizes of a guess; NULL: the prediction. */
static enum frag_err replay_as(const struct asked *a, struct batch_row *row,
                               const struct scale_guess *guess,
                               struct frag_summary *out)
{
    struct scaled made;
    enum frag_err err;

    FRAG_TRY(scale_make(a->q->scaling, row->batch, guess, &made, a->e));
    row->recorded = made.recorded;
    err = replay(a, &made.device, out);
    scaled_close(&made);
    return err;
}

static enum frag_err find_range(const struct asked *a, struct batch_row *row)
{
    row->low_reserved = row->high_reserved = row->summary.peak_reserved;
    widen(row, &row->summary);
    if (row->recorded || !a->q->scaling->guessed.count)
        return FRAG_OK;
    for (size_t g = 0; g < SCALE_GUESSES; g++) {
        struct frag_summary other;

        FRAG_TRY(replay_as(a, row, &scale_guesses[g], &other));
        widen(row, &other);
    }
    return FRAG_OK;
}

static enum frag_err add_row(const struct asked *a, uint64_t batch)
{
    struct batch_row row = {.batch = batch, .policy = a->policy};

    FRAG_TRY(replay_as(a, &row, NULL, &row.summary));
    FRAG_TRY(find_range(a, &row));
    FRAG_TRY(find_limits(a->q->scaling, &row, a->e));
    if (!GROW(a->answer->rows, a->answer->room, a->answer->count + 1))
        return frag_no_memory(a->e, "the results");
    a->answer->rows[a->answer->count++] = row;
    return FRAG_OK;
}

static void grow_to(uint64_t *largest, uint64_t batch)
{
    *largest = batch > *largest ? batch : *largest;
}

/* Replays a batch size, once. */
static enum frag_err try_batch(const struct asked *a, uint64_t batch,
                               bool *fits)
{
    const struct batch_row *row;

    if (!find_row(a, batch))
        FRAG_TRY(add_row(a, batch));
    row = find_row(a, batch);
    *fits = row->summary.num_ooms == 0;
    if (*fits)
        grow_to(&a->answer->largest[a->policy], batch);
    if (row->num_replays_with_oom == 0)
        grow_to(&a->answer->low_largest[a->policy], batch);
    if (row->num_replays_with_oom < row->num_replays)
        grow_to(&a->answer->high_largest[a->policy], batch);
    return FRAG_OK;
}

/* ---- the search ---- */

/* No program has a larger batch. */
static const uint64_t most_batch = (uint64_t)1 << 40;

/* Finds a batch size that fits (or 0) and a larger one that does not. */
static enum frag_err bracket(const struct asked *a, uint64_t *fits,
                             uint64_t *fails)
{
    const struct scaling *s = a->q->scaling;
    uint64_t batch = s->recordings[s->count - 1].batch;
    bool fit = true;

    for (;; *fits = batch, batch *= 2) {
        if (batch > most_batch)
            return frag_fail(a->e, FRAG_INVALID,
                             "every batch size fits: the "
                             "peak does not grow with the batch");
        FRAG_TRY(try_batch(a, batch, &fit));
        if (!fit)
            break;
    }
    *fails = batch;
    return FRAG_OK;
}

static enum frag_err halve(const struct asked *a, uint64_t *fits,
                           uint64_t fails)
{
    while (fails - *fits > 1) {
        const uint64_t middle = *fits + (fails - *fits) / 2;
        bool fit;

        FRAG_TRY(try_batch(a, middle, &fit));
        *(fit ? fits : &fails) = middle;
    }
    return FRAG_OK;
}

static enum frag_err search(const struct asked *a)
{
    uint64_t fits = 0, fails = 0, beyond;

    FRAG_TRY(bracket(a, &fits, &fails));
    FRAG_TRY(halve(a, &fits, fails));
    for (beyond = fits + 1; beyond <= fits + BATCH_BEYOND; beyond++) {
        bool fit;

        FRAG_TRY(try_batch(a, beyond, &fit));
        if (fit)
            fits = beyond;
    }
    return FRAG_OK;
}

/* ---- all of them ---- */

static enum frag_err try_all(const struct asked *a)
{
    bool fit;

    for (size_t i = 0; i < a->q->at_count; i++)
        FRAG_TRY(try_batch(a, a->q->at[i], &fit));
    return a->q->at_count ? FRAG_OK : search(a);
}

static int by_policy_and_batch(const void *a, const void *b)
{
    const struct batch_row *x = a, *y = b;

    if (x->policy != y->policy)
        return x->policy < y->policy ? -1 : 1;
    return x->batch < y->batch ? -1 : x->batch > y->batch;
}

enum frag_err batch_answer(const struct batch_question *q,
                           struct batch_answer *out, struct frag_error *e)
{
    struct asked a = {.q = q, .answer = out, .e = e};

    *out = (struct batch_answer){0};
    if (!q->at_count && q->bound.bytes == FRAG_UNLIMITED)
        return frag_fail(e, FRAG_INVALID,
                         "the largest batch size of an unlimited device is "
                         "not finite: pass a bound, such as -c 12GiB, or "
                         "the batch sizes, such as --at 8,16");
    out->largest = calloc(q->policy_count + 1, sizeof(*out->largest));
    out->low_largest = calloc(q->policy_count + 1, sizeof(*out->low_largest));
    out->high_largest = calloc(q->policy_count + 1, sizeof(*out->high_largest));
    if (!out->largest || !out->low_largest || !out->high_largest)
        return frag_no_memory(e, "the results");
    for (a.policy = 0; a.policy < q->policy_count; a.policy++)
        FRAG_TRY(try_all(&a));
    if (out->count)
        qsort(out->rows, out->count, sizeof(*out->rows), by_policy_and_batch);
    return FRAG_OK;
}

void batch_close(struct batch_answer *a)
{
    free(a->rows);
    free(a->largest);
    free(a->low_largest);
    free(a->high_largest);
    *a = (struct batch_answer){0};
}
