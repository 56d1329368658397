/* verdict_make.c - asks for the answers on which a verdict rests. */
#include <stdio.h>
#include <string.h>

#include "sim/answers/verdict/verdict.h"

static void begin(const struct verdict *v, unsigned stage, const char *name)
{
    v->question.began(v->question.user, stage, name);
}

/* ---- tune ---- */

static void tell(void *user, uint64_t done, uint64_t total)
{
    const struct verdict *v = user;

    (void)v->question.progress(v->question.user, done, total);
}

static enum frag_err climb(struct verdict *v, struct frag_error *e)
{
    const struct verdict_question *q = &v->question;

    FRAG_TRY(tune_case_make(&q->about, "the job", v->whole, v->device,
                            &v->tuned, e));
    v->tuned.completion = v->completion;
    v->ladder = (struct tune_ladder){
        .settings = q->settings,
        .cases = &v->tuned,
        .case_count = 1,
        .without = q->without,
        .version = tune_release(&v->tuned, 1),
        .on = q->on,
        .progress = {.told = tell, .user = v},
    };
    return tune_climb(&v->ladder, e);
}

static void take_need(struct verdict *v, size_t i, const struct tune_rung *r)
{
    struct verdict_need *n = &v->needs[i];

    *n = (struct verdict_need){.bytes = FRAG_UNLIMITED};
    if (!r)
        return;
    snprintf(n->setting, TUNE_TEXT, "%s", r->text);
    n->bytes = r->results[0].need ? r->results[0].need : FRAG_UNLIMITED;
    n->is_most = r->results[0].is_most;
    n->enough = r->results[0].enough;
    n->is_open = v->completion.reach && !n->enough;
}

/* Those of the recorded settings, and of expandable segments or, if the job ran
 * with these, of PyTorch's default. */
static void take_needs(struct verdict *v)
{
    static const char expandable[] = "expandable_segments:True";
    const struct tune_rung *recorded = &v->ladder.rungs[0];

    take_need(v, 0, v->ladder.count ? recorded : NULL);
    take_need(v, 1,
              v->ladder.count
                  ? tune_rung_of(&v->ladder, strstr(recorded->text, expandable)
                                                 ? ""
                                                 : expandable)
                  : NULL);
}

/* ---- explain ---- */

static enum frag_err explain(struct verdict *v, struct frag_bound bound,
                             bool is_whole, const struct explain **out,
                             struct frag_error *e)
{
    const struct verdict_question *q = &v->question;
    const bool is_rest = is_whole && q->rest;
    const struct explain_options options = {
        .trace = is_rest ? v->whole : q->about.trace,
        .device = is_rest ? v->device : q->about.device,
        .at = is_whole ? NULL : q->at,
        .bound = bound,
        .total = q->about.total,
        .ladder = &v->ladder,
        .progress = q->progress,
        .user = q->user,
    };
    struct explain *x = &v->explained[v->failure != NULL];

    FRAG_TRY(explain_make(&options, x, e));
    *out = x;
    return FRAG_OK;
}

static enum frag_err explain_both(struct verdict *v, struct frag_error *e)
{
    const struct verdict_question *q = &v->question;
    const struct frag_bound none = {.bytes = 0};
    const bool tells = recording_tells(q->about.device);

    begin(v, 2, "the failure");
    if (explain_has_failure(q->about.device) || !tells)
        FRAG_TRY(explain(v, none, false, &v->failure, e));
    if (!tells)
        return FRAG_OK;
    begin(v, 3, "the capacity");
    if (v->failure && !q->rest && !q->at && question_is_recorded(&q->about)) {
        v->here = v->failure;
        return FRAG_OK;
    }
    return explain(v, q->about.bound, true, &v->here, e);
}

/* ---- all ---- */

static enum frag_err find_whole(struct verdict *v, struct frag_error *e)
{
    const struct verdict_question *q = &v->question;

    if (!q->rest)
        FRAG_TRY(frag_device_complete(q->about.trace, q->about.device, &v->own,
                                      &v->completion, e));
    v->whole = q->rest ? q->rest : v->own;
    v->device = frag_trace_device(v->whole, q->about.device->device);
    return FRAG_OK;
}

static enum frag_err ask(struct verdict *v, struct frag_error *e)
{
    FRAG_TRY(find_whole(v, e));
    begin(v, 1, "the settings");
    if (recording_tells(v->question.about.device))
        FRAG_TRY(climb(v, e));
    take_needs(v);
    return explain_both(v, e);
}

enum frag_err verdict_make(const struct verdict_question *question,
                           struct verdict *v, struct frag_error *e)
{
    enum frag_err err;

    *v = (struct verdict){.question = *question};
    err = ask(v, e);
    if (err == FRAG_OK)
        verdict_decide(v);
    else
        verdict_close(v);
    return err;
}

void verdict_close(struct verdict *v)
{
    tune_ladder_close(&v->ladder);
    for (size_t i = 0; i < 2; i++)
        explain_close(&v->explained[i]);
    frag_trace_close(v->own);
    v->own = NULL;
}
