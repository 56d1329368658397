/* host_answer.c - the runs and the words about pinned host memory. */
#include "sim/answers/host_answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/recording.h"
#include "sim/experiments/tune/ladder.h"
#include "sim/results/row.h"
#include "traces/printable.h"

/* Whether the requests are calls of the driver (fragsim record), and not those
 * to PyTorch's allocator. */
static bool is_of_driver(const struct frag_trace *t)
{
    return !t->settings && !t->releases && !frag_trace_is_snapshot(t);
}

static enum frag_err run(const struct cell_settings *cell,
                         const struct input *in, const char *setting,
                         struct frag_summary *out, struct frag_error *e)
{
    char text[256];
    struct frag_run_identity id = {
        .trace = frag_trace_identify(in->trace, in->device, in->name),
        .policy = text,
        .bound = FRAG_NO_BOUND,
    };
    struct policy_choice policy;
    struct frag_params *params;
    struct frag_run result;
    enum frag_err err;

    snprintf(text, sizeof(text), "%s%s%s",
             is_of_driver(in->trace) ? "direct" : recording_policy(in->trace),
             *setting ? ":" : "", setting);
    FRAG_TRY(input_has_history(in, e));
    FRAG_TRY(policy_choice_read(text, &policy, e));
    err = policy_choice_params_of(&policy, in->trace, in->device, &params, e);
    if (err == FRAG_OK) {
        id.policy_used = params->policy;
        err = cell_run(cell, in->device, &id, params, NULL, NULL, &result, e);
        free(params);
    }
    policy_choice_free(&policy);
    if (err == FRAG_OK) {
        *out = result.summary;
        frag_run_free(&result);
    }
    return err;
}

static bool are_sizes_known(const struct frag_trace *t)
{
    for (uint32_t i = 0; i < t->note_count; i++)
        if (strstr(t->notes[i], FRAG_BLOCKS_AS_REQUESTS))
            return false;
    return true;
}

/* A release that does not know a setting has nothing to try. */
enum frag_err host_answer_make(const struct cell_settings *cell,
                               const struct input *in, struct host_answer *out,
                               struct frag_error *e)
{
    const char *const *setting = tune_host_settings;
    struct frag_summary tried;
    struct frag_error refused;

    *out = (struct host_answer){
        .trace = in->trace->path,
        .settings = in->trace->settings ? in->trace->settings : "",
        .is_of_driver = is_of_driver(in->trace),
        .sizes_known = are_sizes_known(in->trace),
    };
    FRAG_TRY(run(cell, in, "", &out->recorded, e));
    if (out->is_of_driver)
        return facts_gather(in->device, &out->facts);
    for (; *setting && out->count < HOST_ANSWER_TRIED; setting++) {
        if (!out->sizes_known && strstr(*setting, "round_threshold"))
            continue; /* what it would not round is not known */
        const enum frag_err err = run(cell, in, *setting, &tried, &refused);

        if (err == FRAG_INVALID)
            continue;
        if (err != FRAG_OK)
            return frag_fail(e, err, "%s", refused.text);
        out->tried[out->count].setting = *setting;
        out->tried[out->count++].peak = tried.peak_reserved;
    }
    return FRAG_OK;
}

static double times(const struct host_answer *a, frag_size peak)
{
    return (double)peak / (double)a->recorded.peak_requested;
}

static frag_size kept(const struct host_answer *a)
{
    const struct frag_breakdown *b = &a->recorded.at_peak;

    return b->free_here + b->free_stream + b->free_pool + b->unusable;
}

static void put_run(const struct host_answer *a, const char *setting,
                    frag_size peak, FILE *out)
{
    fprintf(out, "  %10s  ", FRAG_SHOW_SIZE(peak));
    if (a->sizes_known)
        fprintf(out, "%5.2f times the requested  ", times(a, peak));
    printable_line(out, "%s", setting);
}

static void put_pinned(const struct facts *f, FILE *out)
{
    fprintf(out,
            "pinned host memory, not memory of a GPU: the program pins %s at "
            "most, %s at the end\n",
            FRAG_SHOW_SIZE(f->peak_served), FRAG_SHOW_SIZE(f->end_requested));
    if (f->failed)
        fprintf(out, "requests that failed: %" PRIu64 "\n", f->failed);
}

void host_answer_put(const struct host_answer *a, FILE *out)
{
    const struct frag_summary *s = &a->recorded;

    if (a->is_of_driver) {
        put_pinned(&a->facts, out);
        return;
    }
    fprintf(out, "pinned host memory, not memory of a GPU: %s is needed",
            FRAG_SHOW_SIZE(s->peak_reserved));
    if (a->sizes_known)
        fprintf(out, ", %.2f times the %s that is requested at most\n",
                times(a, s->peak_reserved), FRAG_SHOW_SIZE(s->peak_requested));
    else
        fprintf(out, "; the requested bytes are not recorded, and are between "
                     "half of that and all\n");
    fprintf(out,
            "at that peak: %s requested, %s by rounding to powers of two, %s "
            "in use by streams after their free, %s kept for later requests\n",
            FRAG_SHOW_SIZE(s->at_peak.requested),
            FRAG_SHOW_SIZE(s->at_peak.rounding),
            FRAG_SHOW_SIZE(s->at_peak.pending), FRAG_SHOW_SIZE(kept(a)));
    fprintf(out,
            "at the end: %s held, and no request returns it but "
            "torch._C._host_emptyCache()\n",
            FRAG_SHOW_SIZE(s->end_reserved));
    fprintf(out, "peak of pinned memory with these settings of "
                 "PYTORCH_ALLOC_CONF:\n");
    put_run(a, *a->settings ? a->settings : "as recorded: PyTorch's default",
            s->peak_reserved, out);
    for (size_t i = 0; i < a->count; i++)
        put_run(a, a->tried[i].setting, a->tried[i].peak, out);
    if (!a->sizes_known)
        fputs("  pinned_max_round_threshold_mb:1 takes the rounding away; how "
              "much that is, is not recorded\n",
              out);
    if (a->count)
        fputs("PyTorch 2.13 with one of them may serve a request from a cached "
              "block that is too small; 2.14 does not\n",
              out);
    else
        fputs("  the release that was recorded has no setting for it; PyTorch "
              "2.13 and later have pinned_max_round_threshold_mb\n",
              out);
}

/* clang-format off */ /* clang-format on */

void host_answer_json(const struct host_answer *a, struct frag_json *j)
{
    frag_json_new_object(j, 2, NULL);
    frag_json_text(j, "trace", a->trace);
    frag_json_number(j, "device", FRAG_HOST_DEVICE);
    frag_json_text(j, "memory", "pinned host memory");
    JSON_ROW(j, host_answer, a, TEXT("settings", settings),
             NUMBER("requested_is_recorded", sizes_known),
             NUMBER("peak_requested_bytes", recorded.peak_requested),
             NUMBER("peak_reserved_bytes", recorded.peak_reserved),
             NUMBER("end_reserved_bytes", recorded.end_reserved),
             NUMBER("rounding_at_peak_bytes", recorded.at_peak.rounding),
             NUMBER("pending_at_peak_bytes", recorded.at_peak.pending));
    frag_json_number(j, "kept_at_peak_bytes", kept(a));
    JSON_ROWS(j, "tried", 3, host_tried, a->tried, a->count,
              TEXT("setting", setting), NUMBER("peak_reserved_bytes", peak));
    frag_json_end(j);
}
