/* check_text.c - prints rules and polls as tables. */
#include "sim/cli/answers/text/check_text.h"

#include <inttypes.h>

#include "sim/cli/answers/text/subject_text.h"
#include "sim/cli/output/table.h"

enum { RULE_HEADS = 7, POLL_HEADS = 13, OPTIONAL = 4, OOM_HEADS = 3 };

static const char *const rule_heads[RULE_HEADS] = {
    "trace", "device", "policy", "capacity", "rule", "found", "outcome"};

static const char *const poll_heads[POLL_HEADS] = {
    "trace",  "device",        "policy",        "capacity", "polled every",
    "signal", "true peak",     "seen at least", "missed",   "sees peak",
    "warned", "shortest lead", "longest lead"};

static void put_subject(struct table *t, const struct check_question *q,
                        const struct subject *on)
{
    table_cell(t, false, "%s", on->trace);
    table_cell(t, false, "%" PRIu32, on->device);
    table_cell(t, false, "%s", on->policy);
    table_size(t, q->capacity);
}

/* -- rules --------------------------------------------------------------- */

static void put_rule(struct table *t, const struct gate *g,
                     const struct gate_facts *f)
{
    const bool holds = gate_holds(g, f);
    char rule[GATE_TEXT], found[GATE_TEXT];

    table_cell(t, false, "%s", gate_text(g, rule));
    table_cell(t, false, "%s",
               gate_value_text(g->measure, gate_found(g->measure, f), found));
    table_cell(t, !holds, "%s", holds ? "ok" : "FAILED");
}

static enum frag_err print_rules(const struct checks *c, FILE *out, bool color)
{
    const struct gates *g = c->question->gates;
    struct table t = {
        .columns = RULE_HEADS, .right = "nrprlrl", .optional = OPTIONAL};

    table_heads(&t, rule_heads, t.columns);
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < g->count; k++) {
            put_subject(&t, c->question, &c->items[i].on);
            put_rule(&t, &g->items[k], &c->items[i].facts);
        }
    FRAG_TRY(table_print(&t, out, color));
    fprintf(out, "%zu of %zu rules failed\n", checks_failed(c),
            c->count * g->count);
    return FRAG_OK;
}

/* -- polls --------------------------------------------------------------- */

static void put_period(struct table *t, frag_time ns)
{
    if (ns >= 1000000000)
        table_cell(t, false, "%g s", (double)ns / 1e9);
    else
        table_cell(t, false, "%g ms", (double)ns / 1e6);
}

static void put_lead(struct table *t, const struct poll_seen *s, frag_time ns)
{
    if (s->warned)
        table_cell(t, false, "%.3f s", (double)ns / 1e9);
    else
        table_cell(t, false, "-");
}

static void put_seen(struct table *t, const struct check_case *one,
                     const struct poll_seen *s)
{
    put_period(t, s->period);
    table_cell(t, false, "%s", poll_signal_names[s->signal]);
    table_size(t, s->peak);
    table_size(t, s->least);
    table_cell(t, false, "%.1f %%",
               s->peak ? 100 - 100 * (double)s->least / (double)s->peak : 0);
    table_cell(t, false, "%u %%", 100 * s->whole / POLL_PHASES);
    if (t->columns < POLL_HEADS)
        return;
    if (one->memory.died)
        table_cell(t, !s->warned, "%u %%", 100 * s->warned / POLL_PHASES);
    else
        table_cell(t, false, "no OOM");
    put_lead(t, s, s->shortest);
    put_lead(t, s, s->longest);
}

static enum frag_err print_polls(const struct checks *c, FILE *out, bool color)
{
    const struct check_question *q = c->question;
    struct table t = {
        .columns = POLL_HEADS, .right = "nrprrlrrrrrrr", .optional = OPTIONAL};

    if (q->capacity == FRAG_UNLIMITED)
        t.columns -= OOM_HEADS;
    table_heads(&t, poll_heads, t.columns);
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->items[i].seen_count; k++) {
            put_subject(&t, q, &c->items[i].on);
            put_seen(&t, &c->items[i], &c->items[i].seen[k]);
        }
    return table_print(&t, out, color);
}

enum frag_err check_text(const struct checks *c, FILE *out, bool color)
{
    const bool has_rules = c->question->gates->count > 0;

    if (has_rules)
        FRAG_TRY(print_rules(c, out, color));
    if (has_rules && c->question->period_count)
        fputc('\n', out);
    if (c->question->period_count)
        FRAG_TRY(print_polls(c, out, color));
    for (size_t i = 0; i < c->count; i++)
        subject_say_death(&c->items[i].on, out);
    return FRAG_OK;
}
