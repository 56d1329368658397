/* import_record.h - the reader of recorders' logs: its state, shared by
 * traces/import_record*.c alone.
 */
#ifndef TRACES_IMPORT_RECORD_H
#define TRACES_IMPORT_RECORD_H

#include "traces/importer.h"
#include "traces/live.h"
#include "traces/record_log.h"

/* Physical memory: there until its last handle is released and its last
 * mapping gone, as cuMemRelease says (cuda.h). */
struct physical {
    frag_size bytes;
    int32_t device;
    uint32_t handles, maps;
};

struct mapping {
    uint64_t bytes;
    uint32_t physical;
};

struct log_reader {
    struct frag_source *source;
    struct frag_build *build;
    struct frag_error *e;
    uint64_t where; /* the call's place in the file */

    /* The slots are devices, 1 more so that RECORD_NO_DEVICE has one. */
    struct live blocks; /* by address */
    struct live pools;  /* by handle; those of the host have no device */

    struct live handles;  /* to rows of physical */
    struct live mappings; /* by address, to rows of mapping */
    struct physical *physical;
    uint64_t physical_count, physical_room;
    struct mapping *mapping;
    uint64_t mapping_count, mapping_room;

    bool has_requests;

    /* For the notes. */
    uint64_t gaps, lost, refused, unknown, vanished, managed;
};

/* What a call means for the trace. */
enum frag_err log_take(struct log_reader *r, const struct record_call *call);

void log_fini(struct log_reader *r);

#endif
