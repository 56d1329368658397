/* trace.h - a trace: for each device, the stream of memory events of a client
 * program, and what the recorded allocator did in answer, if that was recorded.
 *
 * A policy replays the events; the answers of the recorded allocator are only
 * used to validate a policy. A trace holds the events in columns. Each column
 * is a plain array, which an importer built in memory or which is mapped from a
 * trace file; it is read-only. The devices of a trace are independent of each
 * other. The events of one device are in the order in which its allocator
 * received them.
 *
 * A trace file is HDF5. Its layout is described in traces/file/trace_file.h and
 * printed by `fragsim help formats`.
 */
#ifndef FRAG_TRACES_TRACE_H
#define FRAG_TRACES_TRACE_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

/* The operations of a client. The enum, the words in CSV files and the HDF5
 * enum are made from this list.
 *
 * A GPU executes the work of a stream asynchronously. If a second stream uses a
 * block (RECORD_STREAM), the block cannot be reused when the client frees it,
 * but only when that stream has finished. Therefore FREE_REQUESTED is the call
 * of the client, and FREE is the moment from which the block can be reused;
 * PyTorch records them as free_requested and free_completed. EMPTY_CACHE (trim)
 * requests that unused segments are returned to the device. */
#define FRAG_OPS(X)                     \
    X(ALLOC, "alloc")                   \
    X(FREE, "free")                     \
    X(FREE_REQUESTED, "free_requested") \
    X(RECORD_STREAM, "record_stream")   \
    X(EMPTY_CACHE, "empty_cache")

enum frag_op {
#define X(name, text) FRAG_##name,
    FRAG_OPS(X)
#undef X
        FRAG_OP_COUNT
};

/* The actions by which the recorded allocator acquired and returned device
 * memory, and its reports that the device was out of memory. */
#define FRAG_ACTIONS(X)               \
    X(SEGMENT_ALLOC, "segment_alloc") \
    X(SEGMENT_FREE, "segment_free")   \
    X(SEGMENT_MAP, "segment_map")     \
    X(SEGMENT_UNMAP, "segment_unmap") \
    X(OOM_REPORTED, "oom")

enum frag_action {
#define X(name, text) FRAG_##name,
    FRAG_ACTIONS(X)
#undef X
        FRAG_ACTION_COUNT
};

/* One recorded action. It happened while the allocator served the event with
 * the index `event`: after the answer to the previous event and before the
 * answer to this event. */
struct frag_recorded_action {
    uint64_t event;
    frag_addr addr;        /* start of the range; 0 for oom */
    frag_size size;        /* bytes; for oom: the rounded request */
    frag_size device_free; /* oom only: the free device memory that the report
                              states, in bytes */
    uint32_t action;       /* enum frag_action */
    uint32_t stream;       /* frag_stream */
};

/* The reserved bytes after an action, if `held` bytes were reserved before. */
static inline frag_size frag_held_after(const struct frag_recorded_action *a,
                                        frag_size held)
{
    switch ((enum frag_action)a->action) {
    case FRAG_SEGMENT_ALLOC:
    case FRAG_SEGMENT_MAP:
        return held + a->size;
    case FRAG_SEGMENT_FREE:
    case FRAG_SEGMENT_UNMAP:
        return held - a->size;
    case FRAG_OOM_REPORTED:
    case FRAG_ACTION_COUNT:
        break;
    }
    return held;
}

/* PyTorch's states of a block. */
enum frag_block_state {
    FRAG_INACTIVE,            /* free */
    FRAG_ACTIVE_PENDING_FREE, /* freed by the client, not yet reusable */
    FRAG_ACTIVE_ALLOCATED,    /* live */
};

#define FRAG_SIZE_UNKNOWN UINT64_MAX /* the requested size is not recorded */

/* A block: a part of a segment, free or live. */
struct frag_recorded_block {
    frag_addr addr;
    frag_size size;
    frag_size requested; /* bytes of the last request that the block served,
                            out of date if the block is inactive;
                            FRAG_SIZE_UNKNOWN if not recorded */
    uint32_t state;      /* enum frag_block_state */
    uint32_t slot;       /* id of the ALLOC that created the block; UINT32_MAX
                            if there is none */
};

/* A segment: one range of device memory that the allocator reserved. */
struct frag_recorded_segment {
    frag_addr addr;
    frag_size size;
    uint64_t first_block, block_count; /* rows of frag_layout.blocks */
    uint32_t stream;                   /* frag_stream */
    uint32_t pool;                     /* frag_pool */
    uint8_t is_small, is_expandable;   /* 0 or 1 */
    uint8_t reserved[6];               /* 0 */
};

/* All segments and blocks at one moment, both sorted by address. The blocks of
 * a segment cover the segment without gap or overlap. */
struct frag_layout {
    uint64_t segment_count, block_count;
    const struct frag_recorded_segment *segments;
    const struct frag_recorded_block *blocks;
};

/* The actions of the recorded allocator. `fragsim validate` compares a policy
 * with it. */
struct frag_recorded {
    const frag_addr *addr; /* one row per event: the address that the ALLOC
                              returned; 0 if the ALLOC failed or the event is
                              not an ALLOC. NULL if the source has no
                              addresses */
    uint64_t action_count;
    const struct frag_recorded_action *actions; /* in the order of time */
    struct frag_layout start; /* just before event number `initial`; empty if
                                 nothing was reserved then */
    struct frag_layout end;   /* after the last event; empty if not recorded */
    const char *settings;     /* frag_trace.settings */
    bool has_actions;         /* the source records segments and oom */
    bool has_end;             /* the source has a final snapshot */
};

enum frag_mark_kind { FRAG_MARK_BEGIN, FRAG_MARK_END };

/* The beginning or the end of a training step or phase. */
struct frag_mark {
    uint64_t event; /* the mark lies directly before the event with this index;
                       the number of events if it lies after the last one */
    frag_time time;
    uint32_t kind; /* enum frag_mark_kind */
    uint32_t name; /* index in frag_trace.strings */
};

enum frag_change_kind {
    FRAG_CHANGE_SETTINGS, /* a call of _set_allocator_settings */
    FRAG_CHANGE_LIMIT,    /* a call of set_per_process_memory_fraction */
};

enum frag_change_origin {
    FRAG_CHANGE_RECORDED, /* the recording has the call */
    FRAG_CHANGE_FOUND,    /* inferred from what the allocator did */
    FRAG_CHANGE_EDITED,   /* the user's */
};

/* The program changed the settings of its allocator. */
struct frag_setting_change {
    uint64_t event;  /* directly before the event with this index; the number of
                        events if it lies after the last one; 0: at the start */
    frag_time time;  /* 0 if not known */
    frag_size limit; /* LIMIT: of the process from here on, in bytes;
                        FRAG_UNLIMITED: none */
    uint32_t kind;   /* enum frag_change_kind */
    uint32_t text;   /* SETTINGS: index in frag_trace.strings of the text that
                        the program passed, in the grammar of
                        PYTORCH_CUDA_ALLOC_CONF */
    uint32_t stack;  /* of the call; 0 if not recorded */
    uint32_t origin; /* enum frag_change_origin */
};

/* PyTorch's pair of numbers that identifies a pool; (0, 0) is the default pool.
 * A capture of a CUDA graph makes a pool with an owner of its own; a MemPool,
 * or the handle of graph_pool_handle(), has a number and no owner. Source: the
 * comments of MempoolId_t in c10/core/Allocator.h of PyTorch 2.15. */
struct frag_pool_id {
    uint64_t owner, number;
};

/* What an EMPTY_CACHE is about. In the default pool it is a call of
 * empty_cache. A private pool ends when the program deletes its MemPool or the
 * last graph that uses it. */
enum frag_trim {
    FRAG_TRIM_CACHE, /* unused memory is returned */
    FRAG_TRIM_ENDED, /* the pool has ended, and its unused memory is returned */
    FRAG_TRIM_LATER, /* the pool has ended; its unused memory is returned with
                        that of the default pool, the next time */
};
/* The number of the device that stands for pinned host memory. Its trace has
 * the requests to the host allocator of the process. */
#define FRAG_HOST_DEVICE UINT32_MAX

/* "device 0", or "host memory". */
#define FRAG_DEVICE_NAME(device) \
    frag_device_name((device), (char[FRAG_DEVICE_TEXT]){""})
enum { FRAG_DEVICE_TEXT = 20 };
const char *frag_device_name(uint32_t device, char text[FRAG_DEVICE_TEXT]);

/* The events of one device.
 *
 * `id` names a block by its slot. An ALLOC occupies a slot; after the FREE of
 * that slot, another ALLOC may use the same slot. The operations use these
 * columns, and a column that an operation does not use holds 0:
 *
 *   ALLOC           id, bytes (as requested, more than 0), stream, pool
 *   FREE            id: from this event on the memory can be reused; stream, if
 *                   free_streams
 *   FREE_REQUESTED  id: the client freed the block, and its FREE follows later.
 *                   A reader omits FREE_REQUESTED if its FREE is the very
 *                   next entry of the recording.
 *   RECORD_STREAM   id, stream: another stream that uses the block
 *   EMPTY_CACHE     pool; id: enum frag_trim, 0 for the default pool
 */
struct frag_device_trace {
    uint32_t device; /* number of the device, or FRAG_HOST_DEVICE */
    uint32_t
        slots; /* peak number of live or pending blocks; every id is less */
    uint64_t count; /* number of events */
    uint64_t added; /* the last `added` events were not recorded: the trace of
                       a job that died was completed with them, see
                       traces/steps/complete.h */
    bool free_streams; /* the stream of a FREE is 1 + the row of the stream on
                          which the client freed the block, or 0 if that is the
                          stream of its ALLOC; else the stream of a FREE means
                          nothing */
    uint64_t initial;  /* the first `initial` events are ALLOCs that rebuild the
                          blocks that were live before the recording began */

    /* Columns of `count` rows. */
    const uint8_t *op;         /* enum frag_op */
    const uint32_t *id;        /* slot */
    const uint64_t *bytes;     /* bytes as requested; 0 unless op is ALLOC */
    const frag_stream *stream; /* row of `streams` */
    const frag_pool *pool;     /* row of `pools` */
    const frag_time *time;     /* ns since 1970; NULL if not recorded */
    const uint32_t *stack;     /* stack of the call; NULL if not recorded */

    uint32_t stream_count, pool_count;
    const uint64_t *streams;          /* raw handles, ascending */
    const struct frag_pool_id *pools; /* [0] is (0, 0) */

    uint64_t mark_count;
    const struct frag_mark *marks;

    uint64_t change_count;
    const struct frag_setting_change *changes; /* in the order of the events */
    const char *const *strings;                /* frag_trace.strings */

    struct frag_recorded recorded;

    /* The mapped trace file, in which columns may lie; NULL, 0 if there is
     * none. frag_trace_passed releases its pages. */
    const void *map;
    uint64_t map_size;
};

/* The pool of the request during which an action was recorded. */
static inline frag_pool
frag_pool_of_action(const struct frag_device_trace *d,
                    const struct frag_recorded_action *a)
{
    return a->event < d->count && d->op[a->event] == FRAG_ALLOC
               ? d->pool[a->event]
               : 0;
}

/* One frame of a call stack. Equal stacks are stored once: stack k consists of
 * frames[stack_first[k]] up to frames[stack_first[k + 1] - 1], innermost frame
 * first. Stack 0 is empty. */
#define FRAG_METADATA_FILE                                                   \
    "user_metadata" /* the file of a frame whose function is a text that the \
                       program gave its requests, and no function: it is the \
                       outermost frame. Source: _set_memory_metadata of      \
                       PyTorch 2.10 and later */
struct frag_frame {
    uint32_t file, function; /* indices in frag_trace.strings */
    uint32_t line;
};

struct frag_trace {
    char *path;         /* as the caller passed it; "-" for stdin */
    const char *format; /* name of the importer that read the input */
    char sha256[65];    /* in hex, of the input's bytes on disk, so of the
                           compressed bytes if the input is compressed. For a
                           trace file: the value that the file states for the
                           input it was made from, or "" */
    uint64_t file_bytes;

    uint32_t device_count;
    struct frag_device_trace *devices; /* in ascending order of the number */

    /* Settings of the recorded allocator, as a PYTORCH_CUDA_ALLOC_CONF string
     * that restores them (rebuilt from the snapshot's allocator_settings); NULL
     * if none were recorded. No snapshot contains the memory fraction, so the
     * string lacks it. It may have the padding of traces/torch_sizes.h. If a
     * device has changes, these are the settings at the start, with
     * TORCH_FOLLOWS_KEY. */
    char *settings;

    /* The memory limit of the recorded process, in bytes, as the user or the
     * file of counters beside a snapshot states it; FRAG_UNLIMITED: it had
     * none; 0: it is not known. A snapshot has it among its changes only. */
    frag_size limit;

    /* The releases of PyTorch 2 whose snapshots have the keys of this one:
     * "2.10 to 2.11", "2.9" or "2.12 or later"; NULL if that is not known. */
    char *releases;

    uint32_t string_count;
    const char *const *strings;
    uint32_t stack_count;
    const uint64_t *stack_first; /* stack_count + 1 rows */
    const struct frag_frame *frames;

    /* The assumptions of the reader, one sentence each: for example overflowed
     * ring buffers, uncertain sizes, inferred empty_cache calls. */
    uint32_t note_count;
    const char *const *notes;

    void *owner; /* the storage of the arrays; private to traces/ */
    void *known; /* what the caller found, which lies in the storage; or NULL */
};

/* A note of the reader of a snapshot with OOMs whose limit is not known has
 * these words. A reader that finds the limit otherwise replaces the note. */
#define FRAG_PEAK_AS_LIMIT \
    "the memory limit is not known; the peak of the reserved bytes"

/* The note of the reader of a snapshot of pinned memory without the requested
 * bytes has these words. */
#define FRAG_BLOCKS_AS_REQUESTS "PyTorch records the sizes of pinned blocks"

/* A change of settings that the caller found, for frag_read_options. */
struct frag_found_change {
    uint32_t device;
    uint64_t after;   /* requests of the device after the change, failed ones
                         included; it lies directly after the one before */
    const char *text; /* as of frag_setting_change; NULL: a change of the limit
                       */
    frag_size limit;
};

struct frag_read_options {
    /* The memory limit of the recorded allocator in bytes; FRAG_UNLIMITED if it
     * had no limit, 0 if the limit is not known. The reader uses it to
     * distinguish empty_cache calls from retries of failed allocations. */
    frag_size limit;
    /* Called from time to time with the bytes read so far and the total bytes
     * (0 if not known). If it returns true, the reading is cancelled. May be
     * NULL. */
    frag_progress *progress;
    void *user; /* passed to progress */
    /* Threads that read: 1 for the caller's only; 0 for a second one where
     * there is a processor for it. The trace is the same. */
    size_t threads;
    /* Changes that a snapshot does not tell, in their order: those of all
     * devices. NULL: the reader of snapshots looks for some itself. */
    const struct frag_found_change *found;
    uint64_t found_count;
};

/* Reads any supported input: trace files, PyTorch snapshots, CSV and the other
 * formats of `fragsim help formats`. The content decides the format, not the
 * name. Compressed inputs (gzip, xz, zstd, zip) are unpacked, except trace
 * files. "-" is stdin. opts may be NULL. The caller releases *out with
 * frag_trace_close.
 * IO if the input cannot be read; CORRUPT if it is malformed (e states the
 * file, the offset or line, what was expected and what was found); CANCELLED by
 * opts->progress; NOMEM. On error *out is unchanged. */
enum frag_err frag_trace_open(const char *path,
                              const struct frag_read_options *opts,
                              struct frag_trace **out,
                              struct frag_error *e) FRAG_MUST_CHECK;
void frag_trace_close(struct frag_trace *trace); /* NULL is fine */

/* Adds a sentence to the notes of a trace, which copies it. NOMEM. */
enum frag_err frag_trace_note(struct frag_trace *t, const char *text,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* A loop over the events of a device calls this after the events [from, to), so
 * that its resident memory does not grow with a mapped trace file: the pages of
 * each complete window of FRAG_PASSED_EVENTS events are released. Columns that
 * are not mapped are untouched. Released events may be read again at any time:
 * the system reads their pages from the file again. */
#define FRAG_PASSED_EVENTS ((uint64_t)1 << 20)
void frag_trace_passed(const struct frag_device_trace *d, uint64_t from,
                       uint64_t to);

/* The form of a file. Its first bytes on the disk decide the form. */
enum frag_trace_form {
    FRAG_FORM_PLAIN,      /* neither form below, or not readable, or no regular
                             file, which can be read only once */
    FRAG_FORM_PACKED,     /* gzip, xz, zstd or zip, whatever is inside */
    FRAG_FORM_TRACE_FILE, /* a trace file. HDF5 reads it, and HDF5 does not
                             support several threads at a time */
};

enum frag_trace_form frag_trace_form(const char *path);

/* Writes a trace file. The file appears under `path` complete or not at all: it
 * is written beside path and then renamed. IO, NOMEM. */
enum frag_err frag_trace_write(const struct frag_trace *trace, const char *path,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Writes the events of one device as CSV with the header op,id,bytes,stream.
 * The path "-" is stdout. Streams are raw handles. All operations are written,
 * including free_requested and record_stream; the CSV importer reads all of
 * them. The streams of frees are not written. INVALID if the trace has no such
 * device; IO, NOMEM. */
enum frag_err frag_trace_write_csv(const struct frag_trace *trace,
                                   uint32_t device, const char *path,
                                   struct frag_error *e) FRAG_MUST_CHECK;

/* Checks the event columns of a device: ids, streams and pools are in range, no
 * slot is allocated while live or freed while free, sizes are from 1 to
 * 2^63 - 1. CORRUPT at the first violation, with its event in e; NOMEM. The
 * time is O(events). Every reader calls this function last, so the users of a
 * trace need not check the events again. `path` is for the message. */
enum frag_err frag_trace_check(const struct frag_device_trace *device,
                               const char *path,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Returns the device with that number, NULL if the trace has none. */
const struct frag_device_trace *frag_trace_device(const struct frag_trace *t,
                                                  uint32_t device);

/* Whether the input was a snapshot of PyTorch's allocator. A trace file does
 * not state it: false. */
bool frag_trace_is_snapshot(const struct frag_trace *t);

/* Whether the operation frees a block. */
static inline bool frag_op_frees(uint8_t op)
{
    return op == FRAG_FREE || op == FRAG_FREE_REQUESTED;
}

enum { FRAG_POOL_NAME = 56 }; /* enough for every name of a pool */

/* Writes the name of a pool, a row of the table of the device: "default pool",
 * or its kind and its OWNER:NUMBER, "graph 3:0" or "MemPool 0:1". What is no
 * recording of PyTorch has "pool 0:1". Returns text. */
const char *frag_pool_name(const struct frag_trace *t,
                           const struct frag_device_trace *d, frag_pool pool,
                           char text[FRAG_POOL_NAME]);

/* The words of FRAG_OPS and FRAG_ACTIONS, by enum value. */
extern const char *const frag_op_names[FRAG_OP_COUNT];
extern const char *const frag_action_names[FRAG_ACTION_COUNT];

FRAG_END_DECLS

#endif
