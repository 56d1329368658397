/* traffic.c - makes scripts of random requests, runs them, and judges the
 * answers. */
#include "sim/experiments/contract/traffic.h"

#include <string.h>

#include "sim/arena/arena.h"
#include "sim/replay/place.h"

uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

frag_size random_size(uint64_t *rng)
{
    static const frag_size tops[] = {
        4 * FRAG_KIB, 4 * FRAG_KIB,  512 * FRAG_KIB, 512 * FRAG_KIB,
        4 * FRAG_MIB, 2 * FRAG_KIB,  12 * FRAG_MIB,  40 * FRAG_MIB,
        1 * FRAG_MIB, 20 * FRAG_MIB,
    };
    const frag_size top =
        tops[random_next(rng) % (sizeof(tops) / sizeof(*tops))];

    return 1 + random_next(rng) % top;
}

/* The stream on which a block is freed; 0: that of its request. */
static frag_stream free_stream(const struct step *alloc)
{
    const frag_stream stream = (frag_stream)(alloc->id % 3);

    return stream == alloc->stream ? 0 : stream;
}

void script_make(struct script *s, uint64_t seed, size_t steps, frag_size size)
{
    uint32_t ids[MAX_LIVE];
    size_t alloc_at[MAX_LIVE], live = 0;

    for (uint32_t i = 0; i < MAX_LIVE; i++)
        ids[i] = i;
    s->count = 0;
    while (s->count < steps || live) {
        const uint64_t dice = random_next(&seed) % 100;
        struct step *step = &s->steps[s->count];
        size_t k = live ? random_next(&seed) % live : 0;

        *step = (struct step){.kind = STEP_TRIM, .frees_at = FRAG_NEVER};
        if (s->count < steps && dice < 2) {
            s->count++;
            continue;
        }
        if (s->count < steps && (!live || (dice < 55 && live < MAX_LIVE))) {
            step->kind = STEP_ALLOC;
            step->id = ids[live];
            step->size = size ? size : random_size(&seed);
            step->stream = (frag_stream)(random_next(&seed) % 3);
            alloc_at[ids[live++]] = s->count++;
            continue;
        }
        step->id = ids[k];
        step->kind = STEP_REQUEST_FREE;
        if (s->count < steps && dice < 60) {
            s->count++;
            continue;
        }
        step->kind = STEP_FREE;
        step->stream = free_stream(&s->steps[alloc_at[ids[k]]]);
        s->steps[alloc_at[ids[k]]].frees_at = s->count++;
        ids[k] = ids[--live];
        ids[live] = step->id;
    }
}

static void traffic_moved(void *user, uint32_t owner,
                          const struct frag_block *block)
{
    struct traffic *t = user;

    t->live[owner ^ t->opts.mask].block = *block;
}

static void traffic_free(struct traffic *t, struct live *l)
{
    t->heap.policy->free(&t->heap, &l->block);
    l->is_live = l->is_pending = false;
}

static void traffic_synchronized(void *user)
{
    struct traffic *t = user;

    for (size_t i = 0; i < MAX_LIVE; i++)
        if (t->live[i].is_pending)
            traffic_free(t, &t->live[i]);
}

enum frag_err traffic_open(struct traffic *t, const struct frag_policy *policy,
                           const char *params,
                           const struct traffic_options *opts)
{
    const struct frag_arena_options arena = {
        .capacity =
            opts->capacity ? opts->capacity * opts->scale : FRAG_UNLIMITED,
        .rule = FRAG_RULE_HOSTILE,
    };
    struct frag_error e;
    enum frag_err err;

    memset(t, 0, sizeof(*t));
    t->opts = *opts;
    t->arena = frag_arena_open(&arena);
    if (!t->arena)
        return FRAG_NOMEM;
    faulty_init(&t->mem, t->arena);
    t->mem.base.granularity *= opts->scale;
    if (!opts->capacity)
        t->mem.base.total *= opts->scale;
    t->mem.on_synchronize = traffic_synchronized;
    t->mem.user = t;
    t->place = place_of_run(policy, sizeof(uint64_t), 0);
    place_part(t->place, "in init");
    err = frag_heap_open(&t->heap, policy, &t->mem.base, params, &e);
    place_part(t->place, NULL);
    if (err != FRAG_OK) {
        place_leave(t->place);
        frag_arena_close(t->arena);
        return err;
    }
    t->heap.moved = traffic_moved;
    t->heap.user = t;
    return FRAG_OK;
}

const char *traffic_close(struct traffic *t)
{
    const char *fault = t->fault ? t->fault : t->mem.misuse;

    t->mem.closing = true;
    place_part(t->place, "in fini");
    frag_heap_close(&t->heap);
    place_leave(t->place);
    if (!fault && (t->mem.used || frag_arena_used(t->arena)))
        fault = "memory is left after closing";
    if (!fault && (t->mem.va || frag_arena_reserved_va(t->arena)))
        fault = "address space is left after closing";
    if (!fault && t->mem.misuse)
        fault = t->mem.misuse;
    frag_arena_close(t->arena);
    return fault;
}

/* ---- the judge ---- */

static bool overlaps(const struct frag_block *a, const struct frag_block *b)
{
    return a->addr < b->addr + b->size && b->addr < a->addr + a->size;
}

static const char *judge_block(const struct traffic *t, const struct live *l)
{
    const frag_size unit =
        t->heap.quantum < FRAG_ALIGNMENT ? t->heap.quantum : FRAG_ALIGNMENT;

    if (l->block.addr % FRAG_ALIGNMENT || l->block.size % unit)
        return "a block is not aligned";
    if (l->block.size < l->requested)
        return "a block is smaller than the request";
    if (!faulty_holds(&t->mem, l->block.addr, l->block.size))
        return "a block is outside of what is held";
    for (const struct live *o = t->live; o < t->live + MAX_LIVE; o++)
        if (o != l && o->is_live && overlaps(&o->block, &l->block))
            return "a block overlaps a live one";
    return NULL;
}

/* Checks everything from time to time; in between, only the changed block. */
enum { JUDGE_EVERY = 8 };

const char *traffic_judge(const struct traffic *t)
{
    frag_size granted = 0;

    for (const struct live *l = t->live; l < t->live + MAX_LIVE; l++) {
        const char *fault = l->is_live ? judge_block(t, l) : NULL;

        if (fault)
            return fault;
        granted += l->is_live ? l->block.size : 0;
    }
    if (granted > t->mem.used)
        return "more is granted than is held";
    return t->mem.misuse;
}

/* ---- running ---- */

static struct frag_request traffic_request(const struct traffic *t,
                                           const struct step *step)
{
    return (struct frag_request){
        .size = step->size * t->opts.scale,
        .frees_at = step->frees_at,
        .owner = step->id ^ t->opts.mask,
        .stream = t->opts.one_stream ? 0 : step->stream,
    };
}

static enum frag_err traffic_alloc(struct traffic *t, const struct step *step)
{
    const struct frag_request req = traffic_request(t, step);
    struct live *l = &t->live[step->id];
    struct frag_block block = {0};
    const enum frag_err err = t->heap.policy->alloc(&t->heap, &req, &block);

    if (err == FRAG_OK)
        *l = (struct live){block, req.size, true, false};
    t->ooms += err == FRAG_OOM;
    return err;
}

enum frag_err traffic_step(struct traffic *t, const struct step *step)
{
    const struct frag_policy *policy = t->heap.policy;
    struct live *l = &t->live[step->id];

    switch (step->kind) {
    case STEP_ALLOC:
        return traffic_alloc(t, step);
    case STEP_FREE:
        if (!l->is_live)
            break;
        if (policy->needs & FRAG_HEARS_FREES && step->stream &&
            !t->opts.one_stream)
            FRAG_TRY(policy->hear(
                &t->heap, &(const struct frag_heard){.block = &l->block,
                                                     .stream = step->stream}));
        traffic_free(t, l);
        break;
    case STEP_REQUEST_FREE:
        if (!l->is_live || l->is_pending)
            break;
        l->is_pending = true;
        if (policy->free_requested)
            policy->free_requested(&t->heap, &l->block);
        break;
    case STEP_TRIM:
        if (policy->trim)
            policy->trim(&t->heap);
        break;
    case STEP_NONE:
        break;
    }
    return FRAG_OK;
}

static void traffic_note(struct traffic *t, const struct step *step,
                         enum frag_err err, struct answer *a)
{
    const struct live *l = &t->live[step->id];

    *a = (struct answer){.err = err, .used = t->mem.used};
    if (step->kind != STEP_ALLOC || err != FRAG_OK)
        return;
    a->size = l->block.size;
    for (size_t i = 0; i < t->mem.count; i++) {
        const struct faulty_memory *h = &t->mem.held[i];

        if (l->block.addr >= h->addr && l->block.addr - h->addr < h->size) {
            a->birth = h->birth;
            a->at = l->block.addr - h->addr;
        }
    }
}

size_t traffic_run(struct traffic *t, const struct script *s, size_t from,
                   size_t to)
{
    size_t i;

    for (i = from; i < to && !t->fault; i++) {
        enum frag_err err;

        place_step(t->place, i);
        err = traffic_step(t, &s->steps[i]);
        if (err != FRAG_OK && err != FRAG_OOM)
            t->fault = "the run ended with an error";
        else if (i % JUDGE_EVERY == 0 || i + 1 == to)
            t->fault = traffic_judge(t);
        else if (t->live[s->steps[i].id].is_live)
            t->fault = judge_block(t, &t->live[s->steps[i].id]);
        traffic_note(t, &s->steps[i], err, &t->answers[i]);
    }
    return i;
}
