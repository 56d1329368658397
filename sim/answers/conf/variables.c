/* variables.c - the environment variables that hold settings of PyTorch's
 * allocator. Source: c10/core/AllocatorConfig and
 * c10/cuda/CUDAAllocatorConfig of PyTorch 2.11, as read;
 * policies/torch/versions.c for the older versions.
 */
#include "sim/answers/conf/conf.h"

const char *const conf_variables[CONF_VARIABLES] = {
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
};

/* The first versions whose CUDA allocator uses the variable. 2.9 reads
 * PYTORCH_ALLOC_CONF and ignores it (PyTorch issue #183387). */
static const unsigned used_since[CONF_VARIABLES] = {0, TORCH_PARSER,
                                                    TORCH_PARSER};

size_t conf_variable_used(const char *const values[CONF_VARIABLES],
                          unsigned version)
{
    size_t i = 0;

    while (i < CONF_VARIABLES && (!values[i] || used_since[i] > version))
        i++;
    return i;
}

enum { HIP = 1, GENERIC = 2 };

enum conf_part conf_variable_part(size_t used)
{
    return used == HIP ? CONF_GENERAL : CONF_WHOLE;
}

/* Beside the variable for ROCm, a build for CUDA reads its own settings in the
 * generic one. */
static enum frag_err judge_of_cuda(struct conf_answer *a, const char *text,
                                   struct frag_error *e)
{
    struct conf_answer own;
    enum frag_err err = conf_read(text, a->version, CONF_OF_CUDA, &own, e);
    bool said = true;

    for (size_t i = 0; err == FRAG_OK && i < own.finding_count; i++)
        if (own.findings[i].level <= CONF_UNKNOWN)
            said =
                said && conf_say(a, own.findings[i].level, SIZE_MAX,
                                 "%s, %.80s: %.300s", conf_variables[GENERIC],
                                 own.items[own.findings[i].item].key,
                                 own.findings[i].text);
    conf_close(&own);
    return err == FRAG_OK && !said ? frag_no_memory(e, "the findings") : err;
}

static bool judge_variable(struct conf_answer *a, size_t i, size_t used)
{
    if (used_since[i] > a->version)
        return conf_say(a, CONF_IGNORED, SIZE_MAX,
                        "%s is set, and PyTorch 2.%u does not use it: set "
                        "PYTORCH_CUDA_ALLOC_CONF.",
                        conf_variables[i], a->version);
    return conf_say(a, CONF_IGNORED, SIZE_MAX,
                    "%s is set too, and PyTorch ignores it: it uses the first "
                    "that is set of PYTORCH_CUDA_ALLOC_CONF, "
                    "PYTORCH_HIP_ALLOC_CONF and PYTORCH_ALLOC_CONF, here %s.",
                    conf_variables[i], conf_variables[used]);
}

enum frag_err conf_judge_variables(struct conf_answer *a,
                                   const char *const values[CONF_VARIABLES],
                                   bool uncached, struct frag_error *e)
{
    const size_t used = conf_variable_used(values, a->version);
    bool said = true;

    for (size_t i = 0; i < CONF_VARIABLES; i++)
        if (values[i] && i != used)
            said = said && judge_variable(a, i, used);
    if (used == HIP)
        said = said && conf_say(a, CONF_NOTE, SIZE_MAX,
                                "PYTORCH_HIP_ALLOC_CONF is for builds for "
                                "ROCm; a build for CUDA reads only the general "
                                "settings in it, and its own in "
                                "PYTORCH_ALLOC_CONF.");
    if (used == HIP && values[GENERIC])
        FRAG_TRY(judge_of_cuda(a, values[GENERIC], e));
    if (uncached)
        said = said && conf_say(a, CONF_IGNORED, SIZE_MAX,
                                "PYTORCH_NO_CUDA_MEMORY_CACHING is set: every "
                                "request is a call of cudaMalloc, and no "
                                "setting has an effect.");
    return said ? FRAG_OK : frag_no_memory(e, "the findings");
}
