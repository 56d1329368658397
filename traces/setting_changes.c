/* setting_changes.c - see setting_changes.h. */
#include "traces/setting_changes.h"

#include <inttypes.h>
#include <stdio.h>

const char *const change_origins[] = {
    [FRAG_CHANGE_RECORDED] = "recorded",
    [FRAG_CHANGE_FOUND] = "found",
    [FRAG_CHANGE_EDITED] = "edited",
};

uint64_t changes_count(const struct frag_device_trace *d)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < d->change_count; i++)
        count += d->changes[i].event > d->initial;
    return count;
}

frag_size changes_limit(const struct frag_device_trace *d)
{
    frag_size limit = 0;

    for (uint64_t i = 0; i < d->change_count; i++)
        if (d->changes[i].kind == FRAG_CHANGE_LIMIT &&
            d->changes[i].event <= d->initial)
            limit = d->changes[i].limit;
    return limit;
}

static void set(struct changes_now *now, const char *text)
{
    const char *expands = torch_value_of(text, "expandable_segments");

    if (expands)
        now->expandable = !strncmp(expands, "True", 4);
    if (torch_value_of(text, "large_segment_size_mb"))
        now->large_segment = torch_large_segment_of(text);
    if (torch_value_of(text, TORCH_RESERVE_KEY))
        now->reserve = torch_reserve_of(text);
}

struct changes_now changes_begin(const char *settings)
{
    struct changes_now now = {.limit = FRAG_UNLIMITED,
                              .large_segment = TORCH_LARGE_SEGMENT};

    set(&now, settings);
    return now;
}

void changes_pass(const struct frag_device_trace *d, struct changes_now *now,
                  uint64_t event)
{
    for (; now->next < d->change_count && d->changes[now->next].event <= event;
         now->next++) {
        const struct frag_setting_change *x = &d->changes[now->next];

        if (x->kind == FRAG_CHANGE_LIMIT)
            now->limit = x->limit;
        else
            set(now, d->strings[x->text]);
    }
}

const char *change_text(const struct frag_device_trace *d,
                        const struct frag_setting_change *x,
                        char text[CHANGE_TEXT])
{
    if (x->kind == FRAG_CHANGE_SETTINGS)
        snprintf(text, CHANGE_TEXT, "%s",
                 *d->strings[x->text] ? d->strings[x->text] : "defaults");
    else if (x->limit == FRAG_UNLIMITED)
        snprintf(text, CHANGE_TEXT, "no limit");
    else
        snprintf(text, CHANGE_TEXT, "limit %s", FRAG_SHOW_SIZE(x->limit));
    return text;
}

/* One edited change makes the settings those of the user. */
static uint32_t origin_of(const struct frag_device_trace *d)
{
    uint32_t origin = FRAG_CHANGE_RECORDED;

    for (uint64_t i = 0; i < d->change_count; i++)
        if (d->changes[i].origin > origin)
            origin = d->changes[i].origin;
    return origin;
}

const char *changes_words(const struct frag_device_trace *d,
                          char text[CHANGES_WORDS])
{
    const uint64_t count = changes_count(d);

    *text = '\0';
    if (count)
        snprintf(text, CHANGES_WORDS, "%" PRIu64 " change%s of settings (%s)",
                 count, count == 1 ? "" : "s", change_origins[origin_of(d)]);
    return text;
}

const char *changes_meaning(const struct frag_device_trace *d, bool follows,
                            char text[CHANGES_MEANING])
{
    char words[CHANGES_WORDS];

    *text = '\0';
    if (*changes_words(d, words))
        snprintf(text, CHANGES_MEANING, "%s %s",
                 !follows ? "one setting for the whole run, in place of"
                 : origin_of(d) == FRAG_CHANGE_EDITED
                     ? "the settings of the edited trace, with"
                     : "the settings as recorded, with",
                 words);
    return text;
}
