/* checks.c - checks devices one by one and keeps the outcome. */
#include "sim/answers/check/checks.h"

#include <stdlib.h>

#include "traces/grow.h"

static enum frag_err see_all(const struct check_question *q,
                             const struct poll_series *p,
                             struct check_case *out, struct frag_error *e)
{
    out->seen = malloc(q->period_count * POLL_SIGNALS * sizeof(*out->seen));
    if (!out->seen)
        return frag_no_memory(e, "the polls");
    for (size_t i = 0; i < q->period_count; i++)
        for (enum poll_signal s = 0; s < POLL_SIGNALS; s++)
            out->seen[out->seen_count++] =
                poll_see(p, s, q->periods[i], q->threshold);
    return FRAG_OK;
}

static enum frag_err poll(const struct check_question *q,
                          const struct replay_settings *s,
                          const struct input *in, struct check_case *out,
                          struct frag_error *e)
{
    enum frag_err err;

    if (!q->period_count)
        return FRAG_OK;
    FRAG_TRY(poll_open(s, in, q->capacity, &out->memory, e));
    err = see_all(q, &out->memory, out, e);
    poll_close(&out->memory);
    return err;
}

static enum frag_err check(const struct check_question *q,
                           const struct replay_settings *s,
                           const struct input *in, struct check_case *out,
                           struct frag_error *e)
{
    FRAG_TRY(
        subject_copy(in, replayed_policy(in->trace, s->policy), &out->on, e));
    if (q->gates->count)
        FRAG_TRY(gates_measure(s, in, q->capacity, &out->facts, e));
    return poll(q, s, in, out, e);
}

static void free_case(struct check_case *c)
{
    subject_free(&c->on);
    free(c->seen);
}

enum frag_err checks_add(struct checks *c, const struct replay_settings *s,
                         const struct input *in, struct frag_error *e)
{
    struct check_case one = {.seen = NULL};
    enum frag_err err;

    if (!GROW(c->items, c->room, c->count + 1))
        return frag_no_memory(e, "the checks");
    err = check(c->question, s, in, &one, e);
    if (err == FRAG_OK)
        c->items[c->count++] = one;
    else
        free_case(&one);
    return err;
}

void checks_free(struct checks *c)
{
    for (size_t i = 0; i < c->count; i++)
        free_case(&c->items[i]);
    free(c->items);
    *c = (struct checks){.items = NULL};
}

size_t checks_failed(const struct checks *c)
{
    const struct gates *g = c->question->gates;
    size_t failed = 0;

    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < g->count; k++)
            failed += !gate_holds(&g->items[k], &c->items[i].facts);
    return failed;
}

/* -- JSON ---------------------------------------------------------------- */

static void begin(struct frag_json *j, const struct check_question *q,
                  const struct check_case *one)
{
    frag_json_line(j, 2);
    frag_json_object(j, NULL);
    subject_json(j, &one->on);
    frag_json_count(j, "capacity_bytes", q->capacity);
}

void checks_json(const struct checks *c, struct frag_json *j)
{
    const struct gates *g = c->question->gates;

    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < g->count; k++) {
            begin(j, c->question, &c->items[i]);
            gate_json(j, &g->items[k], &c->items[i].facts);
            frag_json_end(j);
        }
}

static void put_polls(const struct checks *c, struct frag_json *j)
{
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->items[i].seen_count; k++) {
            begin(j, c->question, &c->items[i]);
            poll_json(j, &c->items[i].memory, &c->items[i].seen[k]);
            frag_json_end(j);
        }
}

static void put_traces(const struct checks *c, struct frag_json *j)
{
    for (size_t i = 0; i < c->count; i++) {
        begin(j, c->question, &c->items[i]);
        subject_json_notes(j, &c->items[i].on);
        frag_json_end(j);
    }
}

void checks_json_answers(const struct checks *c, struct frag_json *j)
{
    frag_json_line(j, 1);
    frag_json_bool(j, "passed", !checks_failed(c));
    frag_json_line(j, 1);
    frag_json_real(j, "threshold_ratio", c->question->threshold);
    frag_json_line(j, 1);
    frag_json_array(j, "polls");
    put_polls(c, j);
    frag_json_end(j);
    frag_json_line(j, 1);
    frag_json_array(j, "traces");
    put_traces(c, j);
    frag_json_end(j);
}
