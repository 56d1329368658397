/* build_device.h - the state of the builder, for traces/build/, and for
 * traces/edit/ and traces/steps/, which write the columns of a changed device.
 *
 * build_device.c holds the state. Other files add to it: build.c adds entries,
 * event.c the events of scripts, which window.c may pass on, build_end.c the
 * final snapshot, build_text.c strings, stacks, notes and settings,
 * build_marks.c marks. build_finish.c then calls for each device, in this
 * order: build_infer (infer.c: completions and empty_cache calls), build_end
 * (build_end.c: sorts the snapshot), build_start (build_start.c and undo.c: the
 * state before the first entry), build_pools, build_free_streams and
 * build_streams (pools.c), and build_marks.
 */
#ifndef FRAG_TRACES_BUILD_BUILD_DEVICE_H
#define FRAG_TRACES_BUILD_BUILD_DEVICE_H

#include "traces/build/build.h"
#include "traces/grow.h"
#include "traces/live.h"
#include "traces/storage.h"

/* The event columns of struct frag_device_trace, and the address. */
#define COLUMNS(X)         \
    X(op, uint8_t)         \
    X(id, uint32_t)        \
    X(bytes, uint64_t)     \
    X(stream, frag_stream) \
    X(pool, frag_pool)     \
    X(time, frag_time)     \
    X(stack, uint32_t)     \
    X(addr, frag_addr)

struct event {
#define X(name, type) type name;
    COLUMNS(X)
#undef X
};

struct columns {
#define X(name, type) type *name;
    COLUMNS(X)
#undef X
    uint64_t count, room;
};

/* A block that was live before the first entry. */
struct early_block {
    frag_addr addr;
    frag_size size; /* 0 while not known */
    frag_size requested;
    frag_size room; /* from addr up to the next early block or the end of the
                       start segment; 0: in no start segment */
    uint64_t freed; /* the event that frees the block, or FRAG_NEVER */
    uint64_t where; /* position of that entry in the file */
    uint64_t block; /* index in device_build.blocks, if exact */
    uint32_t slot, state, stream;
    bool exact;   /* the size is exact: it is in the final snapshot */
    bool placed;  /* the block lies in a known segment */
    bool certain; /* the size is exact or follows from later entries */
};

/* The entry right after a run of segment_free and segment_unmap entries. */
enum follow {
    FOLLOW_CLIENT,  /* an event that is no request */
    FOLLOW_SEGMENT, /* a segment_alloc of `size` bytes */
    FOLLOW_REQUEST, /* a segment_map, for a request of `size` bytes */
    FOLLOW_OOM,     /* an oom, for a block of `size` bytes */
    FOLLOW_ALLOC,   /* the alloc of a request of `size` bytes */
    FOLLOW_PART,    /* the run goes on in another pool, as the next flush */
};

/* A run of returned segments that an empty_cache call may explain. */
struct flush {
    uint64_t event;  /* index of the candidate EMPTY_CACHE */
    uint64_t action; /* index of the first action of the run */
    frag_size size;  /* see enum follow; 0 if not known */
    enum follow follow;
};

struct device_build {
    uint32_t device, slots;
    struct columns events;
    struct live live; /* keys: addresses of entries, or ids of scripts */

    uint32_t *vacant; /* free slots; the slot returned last is used first */
    uint64_t vacant_count, vacant_room;

    struct event held; /* a free_requested whose next entry is not known yet */
    bool holds;        /* `held` is in use */

    struct frag_recorded_action *actions;
    uint64_t action_count, action_room;
    uint64_t open_action; /* the event of this action and of all later ones is
                             not known yet */

    bool in_request; /* after the segment_alloc or segment_map of a request,
                        before its alloc */
    /* The current run of segment_free and segment_unmap entries. */
    bool in_run;
    uint32_t run_pool;   /* row of pools */
    bool run_in_request; /* in_request was true when the run began */
    uint64_t run_action; /* index of the first action of the run */
    frag_time run_time;
    struct flush *flushes;
    uint64_t flush_count, flush_room;
    uint64_t open_request; /* 1 + index of the flush whose size is that of the
                              current request; 0: none */

    uint64_t *streams; /* raw handles, in order of appearance until finished */
    uint64_t stream_count, stream_room;
    struct frag_pool_id *pools; /* [0] is (0, 0) */
    uint64_t pool_count, pool_room;
    struct live many_streams, many_pools; /* indices beyond the first few, by
                                             handle or a hash of the pool */

    struct early_block *early;
    uint64_t early_count, early_room;
    bool has_policy;    /* a policy of fragsim served the device */
    frag_time *emptied; /* the times of its empty_cache calls */
    uint64_t emptied_count, emptied_room;
    uint64_t initial; /* number of early blocks that are events already */

    struct frag_recorded_segment *segments;
    uint64_t segment_count, segment_room;
    struct frag_recorded_block *blocks;
    uint64_t block_count, block_room;
    frag_addr block_end; /* address of the next block of the last segment */

    struct frag_recorded_segment *start_segments;
    uint64_t start_segment_count, start_segment_room;
    struct frag_recorded_block *start_blocks;
    uint64_t start_block_count, start_block_room;

    struct frag_mark *marks;
    uint64_t mark_count, mark_room;

    struct frag_setting_change *changes;
    struct build_change {
        uint64_t after; /* see frag_build_change */
        struct frag_recorded_settings now;
    } * changed; /* [change_count] */
    uint64_t change_count, change_room, changed_room;

    /* Numbers of entries: of all kinds, free_requested, free_completed, and
     * failed requests. */
    uint64_t entries, requests, completions, ooms;
    bool ends_early; /* the final snapshot was taken after the last entry: it
                        lacks blocks that are live then */
    bool from_start; /* of such a history: nothing was held before its first
                        entry */
    uint64_t reused; /* allocs at addresses whose free had not completed */
    bool has_time, has_stack, has_pool_ids;
    bool has_marks;    /* the events of the marks and changes are known */
    bool free_streams; /* as in frag_device_trace */
};

struct frag_build {
    char *path;
    const char *format;
    struct device_build **devices; /* in order of appearance */
    uint64_t device_count, device_room;
    struct device_build *last; /* the device used last, for a quick search */

    char *text; /* the strings, each with a terminating 0 */
    uint64_t text_size, text_room;
    uint64_t *strings; /* offsets in text */
    uint64_t string_count, string_room;
    struct index *string_index;

    struct frag_frame *frames;
    uint64_t frame_count, frame_room;
    uint64_t *stack_first;
    uint64_t stack_count, stack_room; /* stack_first has one more row */
    struct index *stack_index;

    char **notes;
    uint64_t note_count, note_room;

    char releases[48]; /* "": not known */
    char *conf;
    struct frag_recorded_settings settings; /* its conf is the one above */
};

/* Finds the state of a device, which is created if there is none. CORRUPT if
 * there are too many; NOMEM. */
enum frag_err build_device(struct frag_build *b, uint32_t device,
                           struct device_build **out, struct frag_error *e);

/* Appends an event to the columns. NOMEM. */
enum frag_err build_push(struct device_build *d, const struct event *event);

/* Assigns a free slot. NOMEM. build_return_slot cannot fail. */
enum frag_err build_acquire_slot(struct device_build *d, uint32_t *slot);
void build_return_slot(struct device_build *d, uint32_t slot);

/* These two find the index of a raw stream handle or of a pool, and add it if
 * it is new. CORRUPT if there are more than 65536; NOMEM. */
enum frag_err build_stream(struct frag_build *b, struct device_build *d,
                           uint64_t handle, uint32_t *index,
                           struct frag_error *e);
enum frag_err build_pool(struct frag_build *b, struct device_build *d,
                         struct frag_pool_id pool, uint32_t *index,
                         struct frag_error *e);

/* Ends the entries: adds the events that waited for the next entry. */
enum frag_err build_flush(struct device_build *d);

/* Sorts the final snapshot by address and finds the slots of its live blocks.
 * The live blocks that no entry allocated are added to the early blocks. */
enum frag_err build_end(struct frag_build *b, struct device_build *d,
                        struct frag_error *e);

/* Sets the size of each early block in a start segment. The early blocks are
 * sorted. */
void build_sizes(const struct frag_build *b, struct device_build *d);
/* Computes start_segments, the segments that were reserved before the first
 * entry, by address and without blocks: it starts from the segments at the end
 * and undoes every action. Sets from_start. */
enum frag_err build_start_segments(struct device_build *d);

/* The other steps of build_finish.c, each described on top of its file. */
enum frag_err build_infer(struct frag_build *b, struct device_build *d,
                          frag_size limit);
enum frag_err build_start(struct frag_build *b, struct device_build *d,
                          struct frag_error *e);
enum frag_err build_pools(struct device_build *d);
enum frag_err build_free_streams(struct device_build *d);
enum frag_err build_streams(struct device_build *d);
enum frag_err build_marks(struct frag_build *b, struct device_build *d);
/* Places the changes among the events, as these are at the moment. NOMEM. */
enum frag_err build_changes(struct device_build *d);
/* Places those that were found, which are all or none, in the interval in which
 * each lies, as the addresses of requests tell. NOMEM. */
enum frag_err build_found(const struct frag_build *b, struct device_build *d);
/* Moves the event columns to the trace, which owns them from then on. False if
 * the host has no memory; then the others are still the builder's. */
bool build_keep_events(struct frag_trace *t, struct frag_device_trace *out,
                       struct device_build *d);
void build_columns_free(struct columns *c); /* c is then empty */
void build_text_close(struct frag_build *b);

/* Returns whether the action returned device memory. */
static inline bool returns_memory(const struct frag_recorded_action *a)
{
    return a->action == FRAG_SEGMENT_FREE || a->action == FRAG_SEGMENT_UNMAP;
}

#endif
