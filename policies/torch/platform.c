/* platform.c - adds the platform, its padding and alignment, the release and
 * the limit of a recording to settings. The rules are in traces/torch_sizes.h.
 */
#include "policies/torch/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/torch/versions.h"
#include "traces/text.h"
#include "traces/torch_platforms.h"

char *torch_platform_keep(const char *recorded, const char *chosen)
{
    char kept[TORCH_PLATFORM_TEXT];

    torch_platform_text(
        !torch_value_of(recorded, TORCH_PLATFORM_KEY) ||
                torch_value_of(chosen, TORCH_PLATFORM_KEY)
            ? TORCH_CUDA
            : torch_platform_of(recorded),
        torch_value_of(chosen, TORCH_PADDING_KEY) ? 0
                                                  : torch_padding_of(recorded),
        torch_value_of(chosen, TORCH_ALIGN_KEY) ? 0 : torch_align_of(recorded),
        kept);
    return text_make("%s%s%s", kept, *kept && *chosen ? "," : "", chosen);
}

unsigned torch_version_named(const char *settings,
                             char text[TORCH_VERSION_TEXT])
{
    const char *named = torch_value_of(settings, "torch_version");
    unsigned version = TORCH_NEVER;

    snprintf(text, TORCH_VERSION_TEXT, "%.*s",
             named ? (int)strcspn(named, ",") : 0, named ? named : "");
    (void)(torch_version_read(text, &version, NULL) == FRAG_OK);
    return version;
}

static unsigned release_of(const char *settings, const char *releases)
{
    char text[TORCH_VERSION_TEXT];
    const unsigned named = torch_version_named(settings, text);
    const unsigned rules = torch_platforms[torch_platform_of(settings)].rules;
    unsigned first, version = TORCH_NEWEST;

    if (named != TORCH_NEVER)
        return torch_modelled_as(named);

    if (releases && !strstr(releases, "or later") &&
        sscanf(releases, "2.%u to 2.%u", &first, &version) == 1)
        version = first;
    if (rules && torch_value_of(settings, TORCH_PLATFORM_KEY))
        return rules;
    if (!releases && rules)
        version = rules;
    for (const struct torch_setting *s = torch_known_settings; s->name; s++)
        if (s->since > version && s->since <= TORCH_NEWEST &&
            torch_value_of(settings, s->name))
            version = s->since;
    return torch_modelled_as(version);
}

const char *torch_version_text(const char *settings, const char *releases,
                               char text[TORCH_VERSION_TEXT])
{
    snprintf(text, TORCH_VERSION_TEXT, "2.%u", release_of(settings, releases));
    return text;
}

char *torch_settings_for(const char *recorded, const char *releases,
                         const char *chosen)
{
    const unsigned version = release_of(recorded, releases);
    char *text = torch_platform_keep(recorded, chosen), *out;

    if (!text || version == TORCH_MODEL ||
        torch_value_of(chosen, "torch_version"))
        return text;
    out = text_make("torch_version:2.%u%s%s", version, *text ? "," : "", text);
    free(text);
    return out;
}
