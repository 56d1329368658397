/* import_record.h - the state of the reader of recorder logs, and the calls
 * between its source files. Private to traces/import/record/.
 * traces/record_log.h describes the log. */
#ifndef FRAG_TRACES_IMPORT_RECORD_IMPORT_RECORD_H
#define FRAG_TRACES_IMPORT_RECORD_IMPORT_RECORD_H

#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/importer.h"
#include "traces/live.h"
#include "traces/record_log.h"

/* Physical memory. It is allocated until its last handle is released and its
 * last mapping is removed (cuda.h, cuMemRelease). */
struct physical {
    int32_t device;
    uint32_t handles, maps; /* how many there are */
};

/* Memory that the driver holds for graphs. */
struct graph_block {
    int32_t device;
    uint32_t physical; /* index */
    uint64_t bytes;
};

/* A call that the log only names, and how often it occurs. */
struct record_unread {
    char name[sizeof(((struct record_call *)NULL)->name)];
    uint64_t count;
};

struct log_change {
    struct frag_setting_change x; /* but for the event */
    int32_t device;               /* RECORD_NO_DEVICE: all */
};

extern const struct frag_importer frag_importer_record;

enum {
    DEVICES = 1024,    /* device numbers are below this */
    ON_HOST = DEVICES, /* stands for FRAG_HOST_DEVICE */
    UNREADS = 64       /* different names of unread calls, at most */
};

struct mapping {
    uint64_t bytes;
    uint32_t physical;
};

struct log_reader {
    struct frag_source *source;
    struct frag_build *build;
    struct frag_error *e;
    uint64_t where; /* offset of the current call in the file, in bytes */

    /* Live blocks by address. An array has an address above all device
     * addresses, made from its handle. The slot is the device, counted from
     * RECORD_ELSEWHERE; blocks there produce no events. */
    struct live blocks;
    struct live contexts; /* by handle; slot: number of the context */

    struct live pools; /* by handle; slot: device; state: 1 if default */
    uint64_t pool_used[DEVICES]; /* handle; 0: the device's default pool */

    struct live handles;  /* by handle; slot: index in physical */
    struct live mappings; /* by address; slot: index in mapping */
    struct physical *physical;
    uint64_t physical_count, physical_room;
    struct mapping *mapping;
    uint64_t mapping_count, mapping_room;
    struct graph_block *graph; /* newest last */
    uint64_t graph_count, graph_room;

    bool has_requests, is_used[ON_HOST + 1]; /* by requests */

    char *text; /* of the next change, so far */
    uint64_t text_length, text_room;
    struct log_change *change;
    uint64_t change_count, change_room;

    /* The first request that failed for lack of device memory, if the log has
     * the free bytes of the device; 0: none. */
    uint64_t failed_bytes, failed_left;
    int32_t failed_device;

    /* Counts for the notes; log_notes explains each one. */
    uint64_t gaps, lost, refused, unknown, vanished, managed, with_context,
        no_device, graphs, graph_bytes, graph_blocks, foreign, arrays, unsized,
        registered, registered_bytes;
    struct record_unread unreads[UNREADS];
    uint32_t unread_count;
};

/* Adds a call of the log to the trace. CORRUPT, NOMEM. */
enum frag_err log_add_call(struct log_reader *r,
                           const struct record_call *call);

/* Counts a call of kind RECORD_UNREAD: the log only has its name. */
enum frag_err log_unread(struct log_reader *r, const struct record_call *call);

/* Keep a part of a text, and the change that has it. log_changes adds those of
 * settings to all devices with requests, when the log was read. */
enum frag_err log_text(struct log_reader *r, const struct record_call *call);
enum frag_err log_change(struct log_reader *r, const struct record_call *call);
enum frag_err log_changes(const struct log_reader *r);

/* Fails with CORRUPT and the offset of the current call. */
enum frag_err log_wrong(const struct log_reader *r, const char *expected,
                        uint64_t found);

/* Adds notes to the trace on everything that the trace lacks or assumes. */
enum frag_err log_notes(const struct log_reader *r);

/* Frees all tables of the reader. */
void log_fini(struct log_reader *r);

#endif
