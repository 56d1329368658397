/* release.c - the note about the release of PyTorch that wrote a recording. The
 * rules that changed are those of policies/torch/versions.h. */
#include "sim/experiments/release.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/torch/versions.h"
#include "traces/text.h"

bool release_range(const struct frag_trace *trace, unsigned *first,
                   unsigned *last)
{
    const char *text = trace->releases;
    const int n = text ? sscanf(text, "2.%u to 2.%u", first, last) : 0;

    /* A history of 2.12 or later shows that it is. */
    if (n == 1)
        *last = !strstr(text, "or later") ? *first
                : *first <= TORCH_MODEL   ? TORCH_MODEL
                                          : TORCH_NEWEST;
    return n >= 1;
}

static unsigned modelled(unsigned version)
{
    if (version < TORCH_MODEL_OLDEST)
        return TORCH_MODEL_OLDEST;
    return version > TORCH_MODEL_NEWEST ? TORCH_MODEL_NEWEST : version;
}

/* The settings of the run as one text, which the caller frees. */
static char *settings_of(const struct policy_choice *policy,
                         const struct frag_trace *trace)
{
    const char *recorded =
        policy->recorded && trace->settings ? trace->settings : "";

    return text_make("%s%s%s", recorded, *recorded && *policy->given ? "," : "",
                     policy->given);
}

static void put_changes(unsigned rules, char *text, size_t room)
{
    for (unsigned rule = 0; rule < TORCH_RULES; rule++) {
        const struct torch_change *c = &torch_changes[rule];

        if (rules >> rule & 1)
            text_add(text, room, "; ", "%s (before 2.%u, %s)", c->concern,
                     c->since, c->before);
    }
}

static void compare(const struct frag_trace *trace, const char *settings,
                    bool has_pools, char text[RELEASE_NOTE])
{
    const unsigned used = torch_version_of(settings);
    unsigned first, last, at_first, at_last;
    char changes[RELEASE_NOTE / 2] = "";

    if (!release_range(trace, &first, &last))
        return;
    if (first > TORCH_MODEL_NEWEST) {
        snprintf(text, RELEASE_NOTE,
                 "PyTorch %s wrote the recording; the policy models releases "
                 "up to 2.%d, and later ones were not compared with them",
                 trace->releases, TORCH_MODEL_NEWEST);
        return;
    }
    first = modelled(first);
    last = modelled(last);
    at_first = torch_differences(settings, has_pools, first, used);
    at_last = torch_differences(settings, has_pools, last, used);
    if (!at_first && !at_last)
        return;
    put_changes(at_first | at_last, changes, sizeof(changes));
    snprintf(text, RELEASE_NOTE,
             "PyTorch %s wrote the recording; the policy follows 2.%u, which "
             "%s otherwise with %s; torch@2.%u follows the recorded release",
             trace->releases, used,
             at_first && at_last ? "places" : "may place", changes,
             at_last ? last : first);
}

enum frag_err release_note(const struct policy_choice *policy,
                           const struct frag_trace *trace,
                           const struct frag_device_trace *device,
                           char text[RELEASE_NOTE], struct frag_error *e)
{
    char *settings, left_out[RELEASE_NOTE / 2];

    *text = '\0';
    if (strcmp(policy->policy->name, "torch") != 0 ||
        device->device == FRAG_HOST_DEVICE)
        return FRAG_OK;
    settings = settings_of(policy, trace);
    if (!settings)
        return frag_no_memory(e, "settings");
    compare(trace, settings, device->pool_count > 1, text);
    torch_left_out(settings, left_out, sizeof(left_out));
    if (*left_out)
        text_add(text, RELEASE_NOTE, "; ", "%s", left_out);
    free(settings);
    return FRAG_OK;
}

unsigned release_version(const struct frag_trace *trace,
                         const struct frag_device_trace *device)
{
    const char *settings = trace->settings ? trace->settings : "";
    const unsigned used = torch_version_of(settings);
    unsigned first, last;

    if (!release_range(trace, &first, &last) || first > TORCH_MODEL_NEWEST)
        return used;
    last = modelled(last);
    if (device->device == FRAG_HOST_DEVICE)
        return last;
    return torch_differences(settings, device->pool_count > 1, last, used) ||
                   !torch_accepts(settings, used)
               ? last
               : used;
}

enum frag_err release_recorded(const struct frag_trace *trace,
                               const struct frag_device_trace *device,
                               unsigned *version, char text[RELEASE_NOTE],
                               struct frag_error *e)
{
    struct policy_choice policy;
    char name[64];

    *version = release_version(trace, device);
    snprintf(name, sizeof(name), "torch@recorded:torch_version:2.%u", *version);
    FRAG_TRY(policy_choice_read(name, &policy, e));
    const enum frag_err err = release_note(&policy, trace, device, text, e);
    policy_choice_free(&policy);
    FRAG_TRY(err);
    if (*version != torch_version_of(trace->settings ? trace->settings : ""))
        text_add(text, RELEASE_NOTE, "; ",
                 "PyTorch %s wrote the recording, so the replay follows the "
                 "rules of 2.%u",
                 trace->releases, *version);
    return FRAG_OK;
}
