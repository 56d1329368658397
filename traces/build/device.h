/* device.h - the builder's own state. Private to traces/build/.
 *
 * device.c keeps it, build.c takes entries, event.c events of scripts, end.c
 * the final snapshot, text.c strings, stacks, notes and settings, marks.c
 * marks; finish.c calls, for each device in this order, infer.c (what the
 * entries leave open: completions, empty_cache calls), start.c (the state
 * before the first entry), pools.c (pools and streams) and marks.c.
 */
#ifndef FRAG_TRACES_BUILD_DEVICE_H
#define FRAG_TRACES_BUILD_DEVICE_H

#include "traces/build/build.h"
#include "traces/grow.h"
#include "traces/live.h"
#include "traces/storage.h"

/* The event columns. */
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
    uint64_t freed; /* the event that frees it; FRAG_NEVER */
    uint64_t where;
    uint64_t block; /* of the final snapshot, if exact */
    uint32_t slot, state, stream;
    bool exact;  /* the final snapshot has it */
    bool placed; /* in a known segment */
};

/* What came right after a run of segment_free and segment_unmap entries. */
enum follow {
    FOLLOW_CLIENT,  /* an event that needs no new memory */
    FOLLOW_SEGMENT, /* a segment of `size` */
    FOLLOW_REQUEST, /* an attempt to serve `size`: maps, or an oom */
};

/* A place where empty_cache may have been called. */
struct flush {
    uint64_t event, action; /* of its EMPTY_CACHE; the first it returned */
    frag_size size;
    enum follow follow;
};

struct device_build {
    uint32_t device, slots;
    struct columns events;
    struct live live;

    uint32_t *vacant; /* slots to give out again, last returned first */
    uint64_t vacant_count, vacant_room;

    struct event held; /* a free_requested whose next entry is not known yet */
    bool holds;

    struct frag_recorded_action *actions;
    uint64_t action_count, action_room;
    uint64_t open_action; /* from here on their event is not known yet */

    /* The run of returned segments that the entries are in. */
    bool in_run, in_request; /* in_request: new memory, not yet its alloc */
    bool run_in_request;
    uint64_t run_action;
    frag_time run_time;
    struct flush *flushes;
    uint64_t flush_count, flush_room;
    uint64_t open_request; /* 1 + the flush that waits for a request's size */

    uint64_t *streams; /* raw handles, in order of appearance until finished */
    uint64_t stream_count, stream_room;
    struct frag_pool_id *pools; /* [0] is (0, 0) */
    uint64_t pool_count, pool_room;

    struct early_block *early;
    uint64_t early_count, early_room;
    uint64_t initial; /* of them are events by now */

    struct frag_recorded_segment *segments;
    uint64_t segment_count, segment_room;
    struct frag_recorded_block *blocks;
    uint64_t block_count, block_room;
    frag_addr block_end; /* where the next block of the last segment goes */

    struct frag_recorded_segment *start_segments;
    uint64_t start_segment_count, start_segment_room;
    struct frag_recorded_block *start_blocks;
    uint64_t start_block_count, start_block_room;

    struct frag_mark *marks;
    uint64_t mark_count, mark_room;

    uint64_t entries, requests, completions, ooms;
    uint64_t reused; /* allocs at addresses whose free had not completed */
    bool has_time, has_stack, has_pool_ids;
};

struct frag_build {
    char *path;
    const char *format;
    struct device_build **devices; /* in order of appearance */
    uint64_t device_count, device_room;
    struct device_build *last;

    char *text; /* the strings, each with a terminating 0 */
    uint64_t text_size, text_room;
    uint64_t *strings; /* where in text */
    uint64_t string_count, string_room;
    struct index *string_index;

    struct frag_frame *frames;
    uint64_t frame_count, frame_room;
    uint64_t *stack_first;
    uint64_t stack_count, stack_room; /* stack_first has one row more */
    struct index *stack_index;

    char **notes;
    uint64_t note_count, note_room;

    char *conf;
    struct frag_recorded_settings settings; /* conf points to the above */
};

/* The device's state, made if there is none. NULL with the error in *err. */
struct device_build *build_device(struct frag_build *b, uint32_t device,
                                  enum frag_err *err, struct frag_error *e);

enum frag_err build_push(struct device_build *d, const struct event *event);
enum frag_err build_take_slot(struct device_build *d, uint32_t *slot);
void build_return_slot(struct device_build *d, uint32_t slot);

/* The index of a raw handle, of a pool; added if new. CORRUPT if there are too
 * many. */
enum frag_err build_stream(struct frag_build *b, struct device_build *d,
                           uint64_t handle, uint32_t *index,
                           struct frag_error *e);
enum frag_err build_pool(struct frag_build *b, struct device_build *d,
                         struct frag_pool_id pool, uint32_t *index,
                         struct frag_error *e);

/* The entries are over: what was held back becomes events. */
enum frag_err build_flush(struct device_build *d);

/* The final snapshot in address order, its live blocks with their slots; those
 * that no entry made become early blocks. */
enum frag_err build_end(struct frag_build *b, struct device_build *d,
                        struct frag_error *e);

/* The segments held before the first entry, in address order, without blocks:
 * those of the end, with every action undone. */
enum frag_err build_start_segments(struct device_build *d);

/* Steps of finishing a device; see the head of each file. */
enum frag_err build_infer(struct frag_build *b, struct device_build *d,
                          frag_size limit, struct frag_error *e);
enum frag_err build_start(struct frag_build *b, struct device_build *d,
                          struct frag_error *e);
enum frag_err build_pools(struct device_build *d);
enum frag_err build_streams(struct device_build *d);
enum frag_err build_marks(struct frag_build *b, struct device_build *d);
void build_device_close(struct device_build *d);
void build_text_close(struct frag_build *b);

/* Bytes of segments at the end: (+) taken minus (-) returned by an action. */
static inline frag_size action_sign(const struct frag_recorded_action *a,
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

static inline bool returns_memory(const struct frag_recorded_action *a)
{
    return a->action == FRAG_SEGMENT_FREE || a->action == FRAG_SEGMENT_UNMAP;
}

#endif
