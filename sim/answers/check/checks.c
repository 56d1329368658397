/* checks.c - checks devices one by one and keeps the outcome. */
#include "sim/answers/check/checks.h"

#include <stdlib.h>

#include "traces/grow.h"

static enum frag_err check(const struct check_question *q,
                           const struct replay_settings *s,
                           const struct input *in, struct check_case *out,
                           struct frag_error *e)
{
    FRAG_TRY(
        subject_copy(in, replayed_policy(in->trace, s->policy), &out->on, e));
    return gates_measure(s, in, q->capacity, &out->facts, e);
}

enum frag_err checks_add(struct checks *c, const struct replay_settings *s,
                         const struct input *in, struct frag_error *e)
{
    struct check_case one = {.on = {.trace = NULL}};
    enum frag_err err;

    if (!GROW(c->items, c->room, c->count + 1))
        return frag_no_memory(e, "the checks");
    err = check(c->question, s, in, &one, e);
    if (err == FRAG_OK)
        c->items[c->count++] = one;
    else
        subject_free(&one.on);
    return err;
}

void checks_free(struct checks *c)
{
    for (size_t i = 0; i < c->count; i++)
        subject_free(&c->items[i].on);
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
    frag_json_new_object(j, 2, NULL);
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
    frag_json_new_array(j, 1, "traces");
    put_traces(c, j);
    frag_json_end(j);
}
