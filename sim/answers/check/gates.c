/* gates.c - measures a trace and judges it by rules. */
#include "sim/answers/check/gates.h"

#include <math.h>
#include <string.h>

#include "traces/steps/complete.h"

#define AT(field) offsetof(struct gate_facts, field)
/* clang-format off */
const struct gate_measure gate_measures[] = {
    {"peak_requested", GATE_BYTES, AT(peak_requested),
     "largest number of bytes that the program requested for live blocks"},
    {"peak_allocated", GATE_BYTES, AT(peak_allocated),
     "largest number of bytes that the policy granted to live blocks"},
    {"peak_reserved", GATE_BYTES, AT(peak_reserved),
     "largest number of bytes that the policy held"},
    {"end_reserved", GATE_BYTES, AT(end_reserved),
     "bytes that the policy held after the last event"},
    {"fragmentation", GATE_SHARE, AT(fragmentation),
     "1 - peak allocated / peak reserved"},
    {"growth_per_step", GATE_BYTES, AT(growth),
     "growth of the live bytes a step: the median of the slopes; not known "
     "for fewer than two steps"},
    {"steps", GATE_COUNT, AT(steps), "complete steps that were found"},
    {"events", GATE_COUNT, AT(events), "events of the trace"},
    {"deaths", GATE_COUNT, AT(deaths),
     "1 if the recorded job died of a request that was not met, else 0"},
    {"ooms", GATE_COUNT, AT(ooms),
     "requests that failed; without a capacity, those of the recording"},
    {"retries", GATE_COUNT, AT(retries),
     "requests that were not met at the first attempt; without a capacity, "
     "allocations of the recording during which segments were returned"},
    {"driver_calls", GATE_COUNT, AT(calls),
     "calls of the driver that allocate, free, map or unmap memory, copy or "
     "wait"},
    {NULL, GATE_COUNT, 0, NULL},
};
/* clang-format on */
#undef AT

/* -- what was recorded --------------------------------------------------- */

static bool is_refusal(uint32_t action)
{
    return action == FRAG_SEGMENT_FREE || action == FRAG_SEGMENT_UNMAP ||
           action == FRAG_OOM_REPORTED;
}

/* Adds what the recording reports to what the replay counted: the larger of
 * both is taken. */
static void count_recorded(const struct frag_device_trace *d,
                           struct gate_facts *f)
{
    const struct frag_recorded *r = &d->recorded;
    uint64_t ooms = 0, retries = 0, last = FRAG_NEVER;

    for (uint64_t i = 0; i < r->action_count; i++) {
        const struct frag_recorded_action *a = &r->actions[i];

        ooms += a->action == FRAG_OOM_REPORTED;
        if (!is_refusal(a->action) || a->event == last ||
            a->event >= d->count || d->op[a->event] != FRAG_ALLOC)
            continue;
        retries++;
        last = a->event;
    }
    f->ooms = fmax(f->ooms, (double)ooms);
    f->retries = fmax(f->retries, (double)retries);
}

enum frag_err gates_measure(const struct replay_settings *s,
                            const struct input *in, frag_size capacity,
                            struct gate_facts *out, struct frag_error *e)
{
    struct replayed_steps steps;
    struct frag_run run;

    FRAG_TRY(replayed_steps(s, in, &steps, e));
    FRAG_TRY(replayed_run(s, in, capacity == FRAG_UNLIMITED ? 0 : capacity,
                          &run, e));
    *out = (struct gate_facts){
        .peak_requested = (double)run.summary.peak_requested,
        .peak_allocated = (double)run.summary.peak_allocated,
        .peak_reserved = (double)run.summary.peak_reserved,
        .end_reserved = (double)run.summary.end_reserved,
        .fragmentation = run.summary.fragmentation_ratio,
        .growth = steps.count > 1 ? (double)steps.growth : NAN,
        .steps = (double)steps.count,
        .events = (double)run.summary.events,
        .deaths = frag_fatal_request(in->device) != FRAG_NEVER,
        .ooms = (double)run.summary.num_ooms,
        .retries = (double)run.summary.num_alloc_retries,
        .calls = (double)replayed_calls(&run.summary),
    };
    if (capacity == FRAG_UNLIMITED)
        count_recorded(in->device, out);
    frag_run_free(&run);
    return FRAG_OK;
}

/* -- judgement ----------------------------------------------------------- */

double gate_found(const struct gate_measure *m, const struct gate_facts *f)
{
    double value;

    memcpy(&value, (const char *)f + m->offset, sizeof(value));
    return value;
}

bool gate_holds(const struct gate *g, const struct gate_facts *f)
{
    const double found = gate_found(g->measure, f);

    return g->at_least ? found >= g->limit : found <= g->limit;
}

const char *gate_value_text(const struct gate_measure *m, double value,
                            char text[GATE_TEXT])
{
    if (isnan(value))
        snprintf(text, GATE_TEXT, "unknown");
    else if (m->unit == GATE_BYTES)
        snprintf(text, GATE_TEXT, "%s%s", value < 0 ? "-" : "",
                 FRAG_SHOW_SIZE((frag_size)fabs(value)));
    else if (m->unit == GATE_SHARE)
        snprintf(text, GATE_TEXT, "%.2f %%", 100 * value);
    else
        snprintf(text, GATE_TEXT, "%.0f", value);
    return text;
}

static const char *sign(const struct gate *g)
{
    return g->at_least ? ">=" : "<=";
}

const char *gate_text(const struct gate *g, char text[GATE_TEXT])
{
    char limit[GATE_TEXT];

    snprintf(text, GATE_TEXT, "%s %s %.32s", g->measure->name, sign(g),
             gate_value_text(g->measure, g->limit, limit));
    return text;
}

void gate_json(struct frag_json *j, const struct gate *g,
               const struct gate_facts *f)
{
    static const char *const limits[] = {"limit_bytes", "limit_ratio",
                                         "limit_count"};
    static const char *const founds[] = {"found_bytes", "found_ratio",
                                         "found_count"};

    char rule[GATE_TEXT];

    frag_json_text(j, "rule", gate_text(g, rule));
    frag_json_text(j, "measure", g->measure->name);
    frag_json_text(j, "relation", sign(g));
    frag_json_real(j, limits[g->measure->unit], g->limit);
    frag_json_real(j, founds[g->measure->unit], gate_found(g->measure, f));
    frag_json_number(j, "line", g->line);
    frag_json_bool(j, "holds", gate_holds(g, f));
}
