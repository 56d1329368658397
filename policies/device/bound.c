/* bound.c - compares and formats bounds. */
#include "policies/device/bound.h"

#include <stdio.h>

const char *const frag_bound_words[FRAG_BOUND_KINDS] = {
    [FRAG_BOUND_CAPACITY] = "capacity",
    [FRAG_BOUND_LIMIT] = "process limit",
};

int frag_bound_order(struct frag_bound a, struct frag_bound b)
{
    if (a.bytes != b.bytes)
        return a.bytes < b.bytes ? -1 : 1;
    if (a.bytes == FRAG_UNLIMITED)
        return 0;
    return (a.kind > b.kind) - (a.kind < b.kind);
}

const char *frag_bound_format(struct frag_bound b, char text[FRAG_BOUND_TEXT])
{
    const bool is_limit =
        b.kind == FRAG_BOUND_LIMIT && b.bytes != FRAG_UNLIMITED;
    char size[FRAG_SIZE_TEXT];

    snprintf(text, FRAG_BOUND_TEXT, "%s%s", is_limit ? "process limit " : "",
             frag_size_format(b.bytes, size));
    return text;
}
