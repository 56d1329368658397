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

const char *changes_words(const struct frag_device_trace *d,
                          char text[CHANGES_WORDS])
{
    const uint64_t count = changes_count(d);

    *text = '\0';
    if (count)
        snprintf(text, CHANGES_WORDS, "%" PRIu64 " change%s of settings (%s)",
                 count, count == 1 ? "" : "s",
                 change_origins[d->changes[d->change_count - 1].origin]);
    return text;
}
