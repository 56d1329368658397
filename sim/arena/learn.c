/* learn.c - infers hidden memory (hidden.h) from the recorded addresses of
 * segments.
 *
 * The driver's rule predicts the address of each segment from all that is known
 * so far. If the recorded address differs, the segment proves an action of
 * another user, and the least action that explains the address becomes a step.
 * The segment is then placed at its recorded address.
 */
#include <stdlib.h>

#include "sim/arena/arena_parts.h"
#include "sim/arena/hidden.h"
#include "traces/grow.h"

#define CHUNK (32 * FRAG_MIB)
#define UNIT  (2 * FRAG_MIB)

/* Larger segments, and addresses outside of a process, are damage. */
#define LARGEST ((frag_size)1 << 40)

/* More steps than these for one segment explain nothing. */
enum { STEPS_MAX = 16 };

struct learner {
    struct arena *arena;
    struct frag_hidden *out; /* also the steps that the arena applies */
    uint64_t taken_room;     /* of arena->hidden */
    uint64_t event;          /* of the segment that is being explained */
    frag_addr shift;         /* recorded address minus simulated address */
    bool has_shift, nomem;
};

static bool add_step(struct learner *l, enum frag_hidden_action action,
                     frag_addr at, frag_size size)
{
    struct frag_hidden *h = l->out;
    const bool is_placed = action != FRAG_HIDDEN_GROW;

    if (!GROW(h->steps, h->room, h->count + 1) ||
        !GROW(l->arena->hidden, l->taken_room, h->count + 1)) {
        l->nomem = true;
        return false;
    }
    l->arena->hidden[h->count] = NULL;
    h->steps[h->count++] = (struct frag_hidden_step){
        l->event, action, is_placed ? (int64_t)(at - driver_base()) : 0,
        is_placed ? size : 0};
    if (hidden_apply(l->arena, h->count - 1) != FRAG_OK)
        l->nomem = true;
    return !l->nomem;
}

static bool take(struct learner *l, frag_addr from, frag_addr end)
{
    return from >= end || add_step(l, FRAG_HIDDEN_TAKE, from, end - from);
}

/* ---- the actions that can explain an address; each returns false if it does
 * not apply ---- */

static bool explain_local(struct learner *l, frag_addr at)
{
    const struct arena_range *local = l->arena->local;

    return local && at >= local->range.at &&
           at - local->range.at < local->range.size &&
           add_step(l, FRAG_HIDDEN_GROW, 0, 0);
}

/* The range of a step was a wrong guess, or its memory was freed since. */
static bool explain_returned(struct learner *l, frag_addr at, frag_size size)
{
    for (uint64_t i = 0; i < l->out->count; i++) {
        const struct arena_range *p = l->arena->hidden[i];
        frag_addr from, end;

        if (!p || p->range.at >= at + size || at >= p->range.at + p->range.size)
            continue;
        from = p->range.at;
        end = from + p->range.size;
        return add_step(l, FRAG_HIDDEN_RETURN, from, end - from) &&
               take(l, from, at) && take(l, at + size, end);
    }
    return false;
}

/* The segment skipped the free range that the rule selects. */
static bool explain_skipped(struct learner *l, frag_addr at, frag_size size,
                            const struct driver_place *next)
{
    const bool is_same = at > next->at && at < next->end;

    if (next->is_new_chunk)
        return false;
    return take(l, next->at, is_same ? at : next->end - size + UNIT);
}

/* Whether one hole has all these addresses. */
static bool is_hole(const struct learner *l, frag_addr from, frag_addr end)
{
    const struct range *hole = ranges_upto(&l->arena->high.holes, from);

    return hole && hole->at + hole->size >= end;
}

/* The segment began a chunk elsewhere than expected: below a chunk of another
 * user, or in addresses that the host unmapped. These exceed the chunk by 32
 * MiB, since the driver does not fill a hole. */
static bool explain_chunk(struct learner *l, frag_addr at, frag_size size,
                          const struct driver_place *next)
{
    const frag_addr end = at + frag_round_up(size, CHUNK);

    if (at < next->at && is_hole(l, at, end))
        return take(l, end > next->from ? end : next->from, next->end);
    return !is_hole(l, at - CHUNK, end) &&
           add_step(l, FRAG_HIDDEN_OPEN, at - CHUNK, end - at + CHUNK);
}

/* Another user began the chunk, and the segment follows in it. */
static bool explain_follower(struct learner *l, frag_addr at)
{
    return at % CHUNK && take(l, at / CHUNK * CHUNK, at);
}

static bool explain(struct learner *l, frag_addr at, frag_size size,
                    const struct driver_place *next)
{
    const bool is_in_chunk = driver_in_chunk(l->arena, at);

    if (explain_local(l, at) || explain_returned(l, at, size))
        return true;
    if (is_in_chunk && !driver_has_free(l->arena, at, size))
        return false;
    if (!is_in_chunk && at % CHUNK)
        return explain_follower(l, at);
    return explain_skipped(l, at, size, next) ||
           (!is_in_chunk && explain_chunk(l, at, size, next));
}

/* Adds steps until the rule predicts this address. */
static bool explained(struct learner *l, frag_addr at, frag_size size)
{
    struct driver_place next;

    for (int i = 0; driver_next(l->arena, size, &next); i++) {
        if (next.at == at)
            return true;
        if (i == STEPS_MAX || !explain(l, at, size, &next))
            return false;
    }
    return false;
}

/* ---- the segments ---- */

static bool is_possible(frag_addr at)
{
    return at >= LARGEST && at < ADDRESS_END;
}

static void learn_alloc(struct learner *l, frag_addr addr, frag_size size)
{
    const uint64_t steps = l->out->count;
    struct driver_place next;
    struct arena_range *p = NULL;
    frag_addr at;

    if (!l->has_shift && driver_next(l->arena, size, &next)) {
        l->shift = addr - next.at;
        l->has_shift = true;
    }
    at = addr - l->shift;
    l->out->segments++;
    if (is_possible(at) && explained(l, at, size))
        l->out->predicted += l->out->count == steps;
    else
        l->out->unexplained++;
    if (is_possible(at))
        p = driver_take(l->arena, at, size);
    if (p)
        ranges_add(&l->arena->segments, &p->range);
}

static void learn_free(struct learner *l, frag_addr addr)
{
    struct range *r = ranges_at(&l->arena->segments, addr - l->shift);

    if (!r)
        return;
    ranges_remove(&l->arena->segments, r);
    driver_free(l->arena, (struct arena_range *)r);
}

static void learn_segment(struct learner *l,
                          const struct frag_hidden_segment *s)
{
    struct frag_backend *mem = &l->arena->base;

    if (s->size % UNIT || !s->size || s->size > LARGEST)
        return;
    l->event = s->event;
    if (s->is_on_side_stream)
        mem->ops->stream_used(mem, 1);
    if (s->is_free)
        learn_free(l, s->addr);
    else
        learn_alloc(l, s->addr, s->size);
}

enum frag_err frag_hidden_learn(const struct frag_hidden_segment *segments,
                                uint64_t count, struct frag_hidden *out)
{
    const struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED,
                                            .rule = FRAG_RULE_DRIVER};
    struct frag_backend *mem = frag_arena_open(&opts);
    struct learner l = {.out = out};

    *out = (struct frag_hidden){0};
    if (!mem)
        return FRAG_NOMEM;
    l.arena = arena_of(mem);
    l.arena->opts.hidden = out;
    for (uint64_t i = 0; i < count && !l.nomem; i++)
        learn_segment(&l, &segments[i]);
    frag_arena_close(mem);
    if (l.nomem)
        frag_hidden_free(out);
    return l.nomem ? FRAG_NOMEM : FRAG_OK;
}

void frag_hidden_free(struct frag_hidden *h)
{
    free(h->steps);
    *h = (struct frag_hidden){0};
}
