/* ladder.c - the rungs, their runs, and the choice. */
#include "sim/experiments/tune/ladder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policies.h"
#include "policies/torch/versions.h"
#include "sim/experiments/capacity/spans.h"
#include "traces/edit/edit.h"
#include "traces/text.h"
#include "traces/torch_sizes.h"

const char *const tune_outcome_words[TUNE_OUTCOMES] = {
    [TUNE_FAILS] = "fails",
    [TUNE_SERVES] = "serves what was recorded",
    [TUNE_SURVIVES] = "survives",
};

/* ---- the rungs ---- */

#define EXPANDABLE "expandable_segments:True"

/* From the simplest on. */
static const char *const table[] = {
    "", EXPANDABLE, "max_split_size_mb:128",
    EXPANDABLE ",large_segment_size_mb:12", /* its pages */
};

const char *const tune_host_settings[] = {
    "pinned_max_round_threshold_mb:1",
    "pinned_max_round_threshold_mb:64",
    "pinned_max_cached_size_mb:64",
    "pinned_max_cached_size_mb:1024",
    NULL,
};

enum {
    TABLE = sizeof(table) / sizeof(*table),
    HOST_TABLE = sizeof(tune_host_settings) / sizeof(*tune_host_settings) - 1,
};

_Static_assert(TABLE + HOST_TABLE + 1 <= TUNE_RUNGS,
               "the recorded settings are a rung too");

/* A row of both tables, that of the host behind the other. */
static const char *row_of(size_t i)
{
    return i < TABLE ? table[i] : tune_host_settings[i - TABLE];
}

/* Whether a case is a device that the row of the tables is for. */
static bool is_for_any(const struct tune_ladder *l, size_t row)
{
    for (size_t i = 0; i < l->case_count; i++) {
        const bool is_host = l->cases[i].device->device == FRAG_HOST_DEVICE;

        if (!row || is_host == (row >= TABLE))
            return true;
    }
    return false;
}

/* Where the key after this one begins; NULL at the end. A list has commas too.
 */
static const char *next_key(const char *at)
{
    const char *list = strpbrk(at, ",[");

    if (list && *list == '[')
        list = strchr(list, ']');
    at = list ? strchr(list, ',') : NULL;
    return at ? at + 1 : NULL;
}

bool tune_has_key(const char *key)
{
    for (size_t i = 0; i < TABLE + HOST_TABLE; i++)
        if (torch_value_of(row_of(i), key))
            return true;
    return false;
}

static unsigned count_keys(const char *text)
{
    unsigned count = 0;

    for (; text && *text; text = next_key(text))
        count++;
    return count;
}

/* Whether the release knows all keys, and none is left out. */
static bool is_allowed(const struct tune_ladder *l, const char *text)
{
    for (const struct torch_setting *s = torch_known_settings; s->name; s++)
        if (s->since > l->version && torch_value_of(text, s->name))
            return false;
    for (size_t i = 0; l->without && i < l->without->count; i++)
        if (torch_value_of(text, l->without->items[i]))
            return false;
    return true;
}

unsigned tune_release(const struct tune_case *cases, size_t count)
{
    unsigned oldest = TORCH_NEWEST, first, last;

    for (size_t i = 0; i < count; i++) {
        if (!release_range(cases[i].trace, &first, &last))
            first = torch_version_of(
                cases[i].trace->settings ? cases[i].trace->settings : "");
        oldest = first < oldest ? first : oldest;
    }
    return oldest;
}

static const char *recorded_of(const struct tune_case *c)
{
    return c->trace->settings ? c->trace->settings : "";
}

/* The recorded settings of all cases without the padding, which no user can
 * set; NULL if they differ. */
static const char *common_settings(struct tune_ladder *l)
{
    const char *text = recorded_of(&l->cases[0]);

    for (size_t i = 1; i < l->case_count; i++)
        if (strcmp(text, recorded_of(&l->cases[i])) != 0)
            return NULL;
    *l->recorded = '\0';
    for (const char *next; text && *text; text = next) {
        next = next_key(text);
        if (torch_value_of(text, TORCH_PADDING_KEY) !=
            text + strlen(TORCH_PADDING_KEY ":"))
            text_add(l->recorded, TUNE_TEXT, ",", "%.*s",
                     (int)(next ? (size_t)(next - 1 - text) : strlen(text)),
                     text);
    }
    return l->recorded;
}

static void add_rung(struct tune_ladder *l, const char *text, bool recorded)
{
    l->rungs[l->count++] = (struct tune_rung){
        .text = text, .recorded = recorded, .knobs = count_keys(text)};
}

/* Whether the two texts mean the same: one may have keys that nobody knows. */
static bool means_same(const char *a, const char *b)
{
    struct frag_params *left = NULL, *right = NULL;
    const bool same =
        !strcmp(a, b) ||
        (frag_params_read(&frag_policy_torch, a, &left, NULL) == FRAG_OK &&
         frag_params_read(&frag_policy_torch, b, &right, NULL) == FRAG_OK &&
         !strcmp(left->text, right->text));

    free(left);
    free(right);
    return same;
}

static void set_rungs(struct tune_ladder *l)
{
    const char *recorded = common_settings(l);

    l->count = 0;
    add_rung(l, recorded, true);
    for (size_t i = 0; i < TABLE + HOST_TABLE; i++)
        if (is_for_any(l, i) && is_allowed(l, row_of(i)) &&
            (!recorded || !(i < TABLE ? means_same(recorded, row_of(i))
                                      : !strcmp(recorded, row_of(i)))))
            add_rung(l, row_of(i), false);
}

/* ---- one run ---- */

/* Writes the policy: the recorded settings under the release that repeats the
 * recording, or others under the ladder's. */
static void put_policy(const struct tune_ladder *l, const struct tune_case *on,
                       const char *text, char policy[TUNE_TEXT])
{
    const char *recorded = on->trace->settings;

    if (text || !recorded)
        snprintf(policy, TUNE_TEXT, "torch:%s%storch_version:2.%u",
                 text ? text : "", text && *text ? "," : "",
                 torch_modelled_as(l->version));
    else
        snprintf(policy, TUNE_TEXT, "torch@recorded");
}

bool tune_is_open(const struct tune_case *c)
{
    return c->completion.reach && c->bound.bytes != FRAG_UNLIMITED;
}

static enum tune_outcome outcome_of(const struct tune_case *c,
                                    const struct tune_result *r)
{
    const struct frag_device_trace *d = c->device;

    if (r->first_oom < d->count - d->added)
        return TUNE_FAILS;
    if (tune_is_open(c))
        return TUNE_SERVES;
    return r->first_oom == FRAG_NEVER ? TUNE_SURVIVES : TUNE_FAILS;
}

static enum frag_err run_policy(const struct tune_ladder *l,
                                const struct tune_case *on,
                                struct frag_bound bound,
                                const struct policy_choice *policy,
                                struct frag_run *out, struct frag_error *e)
{
    struct frag_run_identity id = {
        .policy = policy->text,
        .policy_used = policy->policy,
        .bound = bound,
        .repeats = bound_repeats(policy, bound, on->recorded),
    };
    struct stop asked = l->on.stop; /* frag_replay's user is not const */
    struct frag_params *params;
    enum frag_err err;

    FRAG_TRY(
        policy_choice_params_of(policy, on->trace, on->device, &params, e));
    err = cell_run(l->settings, on->device, &id, params, stop_tick, &asked, out,
                   e);
    free(params);
    return err;
}

/* Runs one case with the settings `text`; NULL: those of its trace. */
static enum frag_err tune_run(const struct tune_ladder *l,
                              const struct tune_case *on, const char *text,
                              struct frag_bound bound, struct tune_result *out,
                              struct frag_error *e)
{
    char name[TUNE_TEXT];
    struct policy_choice policy;
    struct frag_run run;
    enum frag_err err;

    put_policy(l, on, text, name);
    FRAG_TRY(policy_choice_read(name, &policy, e));
    err = run_policy(l, on, bound, &policy, &run, e);
    policy_choice_free(&policy);
    FRAG_TRY(err);
    *out = (struct tune_result){
        .peak = run.summary.peak_reserved,
        .seconds = run.summary.modelled_device_seconds,
        .first_oom = run.summary.first_oom_event,
    };
    for (size_t k = 0; k < FRAG_CALL_COUNT; k++)
        out->calls += run.summary.calls[k];
    out->outcome = outcome_of(on, out);
    frag_run_free(&run);
    return FRAG_OK;
}

/* Runs a case as it was recorded; without a bound if it dies so. */
static enum frag_err run_base(const struct tune_ladder *l,
                              const struct tune_case *on,
                              struct tune_result *out, struct frag_error *e)
{
    FRAG_TRY(tune_run(l, on, NULL, on->recorded, out, e));
    return out->first_oom == FRAG_NEVER
               ? FRAG_OK
               : tune_run(l, on, NULL, FRAG_NO_BOUND, out, e);
}

/* The settings with which a rung runs; NULL: the recorded ones. */
static const char *run_text(const struct tune_rung *r)
{
    return r->recorded ? NULL : r->text;
}

/* The peak of a case if all its requests were in the default pool. */
static enum frag_err peak_in_one_pool(const struct tune_ladder *l,
                                      const struct tune_case *on,
                                      const struct policy_choice *policy,
                                      frag_size *peak, struct frag_error *e)
{
    static const char *const text = "pool:to=0:0";
    struct tune_case merged = *on;
    struct frag_edits *edits;
    struct frag_trace *trace;
    struct frag_run run;
    enum frag_err err;

    FRAG_TRY(frag_edits_read(&text, 1, &edits, e));
    err = frag_edits_apply(edits, on->trace, &trace, e);
    frag_edits_free(edits);
    FRAG_TRY(err);
    merged.device = frag_trace_device(trace, on->device->device);
    err = run_policy(l, &merged, on->bound, policy, &run, e);
    if (err == FRAG_OK) {
        *peak = run.summary.peak_reserved;
        frag_run_free(&run);
    }
    frag_trace_close(trace);
    return err;
}

/* Adds what the private pools cost, if they do. */
static enum frag_err note_pools(const struct tune_ladder *l,
                                const struct tune_case *on,
                                const struct policy_choice *policy,
                                const struct frag_summary *with,
                                struct cell_notes *out, struct frag_error *e)
{
    frag_size peak;

    if (on->device->pool_count < 2 || with->num_ooms ||
        out->count == CELL_NOTES)
        return FRAG_OK;
    FRAG_TRY(peak_in_one_pool(l, on, policy, &peak, e));
    if (peak < with->peak_reserved)
        snprintf(out->texts[out->count++], sizeof(*out->texts),
                 "without private pools the peak reserved would be %s, not %s: "
                 "a bound and no advice, for a captured graph keeps its "
                 "addresses",
                 FRAG_SHOW_SIZE(peak), FRAG_SHOW_SIZE(with->peak_reserved));
    return FRAG_OK;
}

enum frag_err tune_notes(const struct tune_ladder *l, size_t i,
                         const struct tune_rung *rung, struct cell_notes *out,
                         struct frag_error *e)
{
    char name[TUNE_TEXT];
    struct policy_choice policy;
    struct frag_run run;
    enum frag_err err;

    put_policy(l, &l->cases[i], run_text(rung), name);
    FRAG_TRY(policy_choice_read(name, &policy, e));
    err = run_policy(l, &l->cases[i], l->cases[i].bound, &policy, &run, e);
    if (err == FRAG_OK) {
        const struct cell_result result = {
            .settings = l->settings,
            .policy = &policy,
            .trace = l->cases[i].trace,
            .device = l->cases[i].device,
            .bound = l->cases[i].bound,
            .summary = &run.summary,
            .params = run.params,
        };

        err = cell_notes(&result, out, e);
        if (err == FRAG_OK)
            err = note_pools(l, &l->cases[i], &policy, &run.summary, out, e);
        frag_run_free(&run);
    }
    policy_choice_free(&policy);
    return err;
}

/* ---- the need ---- */

enum { EVENTS = 6000000 }; /* of the replays that seek a need */

frag_size tune_total(struct frag_bound bound)
{
    return bound.kind == FRAG_BOUND_CAPACITY && bound.bytes < FRAG_TOTAL_MOST
               ? bound.bytes
               : FRAG_H200_TOTAL;
}

/* PyTorch reserves addresses for expandable segments by the total of the
 * device: with that of the device in question the need is found to the byte,
 * and the run under the bound agrees with it. */
static enum frag_err find_need(const struct tune_ladder *l,
                               const struct tune_case *on,
                               const struct frag_params *params,
                               struct tune_result *out, struct frag_error *e)
{
    struct stop asked = l->on.stop;
    struct frag_capacity_span unlimited, found = {.from = 0};
    struct cell_settings settings = *l->settings;
    struct frag_capacity_spec spec;

    if (!settings.total)
        settings.total = tune_total(on->bound);
    spec = frag_capacity_of_cell(&settings, on->device, params, on->bound.kind);
    spec.progress = stop_tick;
    spec.user = &asked;
    spec.runs = 1 + EVENTS / (on->device->count + 1);
    FRAG_TRY(frag_capacity_at(&spec, FRAG_UNLIMITED, &unlimited, e));
    if (!frag_capacity_survives(&unlimited))
        return FRAG_OK;
    FRAG_TRY(frag_capacity_need(&spec, &unlimited, &found, e));
    out->need = found.from;
    out->is_most = found.cut || !found.exact;
    out->enough = (frag_size)ceil((double)found.from * on->completion.spread);
    return FRAG_OK;
}

static enum frag_err set_need(const struct tune_ladder *l,
                              const struct tune_case *on, const char *text,
                              struct tune_result *out, struct frag_error *e)
{
    char name[TUNE_TEXT];
    struct policy_choice policy;
    struct frag_params *params;
    enum frag_err err;

    if (on->device->device == FRAG_HOST_DEVICE)
        return FRAG_OK; /* it has no bound */
    put_policy(l, on, text, name);
    FRAG_TRY(policy_choice_read(name, &policy, e));
    err = policy_choice_params_of(&policy, on->trace, on->device, &params, e);
    policy_choice_free(&policy);
    FRAG_TRY(err);
    err = find_need(l, on, params, out, e);
    free(params);
    return err;
}

/* ---- all runs ---- */

static void tell(struct tune_ladder *l, uint64_t total)
{
    pthread_mutex_lock(&l->lock);
    l->done++;
    if (l->progress.told)
        l->progress.told(l->progress.user, l->done, total);
    pthread_mutex_unlock(&l->lock);
}

static enum frag_err run_rung(const struct tune_ladder *l,
                              const struct tune_case *on, const char *text,
                              struct tune_result *out, struct frag_error *e)
{
    FRAG_TRY(tune_run(l, on, text, on->bound, out, e));
    FRAG_TRY(set_need(l, on, text, out, e));
    out->odds = odds_of(
        &(const struct odds_question){.completion = &on->completion,
                                      .serves = out->outcome != TUNE_FAILS,
                                      .went_on = on->went_on,
                                      .need = out->need,
                                      .bound = on->bound.bytes});
    return FRAG_OK;
}

/* Row i of the results: first those of `base`, then those of each rung. */
static enum frag_err run_row(void *user, size_t i, struct frag_error *e)
{
    struct tune_ladder *l = user;
    const struct tune_case *on = &l->cases[i % l->case_count];
    const size_t row = i / l->case_count;

    FRAG_TRY(
        row ? run_rung(l, on, run_text(&l->rungs[row - 1]), &l->results[i], e)
            : run_base(l, on, &l->results[i], e));
    tell(l, (l->count + 1) * l->case_count);
    return FRAG_OK;
}

/* ---- the judgement ---- */

/* A rung's need and the recorded settings', or without one of these the peaks.
 */
static double ratio_of(const struct tune_result *r,
                       const struct tune_result *recorded)
{
    return r->need && recorded->need
               ? (double)r->need / (double)recorded->need
               : ((double)r->peak + 1) / ((double)recorded->peak + 1);
}

static void judge(const struct tune_ladder *l, struct tune_rung *r)
{
    double sum = 0;

    r->outcome = TUNE_SURVIVES;
    r->odds = r->results[0].odds;
    for (size_t i = 0; i < l->case_count; i++) {
        const struct tune_result *found = &r->results[i];

        if (found->outcome < r->outcome)
            r->outcome = found->outcome;
        if (odds_less(&found->odds, &r->odds))
            r->odds = found->odds;
        sum += log(ratio_of(found, &l->rungs[0].results[i]));
        r->calls += found->calls;
    }
    r->ratio = exp(sum / (double)l->case_count);
    r->saving = r->outcome == TUNE_FAILS ? NAN : 1 - r->ratio;
}

bool tune_is_exact(const struct tune_ladder *l, size_t i)
{
    return l->cases[i].peak && l->base[i].peak == l->cases[i].peak;
}

/* Whether the recorded settings fail under the bound, whatever their run says:
 * the job died there, or it began before the recording, and a replay from its
 * recorded segments fails, where one that places its blocks afresh does not. */
static enum frag_err find_death(const struct tune_ladder *l,
                                const struct tune_case *c, bool *dies,
                                struct frag_error *e)
{
    struct tune_ladder there = *l;
    struct cell_settings settings = *l->settings;
    struct tune_result run;

    *dies = c->completion.reach && c->recorded.bytes != FRAG_UNLIMITED &&
            c->bound.bytes <= c->recorded.bytes;
    if (*dies || !c->device->initial || c->bound.bytes == FRAG_UNLIMITED)
        return FRAG_OK;
    settings.from_requests = false;
    there.settings = &settings;
    FRAG_TRY(tune_run(&there, c, NULL, c->bound, &run, e));
    *dies = run.outcome == TUNE_FAILS;
    return FRAG_OK;
}

/* If the run of the recorded settings is kinder than the truth, no other run
 * proves a thing. */
static enum frag_err judge_death(struct tune_ladder *l, size_t i,
                                 struct frag_error *e)
{
    const struct tune_case *c = &l->cases[i];
    const bool lives = l->rungs[0].results[i].outcome != TUNE_FAILS &&
                       l->rungs[0].results[i].need <= c->bound.bytes;
    bool dies;

    FRAG_TRY(find_death(l, c, &dies, e));
    if (dies)
        l->rungs[0].results[i].odds = (struct odds){.verdict = ODDS_NOT};
    for (size_t k = 1; k < l->count && dies && lives; k++) {
        struct odds *odds = &l->rungs[k].results[i].odds;

        if (odds->verdict == ODDS_ENOUGH)
            *odds = (struct odds){.verdict = ODDS_TRY};
    }
    return FRAG_OK;
}

/* ---- the choice ---- */

/* Whether a rung is better than a simpler one: its odds are, or each further
 * knob, or another setting in its place, gives enough room. */
static bool is_better(const struct tune_rung *r,
                      const struct tune_rung *simpler)
{
    const unsigned knobs =
        r->knobs > simpler->knobs ? r->knobs - simpler->knobs : 1;

    if (r->odds.verdict != simpler->odds.verdict)
        return odds_less(&simpler->odds, &r->odds);
    return simpler->ratio - r->ratio >= knobs * TUNE_WORTH;
}

/* Whether some case has a bound, within which it has to stay. */
static bool is_bounded(const struct tune_ladder *l)
{
    for (size_t i = 0; i < l->case_count; i++)
        if (l->cases[i].bound.bytes != FRAG_UNLIMITED)
            return true;
    return false;
}

const struct tune_rung *tune_choose(const struct tune_ladder *l)
{
    const struct tune_rung *best = &l->rungs[0];

    if (is_bounded(l) && best->odds.verdict == ODDS_ENOUGH)
        return best;
    for (size_t i = 1; i < l->count; i++)
        if (is_better(&l->rungs[i], best))
            best = &l->rungs[i];
    return best;
}

const struct tune_rung *tune_rung_of(const struct tune_ladder *l,
                                     const char *text)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->rungs[i].text && !strcmp(l->rungs[i].text, text))
            return &l->rungs[i];
    return NULL;
}

/* ---- all ---- */

enum frag_err tune_case_make(const struct question *q, const char *name,
                             const struct frag_trace *whole,
                             const struct frag_device_trace *device,
                             struct tune_case *out, struct frag_error *e)
{
    const struct recording r = recording_of(q->trace, q->device);

    *out = (struct tune_case){
        .name = name,
        .device = device,
        .trace = whole,
        .bound = q->bound,
        .recorded = r.bound,
        .completion = r.completion,
        .peak = r.peak,
        .went_on = r.failed > 1,
    };
    return requested_peak_find(device, &out->live, e);
}

enum frag_err tune_climb(struct tune_ladder *l, struct frag_error *e)
{
    size_t rows;

    pthread_mutex_init(&l->lock, NULL);
    set_rungs(l);
    rows = (l->count + 1) * l->case_count;
    l->results = calloc(rows, sizeof(*l->results));
    if (!l->results)
        return frag_no_memory(e, "the settings tried");
    l->base = l->results;
    for (size_t i = 0; i < l->count; i++)
        l->rungs[i].results = &l->results[(i + 1) * l->case_count];
    if (l->progress.began)
        l->progress.began(l->progress.user, l->cases, l->case_count);
    FRAG_TRY(parallel_run(&l->on, rows, run_row, l, e));
    for (size_t i = 0; i < l->case_count; i++)
        FRAG_TRY(judge_death(l, i, e));
    for (size_t i = 0; i < l->count; i++)
        judge(l, &l->rungs[i]);
    l->best = tune_choose(l);
    if (l->best->odds.verdict == ODDS_ENOUGH)
        l->chosen = l->best;
    return FRAG_OK;
}

void tune_ladder_close(struct tune_ladder *l)
{
    if (l->results)
        pthread_mutex_destroy(&l->lock);
    free(l->results);
    l->results = NULL;
}
