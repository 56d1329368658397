/* record.h - the reader of recorders' logs: its state. Private to
 * traces/import/record/.
 */
#ifndef FRAG_TRACES_IMPORT_RECORD_RECORD_H
#define FRAG_TRACES_IMPORT_RECORD_RECORD_H

#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/importer.h"
#include "traces/live.h"
#include "traces/record_log.h"

/* Physical memory: there until its last handle is released and its last
 * mapping gone, as cuMemRelease says (cuda.h). */
struct physical {
    int32_t device;
    uint32_t handles, maps;
};

/* A call that the log names, and how often. */
struct unread {
    char name[sizeof(((struct record_call *)NULL)->name)];
    uint64_t count;
};

extern const struct frag_importer frag_importer_record;

enum { DEVICES = 1024, UNREADS = 64 };

struct mapping {
    uint64_t bytes;
    uint32_t physical;
};

struct log_reader {
    struct frag_source *source;
    struct frag_build *build;
    struct frag_error *e;
    uint64_t where; /* the call's place in the file */

    /* By address, and arrays by their handles above all addresses. Slots are
     * devices from RECORD_ELSEWHERE on: what is there is no event. */
    struct live blocks;
    struct live contexts; /* by handle; their numbers are in states of blocks */

    struct live pools; /* by handle; slot: device, state: 1 if default */
    uint64_t pool_used[DEVICES]; /* 0: the default one */

    struct live handles;  /* to rows of physical */
    struct live mappings; /* by address, to rows of mapping */
    struct physical *physical;
    uint64_t physical_count, physical_room;
    struct mapping *mapping;
    uint64_t mapping_count, mapping_room;

    bool has_requests;

    /* The first request that the device had no room for, if it said what it
     * had. */
    uint64_t failed_bytes, failed_left;
    int32_t failed_device;

    /* For the notes. */
    uint64_t gaps, lost, refused, unknown, vanished, managed, with_context,
        no_device, graphs, graph_bytes, foreign, arrays, unsized;
    struct unread unreads[UNREADS];
    uint32_t unread_count;
};

/* What a call means for the trace. */
enum frag_err log_take(struct log_reader *r, const struct record_call *call);

/* A call that the log has no words for. */
enum frag_err log_unread(struct log_reader *r, const struct record_call *call);

/* CORRUPT, with the place of the call. */
enum frag_err log_wrong(const struct log_reader *r, const char *expected,
                        uint64_t found);

/* What the reader of the trace has to know. */
enum frag_err log_notes(const struct log_reader *r);

void log_fini(struct log_reader *r);

#endif
