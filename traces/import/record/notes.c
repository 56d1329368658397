/* notes.c - what is said of a log: errors with their place, and the notes of
 * the trace. It does not know what a call means. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "traces/import/record/record.h"

enum frag_err log_wrong(const struct log_reader *r, const char *expected,
                        uint64_t found)
{
    return frag_fail(r->e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected %s, found %" PRIu64,
                     frag_source_name(r->source), r->where, expected, found);
}

static bool is_name(const char *name, size_t room)
{
    const size_t length = strnlen(name, room);

    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return false;
    return length > 0 && length < room;
}

enum frag_err log_unread(struct log_reader *r, const struct record_call *call)
{
    uint32_t i = 0;

    if (!is_name(call->name, sizeof(call->name)))
        return log_wrong(r, "the name of a call", (uint8_t)call->name[0]);
    while (i < r->unread_count && strcmp(r->unreads[i].name, call->name) != 0)
        i++;
    if (i == UNREADS)
        return log_wrong(r, "names of 64 calls", i + 1);
    if (i == r->unread_count) {
        r->unread_count++;
        strcpy(r->unreads[i].name, call->name);
    }
    r->unreads[i].count++;
    return FRAG_OK;
}

static enum frag_err note_unread(const struct log_reader *r)
{
    for (uint32_t i = 0; i < r->unread_count; i++)
        FRAG_TRY(frag_build_note(r->build,
                                 "memory by %s is not recorded: %" PRIu64
                                 " calls or look-ups",
                                 r->unreads[i].name, r->unreads[i].count));
    return FRAG_OK;
}

/* Whether there was too little, or none in one piece. */
static enum frag_err note_failure(const struct log_reader *r)
{
    if (!r->failed_bytes)
        return FRAG_OK;
    return frag_build_note(r->build,
                           "the first request that failed asked device %d for "
                           "%" PRIu64 " bytes, and %" PRIu64 " were free",
                           (int)r->failed_device, r->failed_bytes,
                           r->failed_left);
}

enum frag_err log_notes(const struct log_reader *r)
{
    const uint64_t cut = r->gaps > r->lost ? r->gaps - r->lost : 0;
    const struct {
        uint64_t count;
        const char *words;
    } notes[] = {
        {r->lost, "calls are missing, as the log could not grow"},
        {cut, "calls had not returned when the program ended"},
        {r->refused, "calls failed for a reason other than memory"},
        {r->unknown, "calls gave back what no recorded call had handed out"},
        {r->vanished, "blocks were handed out again without a free"},
        {r->no_device, "requests are missing, as their device is not known"},
        {r->with_context, "blocks went with their context"},
        {r->managed, "managed blocks count as memory of the device"},
        {r->arrays, "arrays count with what their elements take"},
        {r->unsized, "arrays are missing, as their format has no size here"},
        {r->foreign, "blocks and handles of memory that others took are no "
                     "requests"},
        {r->graphs, "requests of graphs are missing, as their memory is taken "
                    "by a launch"},
        {r->graph_bytes, "bytes are what the requests of graphs come to"},
    };

    for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
        if (notes[i].count)
            FRAG_TRY(frag_build_note(r->build, "%" PRIu64 " %s", notes[i].count,
                                     notes[i].words));
    FRAG_TRY(note_failure(r));
    return note_unread(r);
}
