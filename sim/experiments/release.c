/* release.c - the note about the release of PyTorch that wrote a recording. The
 * rules that changed are those of policies/torch/versions.h. */
#include "sim/experiments/release.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/torch/platform.h"
#include "policies/torch/versions.h"
#include "sim/version.h"
#include "traces/text.h"
#include "traces/torch_sizes.h"

bool release_range(const struct frag_trace *trace, unsigned *first,
                   unsigned *last)
{
    const char *text = trace->releases;
    const int n = text ? sscanf(text, "2.%u to 2.%u", first, last) : 0;

    if (n == 1)
        *last = strstr(text, "or later") ? TORCH_NEWEST : *first;
    return n >= 1;
}

char *release_settings(const struct frag_trace *trace, const char *chosen)
{
    return torch_settings_for(trace->settings, trace->releases, chosen);
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
                    unsigned used, bool has_pools, char text[RELEASE_NOTE])
{
    unsigned first, last, at_first, at_last;
    char changes[RELEASE_NOTE / 2] = "";

    if (!release_range(trace, &first, &last))
        return;
    first = torch_modelled_as(first);
    last = torch_modelled_as(last);
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

/* Says which settings of a text are not known. */
static void say_unknown(const char *settings, char text[RELEASE_NOTE])
{
    char unknown[TORCH_LEFT_OUT], others[TORCH_LEFT_OUT];

    torch_left_out(settings, unknown, others);
    if (*unknown)
        text_add(text, RELEASE_NOTE, "; ",
                 "settings that are not known to fragsim %s (knows PyTorch up "
                 "to 2.%d) are left out: %s",
                 frag_version, TORCH_NEWEST, unknown);
}

static void say_later(const char *release, char text[RELEASE_NOTE])
{
    text_add(text, RELEASE_NOTE, "; ",
             "PyTorch %s is not known to fragsim %s (knows PyTorch up to "
             "2.%d), and the policy torch follows 2.%d",
             release, frag_version, TORCH_NEWEST, TORCH_NEWEST);
}

void release_unknown(const struct frag_trace *trace, char text[RELEASE_NOTE])
{
    unsigned first, last;

    *text = '\0';
    if (release_range(trace, &first, &last) && first > TORCH_NEWEST)
        say_later(trace->releases, text);
    if (trace->settings)
        say_unknown(trace->settings, text);
}

/* Says what is not known of what a user gives, and what is not modelled. */
static void say_left_out(const char *given, const char *settings,
                         char text[RELEASE_NOTE])
{
    char release[TORCH_VERSION_TEXT], unknown[TORCH_LEFT_OUT],
        others[TORCH_LEFT_OUT];

    if (torch_version_named(given, release) == TORCH_LATER)
        say_later(release, text);
    say_unknown(given, text);
    torch_left_out(settings, unknown, others);
    if (*others)
        text_add(text, RELEASE_NOTE, "; ", "the policy torch does not model %s",
                 others);
}

enum frag_err release_note(const struct policy_choice *policy,
                           const struct frag_trace *trace,
                           const struct frag_device_trace *device,
                           char text[RELEASE_NOTE], struct frag_error *e)
{
    char *chosen, *settings;

    *text = '\0';
    if (strcmp(policy->policy->name, "torch") != 0 ||
        device->device == FRAG_HOST_DEVICE)
        return FRAG_OK;
    chosen = policy_choice_settings(policy, trace->settings);
    settings = chosen ? release_settings(trace, chosen) : NULL;
    if (settings) {
        compare(trace, settings, torch_version_of(settings),
                device->pool_count > 1, text);
        say_left_out(policy->given, settings, text);
    }
    free(chosen);
    free(settings);
    return settings ? FRAG_OK : frag_no_memory(e, "settings");
}
