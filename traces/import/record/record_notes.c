/* record_notes.c - the messages of the reader of recorder logs: errors with
 * their offset, and the notes of the trace. record_calls.c decides what a call
 * means. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "traces/import/record/import_record.h"

enum frag_err log_wrong(const struct log_reader *r, const char *expected,
                        uint64_t found)
{
    return frag_fail(r->e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected %s, found %" PRIu64,
                     frag_source_name(r->source), r->where, expected, found);
}

/* Whether `name` is an identifier that ends inside its `room` bytes. */
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
        return log_wrong(r, "at most 64 names of calls", i + 1);
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
                                 "calls of %s are not recorded: %" PRIu64
                                 " calls or look-ups",
                                 r->unreads[i].name, r->unreads[i].count));
    return FRAG_OK;
}

/* The numbers show whether too little memory was free, or enough in total but
 * none contiguous. */
static enum frag_err note_failure(const struct log_reader *r)
{
    if (!r->failed_bytes)
        return FRAG_OK;
    return frag_build_note(
        r->build,
        "the first request that failed was for %" PRIu64
        " bytes of device %d, and %" PRIu64 " bytes were free",
        r->failed_bytes, (int)r->failed_device, r->failed_left);
}

static enum frag_err note_registered(const struct log_reader *r)
{
    if (!r->registered)
        return FRAG_OK;
    return frag_build_note(
        r->build,
        "%s: %" PRIu64 " ranges, %s in all, are the program's own: it "
        "registered them (cudaHostRegister); they count as pinned, in pool 0:1",
        FRAG_DEVICE_NAME(FRAG_HOST_DEVICE), r->registered,
        FRAG_SHOW_SIZE(r->registered_bytes));
}

enum frag_err log_notes(const struct log_reader *r)
{
    const uint64_t cut = r->gaps > r->lost ? r->gaps - r->lost : 0;
    const bool is_launched = r->graph_blocks > 0;
    const struct frag_build_count notes[] = {
        {r->lost, "calls are missing because the log could not grow (disk "
                  "full?)"},
        {cut, "calls had not returned when the program ended"},
        {r->refused, "calls failed for a reason other than lack of memory"},
        {r->unknown, "calls freed memory that no recorded call had allocated"},
        {r->vanished, "addresses were allocated again without a free"},
        {r->no_device, "requests are missing because their device is unknown"},
        {r->with_context, "blocks were freed because their context was "
                          "destroyed"},
        {r->managed, "managed blocks count as device memory"},
        {r->arrays, "arrays count with the bytes of their elements only"},
        {r->unsized, "arrays are missing because the size of their format is "
                     "unknown"},
        {r->foreign, "blocks and handles are not requests because they refer "
                     "to memory that was allocated elsewhere"},
        {is_launched ? r->graphs : 0,
         "requests of CUDA graphs are no blocks of their own: all graphs of a "
         "device share the memory that the driver holds for them"},
        {r->graph_blocks,
         "blocks are memory that the driver holds for CUDA graphs; its size "
         "was read after launches, uploads and trims"},
        {is_launched ? 0 : r->graphs,
         "requests of CUDA graphs are missing because their memory is "
         "allocated at launch"},
        {is_launched ? 0 : r->graph_bytes,
         "bytes is the sum of the missing requests of CUDA graphs"},
        {r->change_count,
         "changes of settings are those of PyTorch's allocator, whose segments "
         "are among the requests"},
    };

    FRAG_TRY(
        frag_build_counts(r->build, notes, sizeof(notes) / sizeof(*notes)));
    FRAG_TRY(note_registered(r));
    FRAG_TRY(note_failure(r));
    return note_unread(r);
}
