/* tune_json.c - the answer of `tune` as JSON. */
#include "sim/cli/output/tune_report.h"

#include "sim/results/row.h"

/* clang-format off */ /* clang-format on */

static void json_result(struct frag_json *j, const char *key,
                        const struct tune_result *r)
{
    JSON_OBJECT(j, key, tune_result, r, NUMBER("peak_reserved_bytes", peak),
                NUMBER("driver_calls", calls),
                NUMBER("modelled_device_seconds", seconds),
                NUMBER("first_oom_event", first_oom),
                WORD("outcome", outcome, tune_outcome_words),
                POSITIVE("need_bytes", need), NOT("need_is_least", is_most),
                POSITIVE("enough_bytes", enough),
                WORD("odds", odds.verdict, odds_words),
                NUMBER("lived", odds.lived), NUMBER("of", odds.of));
}

static void json_rung(struct frag_json *j, const char *key,
                      const struct tune_rung *r)
{
    JSON_OBJECT(j, key, tune_rung, r, TEXT("settings", text),
                NUMBER("recorded", recorded),
                WORD("outcome", outcome, tune_outcome_words),
                WORD("odds", odds.verdict, odds_words),
                NUMBER("lived", odds.lived), NUMBER("of", odds.of),
                NUMBER("knobs", knobs), NUMBER("saving_ratio", saving),
                NUMBER("driver_calls", calls));
}

static void json_notes(struct frag_json *j, const struct tune_answer *a,
                       size_t i)
{
    const struct frag_trace *t = a->ladder->cases[i].trace;
    char text[TUNE_NOTE];

    frag_json_array(j, "notes");
    for (uint32_t k = 0; k < t->note_count; k++)
        frag_json_text(j, NULL, t->notes[k]);
    for (size_t k = 0; k < a->notes[i].count; k++)
        frag_json_text(j, NULL, tune_note(a, i, k, text));
    frag_json_end(j);
}

static void json_cases(struct frag_json *j, const struct tune_answer *a)
{
    const struct tune_ladder *l = a->ladder;

    frag_json_new_array(j, 3, "cases");
    for (size_t i = 0; i < l->case_count; i++) {
        const struct tune_case *c = &l->cases[i];

        frag_json_new_object(j, 4, NULL);
        frag_json_text(j, "trace", c->name);
        frag_json_number(j, "device", c->device->device);
        JSON_ROW(j, tune_case, c, BOUND(bound));
        frag_json_text(j, "bound_source", question_words[a->about[i].source]);
        JSON_ROW(j, tune_case, c, POSITIVE("recorded_peak_bytes", peak),
                 NUMBER("requested_peak_bytes", live.bytes));
        json_result(j, "replayed", &l->base[i]);
        json_result(j, "best", &l->best->results[i]);
        frag_json_text(j, "further_unknown",
                       c->completion.untold
                           ? frag_untold_words[c->completion.untold]
                           : NULL);
        json_notes(j, a, i);
        frag_json_end(j);
    }
    frag_json_end(j);
}

void tune_print_json(const struct tune_answer *a, struct frag_json *j)
{
    const struct tune_ladder *l = a->ladder;

    frag_json_new_object(j, 2, NULL);
    json_rung(j, "chosen", l->chosen);
    frag_json_line(j, 3);
    json_rung(j, "best", l->best);
    frag_json_line(j, 3);
    frag_json_number(j, "settings_tried", l->count);
    json_cases(j, a);
    frag_json_new_array(j, 3, "ladder");
    for (size_t i = 0; i < l->count; i++) {
        frag_json_line(j, 4);
        json_rung(j, NULL, &l->rungs[i]);
    }
    frag_json_end(j);
    frag_json_end(j);
}
