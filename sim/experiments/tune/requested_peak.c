/* requested_peak.c - the most bytes of the live requests of a trace. */
#include "sim/experiments/tune/requested_peak.h"

#include <inttypes.h>
#include <stdlib.h>

#include "policies/policy.h"

enum frag_err requested_peak_find(const struct frag_device_trace *trace,
                                  struct requested_peak *out,
                                  struct frag_error *e)
{
    const uint64_t recorded = trace->count - trace->added;
    frag_size *sizes = calloc((size_t)trace->slots + 1, sizeof(*sizes));
    struct requested_peak peak = {0, 0};
    frag_size live = 0;

    if (!sizes)
        return frag_no_memory(e, "%" PRIu32 " block sizes", trace->slots);
    for (uint64_t i = 0; i < recorded && peak.bytes != FRAG_UNLIMITED; i++) {
        frag_size *size = &sizes[trace->id[i]];

        if (trace->op[i] == FRAG_FREE || trace->op[i] == FRAG_FREE_REQUESTED) {
            live -= *size;
            *size = 0;
        }
        if (trace->op[i] != FRAG_ALLOC)
            continue;
        *size = trace->bytes[i];
        live = live + *size < live ? FRAG_UNLIMITED : live + *size;
        if (live > peak.bytes)
            peak = (struct requested_peak){live, i};
    }
    free(sizes);
    *out = peak;
    return FRAG_OK;
}
