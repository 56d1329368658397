/* parts.h - what the files of the engine share. Private to sim/replay/.
 *
 * Each file calls only those below it:
 * serve.c    the same engine under a running program
 * replay.c   the loop: what happens at every event
 * start.c    opening, adopting a layout, draining, closing
 * sum.c      from the tally to the summary
 * rare.c     what happens now and then: reserved changes, an OOM, a
 *            synchronize, a move
 * proof.c    what is proved of every answer where the run is checked
 * peak.c     the picture of a moment, and that of the peak, put off
 * picture.c  where every byte lies; tally.c: the running numbers
 */
#ifndef FRAG_SIM_REPLAY_PARTS_H
#define FRAG_SIM_REPLAY_PARTS_H

#include <time.h>

#include "sim/replay/picture.h"
#include "sim/replay/replay.h"
#include "sim/replay/tally.h"

/* Half a cache line, so that an event touches one. */
struct run_slot {
    struct frag_block block;
    frag_size requested;
};

/* A slot's tag: its state, and the segment its block lies in. */
enum slot_state {
    SLOT_FREE, /* or its request failed, or its free was completed early: what
                  the trace says of it is skipped */
    SLOT_LIVE,
    SLOT_PENDING, /* the client is done with it */
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

/* Pending slots in the order of their requests; NIL ends the list. */
#define NIL UINT32_MAX
struct slot_queue {
    uint32_t first, last;
    struct queue_link {
        uint32_t prev, next;
    } * links; /* [slots], from the first free_requested on */
};

/* The last peak of reserved, while its picture is still to be taken. */
struct peak {
    bool put_off;
    frag_stream stream; /* of the request that set it */
    frag_pool pool;
    frag_size free;             /* bytes then */
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
    struct frag_future_request *asked; /* its requests */

    struct frag_heap heap;
    struct meter meter;
    struct tally tally;
    uint64_t seen;  /* meter.changes at the last look */
    uint64_t event; /* under way */
    uint64_t base;  /* of this repetition: event - base is the trace's index */
    bool stop;      /* after an OOM, if the spec says so */
    bool foresees;  /* the trace is known and the policy wants to know it */
    uint64_t moves_seen; /* summary.num_moves when the policy was called */

    struct frag_ledger *ledger;
    uint64_t *filled; /* [slots]: the event that filled the block; NULL: none */
    enum frag_err refusal; /* the device's, if that is the ledger's fault */
    struct frag_error *error;
    struct picture picture;
    struct peak peak;
    struct slot_queue pending;
    bool *stream_told;

    struct frag_run out;
    uint64_t oom_room, segment_room;
    uint64_t aside; /* ns spent in the loop on what is not the loop */
    uint64_t loop;  /* ns spent in the loop, with `aside` */
    frag_size requested_pending; /* part of tally.requested */
    frag_size requested_at_peak, allocated_at_peak;
};

/* A monotonic clock, in ns. */
static inline uint64_t run_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Row 0 of the trace, as the event after the last one: for a trace that is made
 * as it goes. */
enum frag_err run_next(struct run *r);

/* --- rare.c --- */

/* Looks at what a call of the policy did to the device: settles the meter and
 * starts a new window. Of an alloc's call it counts the retry. */
void run_absorb(struct run *r, bool allocating);
/* The request was refused, or the run has to end. */
enum frag_err run_refused(struct run *r, const struct frag_request *req,
                          enum frag_err err);
/* Any op but alloc and free. */
enum frag_err run_rare(struct run *r, uint64_t i);
/* A free of a slot that is not simply live. */
enum frag_err run_free_odd(struct run *r, uint32_t id);
/* The client's free of a live block that queued work still uses. NOMEM. */
enum frag_err run_request_free(struct run *r, uint32_t id);
/* The free of a pending slot is completed; CONTRACT. */
enum frag_err run_complete(struct run *r, uint32_t id);
void run_tell_stream(struct run *r, frag_stream stream);
/* Hooks of the meter and of the heap; user is the run. */
void run_synchronized(void *user);
void run_moved(void *user, uint32_t owner, const struct frag_block *block);
/* Adds an extent to the segment rows of the event under way. */
enum frag_err run_keep_extent(void *user, const struct extent *x);

/* --- proof.c: CONTRACT, DEVICE --- */

/* CONTRACT, or the refusal, with the event in words, where the ledger has a
 * fault. */
enum frag_err run_fault(struct run *r);
/* The answer of the policy to a request of `asked` bytes. */
enum frag_err run_prove_alloc(struct run *r, uint32_t id, frag_size asked);
/* The block is about to go back. */
enum frag_err run_prove_free(struct run *r, uint32_t id);
/* The policy's call is over and every live block has memory: those that it has
 * moved, remapped or copied over. */
enum frag_err run_prove_disturbed(struct run *r);
/* All blocks that are left; the last look at the ledger. */
enum frag_err run_prove_end(struct run *r);

/* --- peak.c --- */

/* Reserved, and neither allocated nor pending. */
frag_size run_free_bytes(const struct run *r);
/* A picture of now. */
enum frag_err run_picture(struct run *r, frag_stream stream, frag_pool pool,
                          enum frag_err (*each)(void *, const struct extent *));
/* The parts of `reserved`, after a picture. What exceeds reserved as it is now
 * was held within the event only. */
struct frag_breakdown run_breakdown(const struct run *r, frag_size reserved);

/* After the event's own accounting, where run_absorb was called: notes a new
 * peak, of which the picture is put off. */
void run_peak(struct run *r, frag_stream stream, frag_pool pool);
/* Takes that picture, if it is still to be taken and there is no higher peak:
 * before anything but the life of blocks changes, and at the end. */
void run_settle_peak(struct run *r);
/* A block is about to come into the slot, or to go from it, while a picture is
 * put off. */
void run_note_slot(struct run *r, uint32_t id);

/* The block of the slot is gone: out of the tally. The policy has it back. */
static inline void run_drop(struct run *r, uint32_t id)
{
    struct run_slot *s = &r->slots[id];
    struct segment *g = &r->meter.segments[r->tags[id] & TAG_SEGMENT];

    if (__builtin_expect(r->peak.put_off, 0))
        run_note_slot(r, id);
    tally_clear(&r->tally, g, s->block.size);
    r->tally.requested -= s->requested;
    r->tally.quanta -= frag_quanta(s->requested);
}

/* The block of the slot is new: into the tally. */
static inline void run_enter(struct run *r, uint32_t id,
                             const struct frag_request *req)
{
    struct run_slot *s = &r->slots[id];
    uint32_t segment = meter_find(&r->meter, s->block.addr);
    struct segment *g = &r->meter.segments[segment];

    if (__builtin_expect(r->peak.put_off, 0))
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

/* --- start.c --- */

/* Everything a run needs; on error nothing is left open. */
enum frag_err run_open(struct run *r);
/* Gives all back, to the device too; keeps r->out. CONTRACT if the policy's
 * fini left memory behind and the run is checked. */
enum frag_err run_close(struct run *r);
/* Starts from the recorded layout. */
enum frag_err run_adopt(struct run *r);
/* Frees all that is live: between two repetitions. */
enum frag_err run_drain(struct run *r);

/* --- sum.c --- */

/* After the last event, before r->event: the summary over so many events, and
 * the segment rows of the end. NOMEM: without the rows. */
enum frag_err run_end(struct run *r, uint64_t events);

#endif
