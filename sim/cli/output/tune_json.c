/* tune_json.c - the answer of `tune` as JSON. */
#include "sim/cli/output/tune_report.h"

static void json_result(struct frag_json *j, const char *key,
                        const struct tune_result *r)
{
    frag_json_object(j, key);
    frag_json_number(j, "peak_reserved_bytes", r->peak);
    frag_json_number(j, "driver_calls", r->calls);
    frag_json_real(j, "modelled_device_seconds", r->seconds);
    frag_json_count(j, "first_oom_event", r->first_oom);
    frag_json_text(j, "outcome", tune_outcome_words[r->outcome]);
    frag_json_count(j, "need_bytes", r->need ? r->need : UINT64_MAX);
    frag_json_bool(j, "need_is_least", !r->is_most);
    frag_json_count(j, "enough_bytes", r->enough ? r->enough : UINT64_MAX);
    frag_json_text(j, "odds", odds_words[r->odds.verdict]);
    frag_json_number(j, "lived", r->odds.lived);
    frag_json_number(j, "of", r->odds.of);
    frag_json_end(j);
}

static void json_case_name(struct frag_json *j, const struct tune_case *c)
{
    frag_json_text(j, "trace", c->name);
    frag_json_number(j, "device", c->device->device);
    frag_json_count(j, "capacity_bytes",
                    frag_bound_of(c->bound, FRAG_BOUND_CAPACITY));
    frag_json_count(j, "process_limit_bytes",
                    frag_bound_of(c->bound, FRAG_BOUND_LIMIT));
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
        json_case_name(j, c);
        frag_json_text(j, "bound_source", question_words[a->about[i].source]);
        frag_json_count(j, "recorded_peak_bytes",
                        c->peak ? c->peak : UINT64_MAX);
        frag_json_number(j, "requested_peak_bytes", c->live.bytes);
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

static void json_rung(struct frag_json *j, const char *key,
                      const struct tune_rung *r)
{
    if (!r) {
        frag_json_null(j, key);
        return;
    }
    frag_json_object(j, key);
    frag_json_text(j, "settings", r->text);
    frag_json_bool(j, "recorded", r->recorded);
    frag_json_text(j, "outcome", tune_outcome_words[r->outcome]);
    frag_json_text(j, "odds", odds_words[r->odds.verdict]);
    frag_json_number(j, "lived", r->odds.lived);
    frag_json_number(j, "of", r->odds.of);
    frag_json_number(j, "knobs", r->knobs);
    frag_json_real(j, "saving_ratio", tune_saving(r));
    frag_json_number(j, "driver_calls", r->calls);
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
