/* platform.c - adds the padding, the alignment and the limit of a recording to
 * settings. The rules are in traces/torch_sizes.h. */
#include "policies/torch/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/text.h"
#include "traces/torch_sizes.h"

char *torch_platform_keep(const char *recorded, const char *chosen)
{
    char kept[TORCH_PLATFORM_TEXT];

    torch_platform_text(
        torch_value_of(chosen, TORCH_PADDING_KEY) ? 0
                                                  : torch_padding_of(recorded),
        torch_value_of(chosen, TORCH_ALIGN_KEY) ? 0 : torch_align_of(recorded),
        kept);
    return text_make("%s%s%s", kept, *kept && *chosen ? "," : "", chosen);
}

char *torch_settings_limited(const char *settings, frag_size limit,
                             frag_size total)
{
    const size_t room = (settings ? strlen(settings) : 0) + 64;
    char *out = calloc(1, room);

    if (out && settings)
        strcpy(out, settings);
    if (out && limit != FRAG_UNLIMITED)
        text_add(out, room, ",", "per_process_memory_fraction:%.17g",
                 (double)limit / (double)total);
    return out;
}
