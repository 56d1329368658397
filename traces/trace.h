/* trace.h - what happened: the event stream of each device, and beside it what
 * the recorded allocator answered.
 *
 * A trace is columns. Each column is a plain array, either built in memory by
 * an importer or mapped straight from the trace file; nobody may write to it.
 * One trace holds one or more devices; each is an independent stream in the
 * order its allocator saw it.
 *
 * The file is HDF5; its layout is in trace_file.c and `fragsim help formats`.
 */
#ifndef FRAG_TRACES_TRACE_H
#define FRAG_TRACES_TRACE_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

/* What the client did. One line an operation: the enum, the CSV words and the
 * HDF5 enum come from here. */
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

/* What the recorded allocator did to get or return device memory. */
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

/* One recorded action. `event` is the index of the event during which it
 * happened: before that event's answer, after the answer of the one before. */
struct frag_recorded_action {
    uint64_t event;
    frag_addr addr;        /* start of the range; 0 for oom */
    frag_size size;        /* bytes; for oom the rounded request */
    frag_size device_free; /* oom only: free device memory as reported */
    uint32_t action;       /* enum frag_action */
    uint32_t stream;       /* frag_stream */
};

enum frag_block_state {
    FRAG_INACTIVE,
    FRAG_ACTIVE_PENDING_FREE, /* freed by the client, not yet reusable */
    FRAG_ACTIVE_ALLOCATED,
};

#define FRAG_SIZE_UNKNOWN UINT64_MAX /* a requested size nobody recorded */

struct frag_recorded_block {
    frag_addr addr;
    frag_size size;
    frag_size requested; /* the last request served from it; stale if inactive;
                            may be FRAG_SIZE_UNKNOWN */
    uint32_t state;      /* enum frag_block_state */
    uint32_t slot;       /* id of the event that made it, UINT32_MAX if none */
};

struct frag_recorded_segment {
    frag_addr addr;
    frag_size size;
    uint64_t first_block, block_count; /* rows of the blocks table */
    uint32_t stream;                   /* frag_stream */
    uint32_t pool;                     /* frag_pool */
    uint8_t is_small, is_expandable;
    uint8_t reserved[6]; /* 0 */
};

/* Segments with the blocks that tile each of them, both by address. */
struct frag_layout {
    uint64_t segment_count, block_count;
    const struct frag_recorded_segment *segments;
    const struct frag_recorded_block *blocks;
};

/* The truth a policy is validated against. */
struct frag_recorded {
    const frag_addr *addr; /* addr[count]: the answer to each alloc, 0 where it
                              failed or the event is no alloc; NULL if the
                              source has no addresses */
    uint64_t action_count;
    const struct frag_recorded_action *actions; /* in order */
    struct frag_layout start; /* before event `initial`; empty if none */
    struct frag_layout end;   /* after the last event; empty if not recorded */
    bool has_actions;         /* the source records segments and oom */
    bool has_end;             /* the source has a final snapshot */
};

enum frag_mark_kind { FRAG_MARK_BEGIN, FRAG_MARK_END };

/* A step or phase boundary: between event - 1 and event. */
struct frag_mark {
    uint64_t event;
    frag_time time;
    uint32_t kind; /* enum frag_mark_kind */
    uint32_t name; /* index in the trace's strings */
};

struct frag_pool_id {
    uint64_t owner, number; /* PyTorch's pair; (0, 0) is the default pool */
};

/* The stream of one device.
 *
 * Of an event: `id` is a slot, free for reuse after its FREE, less than
 * `slots`. ALLOC has bytes > 0 (as requested), stream, pool. FREE means
 * reusable from here on; a FREE_REQUESTED comes before it only where the two
 * fell apart (PyTorch's free_requested and free_completed). RECORD_STREAM has
 * the other stream. EMPTY_CACHE has none of them. Columns that do not apply
 * hold 0.
 */
struct frag_device_trace {
    uint32_t device;
    uint32_t slots;   /* peak number of live blocks: every id is below */
    uint64_t count;   /* events */
    uint64_t initial; /* the first `initial` events are allocs that rebuild the
                         blocks that were live before the recording began */

    /* Columns of `count` rows. */
    const uint8_t *op;         /* enum frag_op */
    const uint32_t *id;        /* slot */
    const uint64_t *bytes;     /* bytes as requested; 0 but for ALLOC */
    const frag_stream *stream; /* all 0 in a one-stream trace */
    const frag_pool *pool;
    const frag_time *time; /* ns since the epoch; NULL if not recorded */
    const uint32_t *stack; /* index in the trace's stacks; NULL if none */

    uint32_t stream_count, pool_count;
    const uint64_t *streams;          /* raw handles, ascending */
    const struct frag_pool_id *pools; /* [0] is (0, 0) */

    uint64_t mark_count;
    const struct frag_mark *marks;

    struct frag_recorded recorded;
};

/* Stacks are interned: stack k is frames[first[k]] .. frames[first[k+1]-1],
 * innermost first; a frame is file, line, function. Stack 0 is empty. */
struct frag_frame {
    uint32_t file, function; /* indices in strings */
    uint32_t line;
};

struct frag_trace {
    char *path;         /* as given; "-" for stdin */
    const char *format; /* name of the importer that read it */
    char sha256[65];    /* of the bytes read (compressed, if they were), hex; of
                           a trace file: of the input it was made from, empty
                           if it does not say */
    uint64_t file_bytes;

    uint32_t device_count;
    struct frag_device_trace *devices;

    /* Settings of the recorded allocator as a PYTORCH_CUDA_ALLOC_CONF string
     * that restores them (rebuilt from the snapshot's allocator_settings), NULL
     * if none were recorded. A memory fraction is in no snapshot. */
    char *settings;

    uint32_t string_count;
    const char *const *strings;
    uint32_t stack_count;
    const uint64_t *stack_first; /* stack_count + 1 rows */
    const struct frag_frame *frames;

    /* What the reader had to assume, one sentence each: overflowed ring
     * buffers, sizes that are uncertain, inferred empty_cache calls. */
    uint32_t note_count;
    const char *const *notes;

    void *owner; /* of the storage; private to traces/ */
};

struct frag_read_options {
    /* The recorded allocator's own memory limit in bytes, FRAG_UNLIMITED if it
     * had none, 0 if not known. Used to tell an empty_cache call from a retry.
     */
    frag_size limit;
    /* Called now and then with bytes read so far and in all (0 if not known);
     * a true answer cancels. May be NULL. */
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
};

/* Reads any supported input, found out by content: trace files, PyTorch
 * snapshots, CSV; .gz .xz .zst inside; "-" is stdin. opts may be NULL.
 * IO if it cannot be read, CORRUPT if it is malformed (e names file and offset
 * or line, what was expected and found), NOMEM. On error *out is untouched. */
enum frag_err frag_trace_open(const char *path,
                              const struct frag_read_options *opts,
                              struct frag_trace **out,
                              struct frag_error *e) FRAG_MUST_CHECK;
void frag_trace_close(struct frag_trace *trace); /* NULL is fine */

/* What lies at a path, told by its first bytes as they are on the disk. */
enum frag_trace_form {
    FRAG_FORM_PLAIN,      /* neither of the two below, "-", or not readable */
    FRAG_FORM_PACKED,     /* gzip, xz, zstd or zip, with whatever is inside */
    FRAG_FORM_TRACE_FILE, /* a trace file; HDF5 opens and closes it, which is
                             not made for several threads at a time */
};

enum frag_trace_form frag_trace_form(const char *path);

/* Writes a trace file beside `path` and renames it, so it appears whole or not
 * at all. With repeat > 1 the stream is written that many times, what is still
 * live freed in between, in memory that does not grow with repeat (the recorded
 * answers are then left out). IO, NOMEM. */
enum frag_err frag_trace_write(const struct frag_trace *trace, const char *path,
                               uint64_t repeat,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Writes the events of one device as CSV with the header op,id,bytes,stream
 * ("-": stdout). Ops without a CSV word of their own meaning elsewhere
 * (free_requested, record_stream) are written too; the reader takes them. */
enum frag_err frag_trace_write_csv(const struct frag_trace *trace,
                                   uint32_t device, const char *path,
                                   struct frag_error *e) FRAG_MUST_CHECK;

/* The first rule a device's columns break (ids out of range, a slot allocated
 * twice, freed while free, a size of 0 or of 2^63 and more), with its event;
 * OK if none. O(events). Every reader ends with it, so that nothing below has
 * to check again. */
enum frag_err frag_trace_check(const struct frag_device_trace *device,
                               const char *path,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* A device of the trace by its number, NULL if it has none. */
const struct frag_device_trace *frag_trace_device(const struct frag_trace *t,
                                                  uint32_t device);

extern const char *const frag_op_names[FRAG_OP_COUNT];
extern const char *const frag_action_names[FRAG_ACTION_COUNT];

FRAG_END_DECLS

#endif
