/* replay.c - what settings would do on a recording: one run of the torch policy
 * with them. */
#include <stdlib.h>

#include "policies/torch/platform.h"
#include "sim/answers/conf/conf.h"

enum frag_err
conf_replay(const struct conf_answer *a, bool with_default,
            const struct cell_settings *settings,
            const struct frag_device_trace *trace, const char *recorded,
            struct frag_bound bound,
            bool (*tick)(void *user, uint64_t done, uint64_t total), void *user,
            struct conf_outcome *out, struct frag_error *e)
{
    struct frag_run_identity id = {.policy = "torch",
                                   .policy_used = frag_policy_find("torch"),
                                   .bound = bound};
    struct frag_params *params;
    struct frag_run run;
    enum frag_err err;
    char *text;

    if (!a->native)
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "backend:cudaMallocAsync is not PyTorch's own "
                         "allocator; replay the trace with the policy "
                         "cuda_async");
    text = torch_platform_keep(recorded, with_default ? "" : a->used->text);
    if (!text)
        return frag_no_memory(e, "settings");
    err = frag_params_read(id.policy_used, text, &params, e);
    free(text);
    FRAG_TRY(err);
    err = cell_run(settings, trace, &id, params, tick, user, &run, e);
    free(params);
    FRAG_TRY(err);
    *out = (struct conf_outcome){
        .peak_reserved = run.summary.peak_reserved,
        .ooms = run.summary.num_ooms,
        .retries = run.summary.num_alloc_retries,
        .seconds = run.summary.modelled_device_seconds,
    };
    for (size_t k = 0; k < FRAG_CALL_COUNT; k++)
        out->calls += run.summary.calls[k];
    frag_run_free(&run);
    return FRAG_OK;
}
