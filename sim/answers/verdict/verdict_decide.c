/* verdict_decide.c - decides: the tables from causes to words, and from the
 * answers to one action. */
#include "sim/answers/verdict/verdict.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "sim/answers/sites.h"
#include "sim/arena/arena.h"
#include "traces/setting_changes.h"
#include "traces/text.h"
#include "traces/torch_sizes.h"

const char *const verdict_action_words[VERDICT_ACTION_COUNT] = {
#define X(name, word, text) word,
    VERDICT_ACTIONS(X)
#undef X
};

const char *const verdict_state_words[VERDICT_STATES] = {
    [VERDICT_DIED] = "died",         [VERDICT_CAUGHT] = "went_on",
    [VERDICT_WOULD] = "would_fail",  [VERDICT_FITS] = "fits",
    [VERDICT_UNSEEN] = "no_history",
};

/* The explanation of what happened. */
static const struct explain *subject_of(const struct verdict *v)
{
    return v->failure ? v->failure : v->here;
}

/* ---- what happened ---- */

/* Of a complete run, the peak is known. */
static void say_demand(const struct explain *x, char *text)
{
    if (!x->completion.reach && x->need > x->limit_most)
        snprintf(text, VERDICT_TEXT, "its own data needed %s more than it had",
                 FRAG_SHOW_SIZE(x->need - x->limit_most));
    else
        snprintf(text, VERDICT_TEXT,
                 "its own data filled it, and a request of %s found no room",
                 FRAG_SHOW_SIZE(x->request));
}

static void say_growth(const struct explain *x, char *text)
{
    if (x->growth_rate >= 1)
        snprintf(text, VERDICT_TEXT, "it kept %s more in each step, a leak",
                 FRAG_SHOW_SIZE((frag_size)x->growth_rate));
    else
        snprintf(text, VERDICT_TEXT,
                 "it kept more and more memory, a leak of %s by then",
                 FRAG_SHOW_SIZE(x->grown));
}

static void say_fragmentation(const struct explain *x, char *text)
{
    snprintf(text, VERDICT_TEXT,
             "enough was free, but no free piece fitted its request of %s",
             FRAG_SHOW_SIZE(x->request));
}

static void say_cache(const struct explain *x, char *text)
{
    snprintf(text, VERDICT_TEXT,
             "%s were free, but reserved for other streams or pools",
             FRAG_SHOW_SIZE(x->other_cached));
}

static void say_outside(const struct explain *x, char *text)
{
    snprintf(text, VERDICT_TEXT,
             "memory outside PyTorch, such as other programs, held %s",
             FRAG_SHOW_SIZE(x->outside));
}

/* The clause of each cause, with one number. */
static void (*const clauses[EXPLAIN_CAUSE_COUNT])(const struct explain *x,
                                                  char *text) = {
    [EXPLAIN_DEMAND] = say_demand,
    [EXPLAIN_GROWTH] = say_growth,
    [EXPLAIN_FRAGMENTATION] = say_fragmentation,
    [EXPLAIN_CACHE] = say_cache,
    [EXPLAIN_OUTSIDE] = say_outside,
};

static const char survived_there[] =
    "The recorded job survived, but would fail with the memory in question";
static const char *const openings[VERDICT_STATES] = {
    [VERDICT_DIED] = "The job ran out of GPU memory",
    [VERDICT_CAUGHT] = "A request failed, and the program went on",
    [VERDICT_WOULD] = survived_there,
};

/* The device had memory left where the job died at the limit of its process. */
static const char *opening_of(const struct verdict *v)
{
    const enum explain_limit source =
        v->failure ? v->failure->limit_source : EXPLAIN_LIMIT_NONE;

    return v->state == VERDICT_DIED && (source == EXPLAIN_LIMIT_GIVEN ||
                                        source == EXPLAIN_LIMIT_INFERRED)
               ? "The job reached the memory limit of its process"
               : openings[v->state];
}

enum { SOON = 1000000 }; /* steps */

/* The steps until a leak has filled the memory that is free; 0: not known. */
static double steps_left(const struct verdict *v)
{
    const frag_size bound = v->question.about.bound.bytes,
                    need = v->needs[0].bytes;
    const double rate = subject_of(v)->growth_rate;

    return rate >= 1 && need < bound ? (double)(bound - need) / rate : 0;
}

/* Whether a job leaks so much that it matters; of a leak without marked steps,
 * nobody can tell. */
static bool is_leaking(const struct verdict *v)
{
    return subject_of(v)->growth == LEAKS_FOUND && steps_left(v) < SOON;
}

/* Whether the recording began after the job did. */
static bool is_late(const struct verdict *v)
{
    return v->device->initial > 0;
}

static void say_calm(const struct verdict *v, char *text)
{
    const frag_size need = v->needs[0].bytes;
    char clause[VERDICT_TEXT];

    if (v->state == VERDICT_UNSEEN)
        snprintf(text, VERDICT_TEXT,
                 "The file has %s history: it shows that %s were reserved, but "
                 "not what happened.",
                 subject_of(v)->replayed ? "too little" : "no",
                 FRAG_SHOW_SIZE(subject_of(v)->reserved));
    else if (is_leaking(v)) {
        say_growth(subject_of(v), clause);
        snprintf(text, VERDICT_TEXT,
                 "The job did not fail, but it will run out of memory: %.200s.",
                 clause);
    } else if (need != FRAG_UNLIMITED)
        snprintf(text, VERDICT_TEXT,
                 "The job did not fail, and it fits: %s needs %s%s.",
                 is_late(v) ? "what was recorded of it" : "it",
                 v->needs[0].is_most ? "at most " : "", FRAG_SHOW_SIZE(need));
    else
        snprintf(text, VERDICT_TEXT, "The job did not fail, and it fits.");
}

static void say_happened(struct verdict *v)
{
    char clause[VERDICT_TEXT];

    if (!openings[v->state]) {
        say_calm(v, v->happened);
        return;
    }
    clauses[v->cause](subject_of(v), clause);
    snprintf(v->happened, VERDICT_TEXT, "%s: %.400s.", opening_of(v), clause);
}

static enum verdict_state state_of(const struct verdict *v)
{
    const struct explain *x = v->failure;

    if (!v->here)
        return VERDICT_UNSEEN;
    if (x && x->failed)
        return frag_fatal_request(x->device) == x->event ? VERDICT_DIED
                                                         : VERDICT_CAUGHT;
    return v->here->failed ? VERDICT_WOULD : VERDICT_FITS;
}

/* ---- which action ---- */

static bool is_unseen(struct verdict *v)
{
    return v->state == VERDICT_UNSEEN;
}

static bool is_leak(struct verdict *v)
{
    const struct explain *x = subject_of(v);

    if (v->cause != EXPLAIN_GROWTH &&
        !(v->state == VERDICT_FITS && is_leaking(v)))
        return false;
    v->change = explain_served_by(x, EXPLAIN_STEP_FREE);
    if (!v->change)
        v->change = explain_served_by(v->here, EXPLAIN_STEP_FREE);
    return true;
}

/* The ladder's first rung has the recorded settings. */
static bool is_enough(struct verdict *v)
{
    return v->ladder.chosen && v->ladder.chosen->recorded;
}

/* The job would fit without what else was on the device. */
static bool is_outside(struct verdict *v)
{
    const frag_size bound = v->question.about.bound.bytes;
    const frag_size total = v->question.about.total;

    return v->cause == EXPLAIN_OUTSIDE &&
           (is_enough(v) ||
            v->needs[0].bytes <= (total > bound ? total : bound));
}

static bool has_setting(struct verdict *v)
{
    return v->ladder.chosen && !v->ladder.chosen->recorded;
}

static bool has_change(struct verdict *v)
{
    v->change = v->here->failed ? explain_program_advice(v->here) : NULL;
    return v->change != NULL;
}

static bool always(struct verdict *v)
{
    (void)v;
    return true;
}

/* ---- what to do ---- */

static void say_record(const struct verdict *v, char *text)
{
    (void)v;
    snprintf(text, VERDICT_TEXT,
             "Record the job again with its history: call "
             "torch.cuda.memory._record_memory_history() before it begins.");
}

/* How the job fares in the replay of an action. Nothing is predicted of a run
 * that is complete. */
static const char *fares(const struct verdict *v, bool is_survived)
{
    return is_survived || !v->completion.reach ? "no request fails"
           : v->completion.reach == FRAG_REACH_NO_STEP
               ? "no recorded request fails"
               : "no recorded or predicted request fails";
}

static void say_replay(const struct verdict *v, const struct explain_change *c,
                       char *text)
{
    text_add(text, VERDICT_TEXT, " ", "Replayed with this change and %s, %s",
             FRAG_SHOW_SIZE(v->question.about.bound.bytes),
             fares(v, c->result == EXPLAIN_SURVIVES));
    if (v->saved)
        text_add(text, VERDICT_TEXT, "", "; it saves %s at the peak",
                 FRAG_SHOW_SIZE(v->saved));
    text_add(text, VERDICT_TEXT, "", ".");
}

static void say_leak(const struct verdict *v, char *text)
{
    const struct explain *x = subject_of(v);
    char site[SITE_TEXT];

    if (x->grown_stack)
        snprintf(text, VERDICT_TEXT,
                 "Fix the leak: something keeps what %.200s allocates, often a "
                 "list of losses or outputs without .detach() or .item(); "
                 "`fragsim leaks' lists all places.",
                 site_text(x->trace, x->grown_stack, site));
    else
        snprintf(text, VERDICT_TEXT,
                 "Fix the leak: record with stacks, and `fragsim leaks' names "
                 "the line of the program.");
    if (v->change)
        text_add(
            text, VERDICT_TEXT, " ",
            "Replayed with what a step leaves behind freed one step later, "
            "%s; it saves %s at the peak.",
            fares(v, v->change->result == EXPLAIN_SURVIVES),
            FRAG_SHOW_SIZE(v->saved));
    else if (steps_left(v) > 0)
        text_add(text, VERDICT_TEXT, " ",
                 "It fills %s after about %.0f more steps.",
                 FRAG_SHOW_SIZE(v->question.about.bound.bytes), steps_left(v));
}

static void say_free_device(const struct verdict *v, char *text)
{
    snprintf(text, VERDICT_TEXT,
             "Free the GPU for this job, and start it again: nvidia-smi lists "
             "the programs on it. The job itself needs %s.",
             FRAG_SHOW_SIZE(v->needs[0].bytes));
}

static void say_start(const struct verdict *v, char *text)
{
    const struct frag_bound bound = v->question.about.bound;

    snprintf(text, VERDICT_TEXT,
             "Give the job %s%s and start it again, otherwise unchanged.",
             bound.kind == FRAG_BOUND_LIMIT ? "a memory limit of " : "",
             FRAG_SHOW_SIZE(bound.bytes));
}

static void say_nothing(const struct verdict *v, char *text)
{
    const frag_size need = verdict_need_bytes(&v->needs[0]);
    const frag_size bound = v->question.about.bound.bytes;

    if (v->state == VERDICT_FITS || v->state == VERDICT_CAUGHT)
        snprintf(text, VERDICT_TEXT, "%s",
                 is_late(v)
                     ? "Nothing to do for what was recorded; record from "
                       "the start of the job to know all of it."
                     : "Nothing to do.");
    else
        say_start(v, text);
    if (need <= bound)
        text_add(text, VERDICT_TEXT, " ", "Of %s, %s stay free.",
                 FRAG_SHOW_SIZE(bound), FRAG_SHOW_SIZE(bound - need));
}

static void say_setting(const struct verdict *v, char *text)
{
    snprintf(text, VERDICT_TEXT,
             "Start the job with %s%s and this setting. Replayed so, %s",
             v->question.about.bound.kind == FRAG_BOUND_LIMIT
                 ? "a memory limit of "
                 : "",
             FRAG_SHOW_SIZE(v->question.about.bound.bytes),
             fares(v, v->rung->outcome == TUNE_SURVIVES));
    if (v->saved)
        text_add(text, VERDICT_TEXT, "", "; the job needs %s less",
                 FRAG_SHOW_SIZE(v->saved));
    text_add(text, VERDICT_TEXT, "", ".");
}

/* How the sentence about a change begins, before its text, and how it ends. */
static const struct {
    const char *before, *after;
} changes[EXPLAIN_CHANGE_KINDS] = {
    [EXPLAIN_EMPTY_CACHE] = {"Call ", ""},
    [EXPLAIN_BATCH] = {"Use ", ", or accumulate gradients over batches of that "
                               "size"},
};

/* What is enough with a need: of a job that died, more than its completed trace
 * needs, and only its steps tell how much. */
static void add_enough(const struct verdict *v, const struct verdict_need *n,
                       char *text)
{
    const frag_size bound = v->question.about.bound.bytes;
    const bool is_known = n->bytes != FRAG_UNLIMITED;
    const frag_size bytes = is_known ? verdict_need_bytes(n) : 0;

    if (is_known && !n->is_open && bytes > bound)
        text_add(text, VERDICT_TEXT, " ", "at least %s", FRAG_SHOW_SIZE(bytes));
    else
        text_add(text, VERDICT_TEXT, " ",
                 "more than %s; how much more is not known",
                 FRAG_SHOW_SIZE(bytes > bound ? bytes : bound));
}

static void say_change(const struct verdict *v, char *text)
{
    const struct explain_change *c = v->change;
    const char *before = changes[c->kind].before;
    const char *after = changes[c->kind].after;
    const size_t begin = before ? strlen(before) : 0;

    snprintf(text, VERDICT_TEXT, "%s%.511s%s.", before ? before : "", c->text,
             after ? after : "");
    if (!begin)
        *text = (char)toupper((unsigned char)*text);
    say_replay(v, c, text);
    if (!v->completion.reach)
        return;
    text_add(text, VERDICT_TEXT, " ", "Or give the job");
    add_enough(v, &v->needs[0], text);
    text_add(text, VERDICT_TEXT, "", ".");
}

static void say_device(const struct verdict *v, char *text)
{
    const bool is_limit = v->question.about.bound.kind == FRAG_BOUND_LIMIT;
    const struct verdict_need *need = &v->needs[0], *other = &v->needs[1];

    snprintf(text, VERDICT_TEXT, "%s",
             is_limit ? "Raise the memory limit of the process "
                        "(torch.cuda.set_per_process_memory_fraction), to"
                      : "Use a GPU with more memory,");
    add_enough(v, need, text);
    if (other->bytes < need->bytes) {
        text_add(text, VERDICT_TEXT, "", "; or with %s",
                 *other->setting ? other->setting : "PyTorch's default");
        add_enough(v, other, text);
    }
    text_add(text, VERDICT_TEXT, "",
             ": no setting and no change that was tried is known to be enough "
             "for %s.",
             FRAG_SHOW_SIZE(v->question.about.bound.bytes));
}

/* The first row that holds is the action. */
static const struct action_rule {
    enum verdict_action action;
    bool (*holds)(struct verdict *v);
    void (*say)(const struct verdict *v, char *text);
} rules[] = {
    {VERDICT_RECORD, is_unseen, say_record},
    {VERDICT_LEAK, is_leak, say_leak},
    {VERDICT_OUTSIDE, is_outside, say_free_device},
    {VERDICT_NOTHING, is_enough, say_nothing},
    {VERDICT_SETTING, has_setting, say_setting},
    {VERDICT_PROGRAM, has_change, say_change},
    {VERDICT_DEVICE, always, say_device},
};

/* The need with a setting; NULL: it is none of those whose need was sought. */
static const struct verdict_need *need_with(const struct verdict *v,
                                            const char *setting)
{
    for (size_t i = 0; i < VERDICT_NEEDS; i++)
        if (setting && !strcmp(setting, v->needs[i].setting) &&
            v->needs[i].bytes != FRAG_UNLIMITED)
            return &v->needs[i];
    return NULL;
}

/* What the peak of the requests falls by with a change, and the need with a
 * setting. */
static frag_size saved_by(const struct verdict *v)
{
    const struct verdict_need *with =
        v->rung ? need_with(v, v->rung->text) : NULL;

    if (v->change)
        return v->change->saved;
    return with && !with->is_most && !v->needs[0].is_most &&
                   v->needs[0].bytes != FRAG_UNLIMITED &&
                   with->bytes < v->needs[0].bytes
               ? v->needs[0].bytes - with->bytes
               : 0;
}

/* What may be enough, after the sure way. */
static void say_try(struct verdict *v)
{
    const struct tune_rung *best = v->ladder.best;

    if (!best || best->odds.verdict != ODDS_TRY ||
        (v->action != VERDICT_PROGRAM && v->action != VERDICT_DEVICE))
        return;
    v->rung = best;
    text_add(v->todo, VERDICT_TEXT, " ", "Worth trying first, with %s: %s;",
             FRAG_SHOW_SIZE(v->question.about.bound.bytes),
             best->recorded ? "the job unchanged"
             : *best->text  ? best->text
                            : "PyTorch's default settings");
    if (best->odds.of)
        text_add(v->todo, VERDICT_TEXT, " ",
                 "of %u recorded jobs in this state %u lived.", best->odds.of,
                 best->odds.lived);
    else
        text_add(v->todo, VERDICT_TEXT, " ",
                 "how many jobs in this state lived is not known.");
}

static void say_todo(struct verdict *v)
{
    const struct action_rule *rule = rules;

    while (!rule->holds(v))
        rule++;
    v->action = rule->action;
    v->rung = v->action == VERDICT_SETTING ? v->ladder.chosen : NULL;
    if (v->action != VERDICT_PROGRAM && v->action != VERDICT_LEAK)
        v->change = NULL;
    v->saved = saved_by(v);
    rule->say(v, v->todo);
    say_try(v);
}

/* ---- how sure ---- */

static frag_size reserved_at_start(const struct frag_device_trace *d)
{
    frag_size reserved = 0;

    for (uint64_t i = 0; i < d->recorded.start.segment_count; i++)
        reserved += d->recorded.start.segments[i].size;
    return reserved;
}

static void say_whole(const struct verdict *v, char *text)
{
    const struct frag_device_trace *d = v->device;

    if (v->question.rest)
        snprintf(text, VERDICT_TEXT,
                 "The program ran to its end without a GPU, so the answer is "
                 "that of the whole run.");
    else if (d->initial)
        snprintf(text, VERDICT_TEXT,
                 "The recording began after the job did, when %s were "
                 "reserved: a peak before it is not known, so the job may "
                 "need that much.",
                 FRAG_SHOW_SIZE(reserved_at_start(d)));
    else
        snprintf(text, VERDICT_TEXT,
                 "The answer is exact for what was recorded, %" PRIu64
                 " events; other input may need more.",
                 d->count);
    if (v->change && v->change->kind == EXPLAIN_BATCH)
        text_add(text, VERDICT_TEXT, " ",
                 "How much less a smaller batch needs is an estimate.");
}

/* How many of the recorded jobs in this state lived with the action. */
static void say_odds(const struct verdict *v, char *text)
{
    const struct tune_rung *r =
        v->action == VERDICT_SETTING || v->action == VERDICT_NOTHING
            ? v->ladder.chosen
            : NULL;

    if (r && r->odds.of)
        text_add(text, VERDICT_TEXT, " ",
                 "Of %u recorded jobs in this state %u lived with it.",
                 r->odds.of, r->odds.lived);
}

/* Why further steps are not known; nothing if that is growth, of which the next
 * sentence says that it could not be judged. */
static void say_untold(const struct verdict *v, char *text)
{
    const enum frag_untold untold = v->completion.untold;
    const bool grows =
        untold == FRAG_UNTOLD_GROWS && subject_of(v)->growth == LEAKS_UNKNOWN;

    text_add(text, VERDICT_TEXT, " ",
             "What further steps need is not known%s%s.", grows ? "" : ": ",
             grows ? "" : frag_untold_words[untold]);
}

static void say_completed(const struct verdict *v, char *text)
{
    const struct frag_completion *c = &v->completion;

    snprintf(text, VERDICT_TEXT,
             "The recording ends where the job died, after %" PRIu64
             " complete step%s; %" PRIu64 " more are predicted.",
             c->steps, c->steps == 1 ? "" : "s", c->added_steps);
    if (c->untold)
        say_untold(v, text);
    say_odds(v, text);
}

static void say_reach(const struct verdict *v, char *text)
{
    const struct frag_completion *c = &v->completion;

    if (v->state == VERDICT_UNSEEN)
        snprintf(text, VERDICT_TEXT,
                 "The file shows %s; whether a request failed, and why, it "
                 "cannot tell.",
                 v->question.about.device->count >
                         v->question.about.device->initial
                     ? "too few events of the job"
                     : "one moment only");
    else if (!c->reach)
        say_whole(v, text);
    else if (c->reach == FRAG_REACH_NO_STEP)
        snprintf(text, VERDICT_TEXT,
                 "The job died before a step was complete: what it needs after "
                 "the failed request is not known.");
    else
        say_completed(v, text);
    if (c->reach)
        text_add(text, VERDICT_TEXT, " ",
                 "`fragsim triage --dry PROGRAM' runs the program without a "
                 "GPU, and then the rest of the run is known.");
}

/* Which settings the action was replayed with, where they change. */
static void say_settings(const struct verdict *v, char *text)
{
    const bool sets = v->action == VERDICT_SETTING && !v->rung->recorded;
    const char *settings = sets ? v->rung->text : v->whole->settings;
    char words[CHANGES_MEANING];

    if (*changes_meaning(v->device, settings && torch_is_followed(settings),
                         words))
        text_add(text, VERDICT_TEXT, " ", "It holds for %s.", words);
}

static void say_sure(struct verdict *v)
{
    const struct explain *x = subject_of(v);

    say_reach(v, v->sure);
    say_settings(v, v->sure);
    if (v->failure && v->failure->failed && !v->failure->reproduced)
        text_add(v->sure, VERDICT_TEXT, " ",
                 "The memory that the job could use changed while it ran.");
    if (x->limit_source == EXPLAIN_LIMIT_DEVICE && !x->total)
        text_add(v->sure, VERDICT_TEXT, " ",
                 "Whether other programs held memory of the GPU is not known.");
    if (v->state != VERDICT_UNSEEN && x->growth == LEAKS_UNKNOWN)
        text_add(v->sure, VERDICT_TEXT, " ",
                 "Growth from step to step could not be judged: %s.",
                 leaks_reasons[x->growth_reason].clause);
    if (v->state == VERDICT_FITS && x->growth == LEAKS_FOUND &&
        !is_leaking(v) && steps_left(v) > 0)
        text_add(v->sure, VERDICT_TEXT, " ",
                 "It leaks a little, %s that were requested in each step.",
                 FRAG_SHOW_SIZE((frag_size)x->growth_rate));
}

void verdict_decide(struct verdict *v)
{
    v->state = state_of(v);
    v->cause = openings[v->state] ? subject_of(v)->cause : EXPLAIN_NONE;
    say_happened(v);
    say_todo(v);
    say_sure(v);
}
