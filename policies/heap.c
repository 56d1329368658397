/* heap.c - opens and closes a heap: one policy that runs on one backend.
 */
#include <stdlib.h>

#include "policies/params.h"

static bool has_vmm(const struct frag_backend_ops *ops)
{
    return ops->va_reserve && ops->va_free && ops->phys_create &&
           ops->phys_release && ops->map && ops->unmap;
}

/* Calls init. An error has a message in e. */
static enum frag_err init(struct frag_heap *heap, struct frag_error *e)
{
    const struct frag_policy *policy = heap->policy;
    const enum frag_err said = policy->init ? policy->init(heap) : FRAG_OK;
    const enum frag_err err = frag_policy_answer(policy, "init", said, e);

    if (err == FRAG_OK || err != said)
        return err;
    return frag_fail(e, err, "%s: %s", policy->name, frag_err_text(err));
}

enum frag_err frag_heap_open_params(struct frag_heap *heap,
                                    const struct frag_params *params,
                                    struct frag_backend *mem,
                                    const struct frag_future *future,
                                    struct frag_error *e)
{
    const struct frag_policy *policy = params->policy;
    struct frag_heap fresh = {.policy = policy,
                              .mem = mem,
                              .quantum = params->quantum,
                              .future = future};
    enum frag_err err;

    if (policy->needs & FRAG_NEEDS_VMM && !has_vmm(mem->ops))
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "%s needs virtual memory calls, which the backend %s "
                         "lacks",
                         policy->name, mem->ops->name);
    fresh.state = params_state(params);
    if (!fresh.state)
        return frag_no_memory(e, "%s", policy->name);
    err = params_agree(policy, fresh.state, e);
    if (err == FRAG_OK)
        err = init(&fresh, e);
    if (err != FRAG_OK) {
        free(fresh.state);
        return err;
    }
    *heap = fresh;
    return FRAG_OK;
}

enum frag_err frag_heap_open_with(struct frag_heap *heap,
                                  const struct frag_policy *policy,
                                  struct frag_backend *mem, const char *params,
                                  const struct frag_future *future,
                                  struct frag_error *e)
{
    struct frag_params *read;
    enum frag_err err;

    FRAG_TRY(frag_params_read(policy, params, &read, e));
    err = frag_heap_open_params(heap, read, mem, future, e);
    free(read);
    return err;
}

enum frag_err frag_heap_open(struct frag_heap *heap,
                             const struct frag_policy *policy,
                             struct frag_backend *mem, const char *params,
                             struct frag_error *e)
{
    return frag_heap_open_with(heap, policy, mem, params, NULL, e);
}

void frag_heap_close(struct frag_heap *heap)
{
    if (heap->policy->fini)
        heap->policy->fini(heap);
    free(heap->state);
    heap->state = NULL;
}

void frag_memo_release(struct frag_memo *memo)
{
    if (memo->made)
        memo->release(memo->made);
    *memo = (struct frag_memo){0};
}
