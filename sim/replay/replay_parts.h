/* replay_parts.h - declarations that the files of the engine share. Private to
 * sim/replay/.
 *
 * Each file calls only the files below it in this list:
 * serve.c         the same engine under a running program
 * replay.c        the loop over the events
 * replay_start.c  opens a run, adopts a layout, frees live blocks, ends the run
 * sum.c           computes the summary from the tally
 * rare_events.c   reserved changes, an OOM, a synchronize, a move
 * proof.c         checks every answer of the policy, if the run is checked
 * peak.c          takes pictures; postpones the picture of the peak
 * picture.c       determines how all held memory is used
 * tally.c         the running numbers
 */
#ifndef FRAG_SIM_REPLAY_REPLAY_PARTS_H
#define FRAG_SIM_REPLAY_REPLAY_PARTS_H

#include <time.h>

#include "sim/replay/picture.h"
#include "sim/replay/replay.h"
#include "sim/replay/tally.h"

/* The block of a slot. It is half a cache line, so an event touches one line.
 */
struct run_slot {
    struct frag_block block;
    frag_size requested; /* bytes */
};

/* The tag of a slot holds its state and the segment that contains its block. */
enum slot_state {
    SLOT_FREE, /* no block: the slot is free, or its free was completed early.
                  Further events of it are skipped */
    SLOT_LIVE,
    SLOT_PENDING, /* freed by the client, but not yet reusable */
    SLOT_REFUSED, /* no block: its request failed. The client's free is skipped
                     and ends the demand */
};

enum { TAG_SHIFT = 30 };
#define TAG_SEGMENT ((1u << TAG_SHIFT) - 1)

static inline uint32_t tag_of(enum slot_state state, uint32_t segment)
{
    return (uint32_t)state << TAG_SHIFT | segment;
}

static inline enum slot_state state_of(uint32_t tag)
{
    return (enum slot_state)(tag >> TAG_SHIFT);
}

/* Pending slots in the order in which the client freed them; NIL ends the
 * list. */
#define NIL UINT32_MAX
struct slot_queue {
    uint32_t first, last;
    struct queue_link {
        uint32_t prev, next;
    } * links; /* [slots]; allocated at the first free_requested */
};

/* The latest peak of reserved. */
struct peak {
    bool postponed;             /* its picture has not been taken yet */
    frag_stream stream;         /* of the request that set the peak */
    frag_pool pool;             /* of the request that set the peak */
    frag_size free;             /* free bytes at the peak */
    struct slot_before *before; /* slots that changed since, in order */
    size_t count, room;
};

struct run {
    const struct frag_replay *spec;
    const struct frag_device_trace *trace;
    const struct frag_policy *policy;
    struct run_slot *slots;
    uint32_t *tags;
    uint64_t *frees_at; /* NULL unless the policy needs the future */
    struct frag_future future;
    struct frag_future_request
        *future_requests; /* storage of future.requests */

    struct frag_heap heap;
    struct meter meter;
    struct tally tally;
    uint64_t seen;       /* meter.changes at the last run_absorb */
    uint64_t event;      /* index of the current event, over all repetitions */
    uint64_t change;     /* next row of trace->changes */
    uint64_t base;       /* first event of this repetition: event - base is
                            the index in the trace */
    bool stop;           /* the run ends after this event */
    bool foresees;       /* the policy receives the future */
    bool follows_frees;  /* the policy receives the streams of frees */
    uint64_t next_call;  /* time of the next call of progress, run_clock ns */
    uint64_t moves_seen; /* summary.num_moves at the last run_absorb */

    struct frag_ledger *ledger; /* NULL: the run is not checked */
    uint64_t *filled;      /* [slots]: the event that filled the block with its
                              pattern; NULL: contents are not verified */
    enum frag_err refusal; /* the error of the device, if the fault in the
                              ledger is that error; else FRAG_OK */
    struct frag_error *error;
    struct picture picture;
    struct peak peak;
    struct slot_queue pending;
    bool *stream_announced;

    struct frag_run out;
    uint64_t oom_room, segment_room;
    uint64_t
        aside;     /* ns of the loop that were spent on pictures and OOM rows */
    uint64_t loop; /* ns spent in the loop, `aside` included */
    frag_size requested_at_peak,
        allocated_at_peak; /* at the peak of reserved */
};

/* A monotonic clock, in ns. */
static inline uint64_t run_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Number of events of one repetition. */
static inline uint64_t run_count(const struct run *r)
{
    return r->spec->events ? r->spec->events : r->trace->count;
}

/* Number of events of all repetitions. */
static inline uint64_t run_total(const struct run *r)
{
    return run_count(r) * (r->spec->repeat ? r->spec->repeat : 1);
}

/* Whether a tenth of a second has passed since this was last true. */
static inline bool run_is_due(struct run *r)
{
    const uint64_t now = run_clock();

    if (now < r->next_call)
        return false;
    r->next_call = now + 100000000;
    return true;
}

/* More streams than a trace has, for a trace whose streams are not known yet.
 */
enum { RUN_STREAMS = 1 << 16 };

/* Runs row 0 of the trace as the next event. For a trace whose only row is
 * overwritten before each event (serve.c). */
enum frag_err run_next(struct run *r);

/* --- rare_events.c --- */

/* Accounts for the backend calls that the policy made in its last call: settles
 * the meter and the ledger, and starts a new window. If the call was an alloc
 * (`allocating`), counts a retry. */
void run_absorb(struct run *r, bool allocating);
/* Handles an alloc that returned `err`: counts an OOM and returns OK; any other
 * error is returned with its text, and ends the run. */
enum frag_err run_refused(struct run *r, const struct frag_request *req,
                          enum frag_err err);
/* Handles event i, which is neither an ALLOC nor a FREE. */
enum frag_err run_rare(struct run *r, uint64_t i);
/* Handles a FREE of a slot that is not live. */
enum frag_err run_free_odd(struct run *r, uint32_t id);
/* Tells the policy that the client frees the block of a slot on another stream.
 * NOMEM with a message. */
enum frag_err run_freed_on(struct run *r, uint32_t id, frag_stream stream);
/* Handles the client's free of a live block that queued work still uses.
 * NOMEM. */
enum frag_err run_request_free(struct run *r, uint32_t id);
/* Completes the free of a pending slot. CONTRACT, DEVICE. */
enum frag_err run_complete(struct run *r, uint32_t id);
/* Informs the backend before the first request on a stream. */
void run_announce_stream(struct run *r, frag_stream stream);

/* Tells the policy facts about a private pool (struct frag_heard). NOMEM. */
enum frag_err run_tell(struct run *r, frag_pool pool, unsigned facts, bool now);
/* Tells the policy what the recording shows of private pools. NOMEM. */
enum frag_err run_tell_pools(struct run *r);
/* Callbacks of the meter and of the heap; user is the run. */
void run_synchronized(void *user);
void run_moved(void *user, uint32_t owner, const struct frag_block *block);
/* Adds an extent to the segment rows of the event under way. */
enum frag_err run_keep_extent(void *user, const struct extent *x);

/* --- proof.c: all return OK, CONTRACT, or the error of the device --- */

/* Reports the fault of the ledger, with the event: returns CONTRACT, or the
 * error of the device if that is the fault. */
enum frag_err run_fault(struct run *r);
/* Checks the block that the policy allocated for `requested` bytes, and fills
 * it with its pattern. */
enum frag_err run_prove_alloc(struct run *r, uint32_t id, frag_size requested);
/* Checks a block that is about to be freed. */
enum frag_err run_prove_free(struct run *r, uint32_t id);
/* After a call of the policy: verifies the contents of every block that the
 * policy has moved, remapped or copied over. */
enum frag_err run_prove_disturbed(struct run *r);
/* At the end of the run: reports a fault of the ledger, and verifies the
 * contents of all blocks that are still live or pending. */
enum frag_err run_prove_end(struct run *r);

/* --- peak.c --- */

/* Reserved bytes that are neither allocated nor pending. */
frag_size run_free_bytes(const struct run *r);
/* Takes a picture of this moment. */
enum frag_err run_picture(struct run *r, frag_stream stream, frag_pool pool,
                          enum frag_err (*each)(void *, const struct extent *));
/* The parts of `reserved` bytes, computed from the latest picture. Bytes beyond
 * the current reserved bytes were held during the event only, and count as
 * unusable. */
struct frag_breakdown run_breakdown(const struct run *r, frag_size reserved);

/* Records a new peak of reserved, if there is one, and postpones its picture.
 * Called at the end of an event in which run_absorb was called. */
void run_peak(struct run *r, frag_stream stream, frag_pool pool);
/* Takes the postponed picture, unless there is none or a higher peak has been
 * reached. Called at the end of the run, and before any change other than a
 * block that is allocated or freed. */
void run_settle_peak(struct run *r);
/* Saves the state of a slot before its block is allocated or freed while a
 * picture is postponed. */
void run_note_slot(struct run *r, uint32_t id);

/* Removes the block of a slot from the tally's live blocks, when the client
 * frees it. The block keeps its memory until run_drop. */
static inline void run_release(struct run *r, uint32_t id)
{
    const struct run_slot *s = &r->slots[id];

    r->tally.requested -= s->requested;
    r->tally.quanta_left -= tally_minus(&r->tally, s->requested);
    r->tally.allocated -= s->block.size;
}

/* Removes the block of a slot from its segment, when its memory is reusable. */
static inline void run_drop(struct run *r, uint32_t id)
{
    struct run_slot *s = &r->slots[id];
    struct segment *g = &r->meter.segments[r->tags[id] & TAG_SEGMENT];

    if (__builtin_expect(r->peak.postponed, 0))
        run_note_slot(r, id);
    tally_clear(&r->tally, g, s->block.size);
}

/* Adds the block of a slot to the tally, when the block was allocated. */
static inline void run_enter(struct run *r, uint32_t id,
                             const struct frag_request *req)
{
    struct run_slot *s = &r->slots[id];
    uint32_t segment = meter_find(&r->meter, s->block.addr);
    struct segment *g = &r->meter.segments[segment];

    if (__builtin_expect(r->peak.postponed, 0))
        run_note_slot(r, id);
    if (!g->has_owner) {
        run_settle_peak(r);
        g->has_owner = true;
        g->stream = req->stream;
        g->pool = req->pool;
    }
    s->requested = req->size;
    r->tags[id] = tag_of(SLOT_LIVE, segment);
    tally_fill(&r->tally, g, s->block.size);
    r->tally.requested += req->size;
    r->tally.allocated += s->block.size;
    tally_quanta(&r->tally, req->size);
}

/* --- replay_start.c --- */

/* Opens the storage, the meter and the heap of a run. On error nothing is left
 * open. */
enum frag_err run_open(struct run *r);
/* Makes room for `slots` slots, more than r->trace->slots, which the caller
 * then sets. NOMEM: the arrays that have grown are longer than needed, which is
 * harmless. */
enum frag_err run_grow(struct run *r, uint32_t slots);
/* Closes the heap and returns all memory, to the device too; r->out stays.
 * Returns `err`, the error of the run so far, whose message stays. If it is OK:
 * CONTRACT if the run is checked and memory is still held after the policy's
 * fini. */
enum frag_err run_close(struct run *r, enum frag_err err);
/* Lets the policy adopt the recorded layout at the start of the trace. */
enum frag_err run_adopt(struct run *r);
/* Frees all live and pending blocks, between two repetitions. */
enum frag_err run_drain(struct run *r);

/* --- sum.c --- */

/* Computes the summary over `events` events, the state of memory at the end and
 * the segment rows of the end. r->event is the event count; stream and pool are
 * those of the last event's request, or 0. NOMEM: the summary is complete, but
 * segment rows are missing. */
enum frag_err run_end(struct run *r, uint64_t events, frag_stream stream,
                      frag_pool pool);

#endif
