/* check_text.c - prints rules and what was found as a table. */
#include "sim/cli/answers/text/check_text.h"

#include <inttypes.h>

#include "sim/cli/answers/text/subject_text.h"
#include "sim/cli/output/table.h"

static void put_subject(struct table *t, const struct check_question *q,
                        const struct subject *on)
{
    table_cell(t, false, "%s", on->trace);
    table_cell(t, false, "%" PRIu32, on->device);
    table_cell(t, false, "%s", on->policy);
    table_size(t, q->capacity);
}

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
    struct table t =
        table_of("nrprlrl", "trace|device|policy|capacity|rule|found|outcome");

    t.optional = 4;
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

enum frag_err check_text(const struct checks *c, FILE *out, bool color)
{
    FRAG_TRY(print_rules(c, out, color));
    for (size_t i = 0; i < c->count; i++)
        subject_say_death(&c->items[i].on, out);
    return FRAG_OK;
}
