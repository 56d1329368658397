/* padding.c - keeps the padding of a recording in other settings. The rule is
 * in traces/torch_sizes.h. */
#include "policies/torch/padding.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/torch_sizes.h"

char *torch_padding_keep(const char *recorded, const char *chosen)
{
    const frag_size padding = torch_padding_of(recorded);
    const size_t room = strlen(chosen) + sizeof(TORCH_PADDING_KEY ":512,");
    char *out;

    if (!padding || torch_padding_text(chosen))
        return strdup(chosen);
    out = malloc(room);
    if (out)
        snprintf(out, room, TORCH_PADDING_KEY ":%" PRIu64 "%s%s", padding,
                 *chosen ? "," : "", chosen);
    return out;
}
