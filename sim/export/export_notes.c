/* export_notes.c - the sentences about what a file lacks and what it rests on.
 */
#include "sim/export/export_notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"

enum frag_err export_note(struct export_notes *n, const char *format, ...)
{
    char text[512];
    va_list args;

    if (!GROW(n->items, n->room, n->count + 1))
        return FRAG_NOMEM;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    n->items[n->count] = strdup(text);
    return n->items[n->count++] ? FRAG_OK : FRAG_NOMEM;
}

void export_notes_free(struct export_notes *n)
{
    for (uint64_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
    *n = (struct export_notes){0};
}

const char *export_start_note(const struct frag_device_trace *d)
{
    return d->recorded.start.segment_count
               ? "the run starts from the blocks that were live before the "
                 "recording, not from the recorded segments, so its numbers "
                 "can differ from those of `fragsim replay'"
               : NULL;
}
