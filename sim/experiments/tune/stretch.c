/* stretch.c - replays stretches of the small half of a trace, and reuses them
 * for other orders of addresses. */
#include "sim/experiments/tune/stretch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "policies/torch/torch.h"
#include "sim/experiments/tune/run.h"
#include "traces/grow.h"
#include "traces/torch_sizes.h"

enum {
    STRETCHES = 128, /* at most, of a trace */
    MOST_RANGES = 1000,
};

#define STAYS UINT32_MAX /* in place of the slot: a block that stays */

/* A live block, by its segment and the offset in it. */
struct held {
    uint32_t range, at, size, slot;
};

/* The live blocks in the order of (range, at), with neighbours that stay as
 * one. The ranges are in the order of their contents, those of equal contents
 * in the order of their addresses. */
struct layout {
    struct held *blocks;
    uint32_t count, ranges;
};

/* `low` was taken before the rival `high`. */
struct pair {
    uint32_t low, high;
};

/* A stretch that was replayed. Ranges are the places in the layout `from`;
 * those that the stretch made follow. */
struct known_stretch {
    struct known_stretch *next;
    struct layout from, to; /* `to` is in the order of the ranges of `from` */
    struct pair *pairs;
    uint64_t pair_count, pair_room;
    uint64_t *made; /* the events that made ranges */
    uint64_t made_count, made_room;
};

struct stretches {
    const struct small_half *half;
    pthread_mutex_t lock; /* protects the heads; what the lists have stays */
    struct known_stretch *known[STRETCHES];
};

/* The small half of one run, up to some event. */
struct chain {
    const struct small_half *half;
    const struct stretch_order *order;
    struct script script;
    uint64_t event;
    struct held *blocks; /* live; by the ranges of the script */
    uint64_t count, room;

    /* The policy, if it has the present layout. */
    bool is_open;
    struct frag_backend device;
    struct frag_heap heap;
    struct frag_block *slots; /* [slots]; size 0: no small block */
    struct held *stay; /* blocks that stay, which have no slot any more */
    uint64_t stay_count, stay_room;
    struct known_stretch *made; /* the stretch that is replayed */
    bool failed;
};

/* ---- the small half of a trace ---- */

static bool is_small(const struct frag_device_trace *t, uint64_t i)
{
    return t->op[i] == FRAG_ALLOC && t->bytes[i] <= TORCH_SMALL_SIZE;
}

static bool is_plain(const struct frag_device_trace *t)
{
    for (uint64_t i = 0; i < t->count; i++)
        if ((t->op[i] != FRAG_ALLOC && t->op[i] != FRAG_FREE) ||
            (is_small(t, i) && (t->stream[i] || t->pool[i])))
            return false;
    return true;
}

enum frag_err small_half_open(struct small_half *out,
                              const struct frag_device_trace *trace,
                              uint64_t least)
{
    struct small_half h = {.trace = trace, .end = trace->count};

    h.stays = malloc(((size_t)trace->slots + 1) * sizeof(*h.stays));
    if (!h.stays)
        return FRAG_NOMEM;
    while (h.end && !is_small(trace, h.end - 1))
        h.end--;
    for (uint32_t id = 0; id < trace->slots; id++)
        h.stays[id] = FRAG_NEVER;
    for (uint64_t i = 0; i < h.end; i++)
        h.stays[trace->id[i]] = is_small(trace, i) ? i : FRAG_NEVER;
    if (is_plain(trace))
        h.length =
            least > h.end / STRETCHES + 1 ? least : h.end / STRETCHES + 1;
    *out = h;
    return FRAG_OK;
}

void small_half_close(struct small_half *h)
{
    free(h->stays);
    *h = (struct small_half){0};
}

/* ---- open and close ---- */

struct stretches *stretches_open(const struct small_half *half)
{
    struct stretches *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->half = half;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void free_stretch(struct known_stretch *k)
{
    if (!k)
        return;
    free(k->from.blocks);
    free(k->to.blocks);
    free(k->pairs);
    free(k->made);
    free(k);
}

void stretches_close(struct stretches *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < STRETCHES; i++)
        while (s->known[i]) {
            struct known_stretch *k = s->known[i];

            s->known[i] = k->next;
            free_stretch(k);
        }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- ranges ---- */

/* The address of a range that is made or will be. */
static frag_addr address_of(const struct chain *c, uint64_t range)
{
    const struct stretch_order *o = c->order;
    frag_addr low = (frag_addr)1 << 40;

    if (range < o->ranges)
        return o->addr[range];
    for (uint64_t k = 0; k < o->ranges; k++)
        low = o->addr[k] < low ? o->addr[k] : low;
    return low - (range - o->ranges + 1) * TORCH_SMALL_SEGMENT;
}

static bool make_range(struct chain *c, uint64_t event)
{
    struct script *s = &c->script;

    if (s->ranges == MOST_RANGES ||
        !GROW(s->addr, s->range_room, s->ranges + 1) ||
        !GROW(s->rows, s->row_room, s->count + 1))
        return false;
    s->addr[s->ranges] = address_of(c, s->ranges);
    s->ranges++;
    s->rows[s->count++] = (struct script_row){.event = event,
                                              .call = SCRIPT_SEGMENT_ALLOC,
                                              .size = TORCH_SMALL_SEGMENT};
    return true;
}

static uint32_t range_at(const struct chain *c, frag_addr addr)
{
    uint32_t k = 0;

    while (addr - c->script.addr[k] >= TORCH_SMALL_SEGMENT)
        k++;
    return k;
}

/* ---- layouts ---- */

static int by_place(const void *a, const void *b)
{
    const struct held *x = a, *y = b;

    if (x->range != y->range)
        return x->range < y->range ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Sorts the blocks, and unites neighbours that stay. */
static void put_in_order(struct chain *c)
{
    uint64_t n = 0;

    if (c->count)
        qsort(c->blocks, c->count, sizeof(*c->blocks), by_place);
    for (uint64_t i = 0; i < c->count; i++) {
        const struct held *b = &c->blocks[i];
        struct held *last = n ? &c->blocks[n - 1] : NULL;

        if (last && last->slot == STAYS && b->slot == STAYS &&
            last->range == b->range && last->at + last->size == b->at)
            last->size += b->size;
        else
            c->blocks[n++] = *b;
    }
    c->count = n;
}

/* What one range contains. */
struct content {
    const struct held *blocks;
    uint64_t count;
    frag_addr addr;
    uint32_t range;
};

static int by_content(const void *a, const void *b)
{
    const struct content *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    for (uint64_t i = 0; i < x->count; i++) {
        const struct held *p = &x->blocks[i], *q = &y->blocks[i];
        const uint32_t keys[][2] = {
            {p->at, q->at}, {p->size, q->size}, {p->slot, q->slot}};

        for (size_t k = 0; k < 3; k++)
            if (keys[k][0] != keys[k][1])
                return keys[k][0] < keys[k][1] ? -1 : 1;
    }
    return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Lists the contents of the ranges in the order of a layout. NULL: no
 * memory. */
static struct content *contents_of(const struct chain *c)
{
    const uint64_t ranges = c->script.ranges;
    struct content *all = calloc(ranges + 1, sizeof(*all));

    if (!all)
        return NULL;
    for (uint32_t k = 0; k < ranges; k++)
        all[k] = (struct content){.range = k, .addr = c->script.addr[k]};
    for (uint64_t i = 0; i < c->count; i++) {
        struct content *of = &all[c->blocks[i].range];

        if (!of->count++)
            of->blocks = &c->blocks[i];
    }
    qsort(all, ranges, sizeof(*all), by_content);
    return all;
}

/* The layout of the chain. */
static bool make_layout(const struct chain *c, const struct content *contents,
                        struct layout *out)
{
    uint32_t n = 0;

    out->ranges = (uint32_t)c->script.ranges;
    out->count = (uint32_t)c->count;
    out->blocks = malloc((c->count + 1) * sizeof(*out->blocks));
    if (!out->blocks)
        return false;
    for (uint32_t k = 0; k < out->ranges; k++)
        for (uint64_t i = 0; i < contents[k].count; i++) {
            out->blocks[n] = contents[k].blocks[i];
            out->blocks[n++].range = k;
        }
    return true;
}

static bool same_layout(const struct layout *a, const struct layout *b)
{
    return a->ranges == b->ranges && a->count == b->count &&
           memcmp(a->blocks, b->blocks, a->count * sizeof(*a->blocks)) == 0;
}

/* ---- the policy on a device of its own ---- */

static struct chain *chain_of(struct frag_backend *mem)
{
    return (struct chain *)((char *)mem - offsetof(struct chain, device));
}

static enum frag_err segment_alloc(struct frag_backend *mem, frag_size size,
                                   frag_addr *addr)
{
    struct chain *c = chain_of(mem);
    struct known_stretch *k = c->made;

    if (size != TORCH_SMALL_SEGMENT ||
        !GROW(k->made, k->made_room, k->made_count + 1) ||
        !make_range(c, c->event))
        return FRAG_NOMEM;
    k->made[k->made_count++] = c->event;
    *addr = c->script.addr[c->script.ranges - 1];
    return FRAG_OK;
}

static enum frag_err segment_free(struct frag_backend *mem, frag_addr addr,
                                  frag_size size)
{
    (void)mem;
    (void)addr;
    (void)size;
    return FRAG_OK;
}

static const struct frag_backend_ops device_ops = {
    .name = "stretch",
    .segment_alloc = segment_alloc,
    .segment_free = segment_free,
};

static void close_policy(struct chain *c)
{
    if (c->is_open)
        frag_heap_close(&c->heap);
    c->is_open = false;
}

/* The segments and blocks of a layout, as adopt takes them. */
struct adoption {
    struct frag_held_segment *segments;
    struct frag_held_block *blocks;
    void **nodes;
};

/* Adds a block, live or free, unless it is empty. */
static void hold(struct frag_held_segment *s, struct frag_held_block *to,
                 frag_addr addr, frag_size size, bool live)
{
    if (!size)
        return;
    to[s->block_count++] =
        (struct frag_held_block){.addr = addr, .size = size, .live = live};
}

static void hold_range(const struct content *from, struct frag_held_segment *s,
                       struct frag_held_block *to)
{
    frag_size end = 0;

    *s = (struct frag_held_segment){.addr = from->addr,
                                    .size = TORCH_SMALL_SEGMENT,
                                    .is_small = true,
                                    .blocks = to};
    for (uint64_t i = 0; i < from->count; i++) {
        const struct held *b = &from->blocks[i];

        hold(s, to, from->addr + end, b->at - end, false);
        hold(s, to, from->addr + b->at, b->size, true);
        end = (frag_size)b->at + b->size;
    }
    hold(s, to, from->addr + end, TORCH_SMALL_SEGMENT - end, false);
}

/* Enters the adopted blocks, in their order. */
static bool enter(struct chain *c, const struct content *contents,
                  void *const *nodes)
{
    for (uint64_t k = 0; k < c->script.ranges; k++)
        for (uint64_t i = 0; i < contents[k].count; i++, nodes++) {
            const struct held *b = &contents[k].blocks[i];

            if (b->slot != STAYS)
                c->slots[b->slot] = (struct frag_block){
                    contents[k].addr + b->at, b->size, *nodes};
            else if (GROW(c->stay, c->stay_room, c->stay_count + 1))
                c->stay[c->stay_count++] = *b;
            else
                return false;
        }
    return true;
}

static bool adopt_into(struct chain *c, const struct content *contents,
                       const struct adoption *a)
{
    struct frag_held_block *blocks = a->blocks;

    for (uint64_t k = 0; k < c->script.ranges; k++) {
        hold_range(&contents[k], &a->segments[k], blocks);
        blocks += a->segments[k].block_count;
    }
    return c->heap.policy->adopt(&c->heap, a->segments, c->script.ranges,
                                 a->nodes) == FRAG_OK &&
           enter(c, contents, a->nodes);
}

static bool adopt(struct chain *c, const struct content *contents)
{
    const uint64_t ranges = c->script.ranges;
    struct adoption a = {
        calloc(ranges + 1, sizeof(*a.segments)),
        calloc(2 * c->count + ranges + 1, sizeof(*a.blocks)),
        calloc(c->count + 1, sizeof(*a.nodes)),
    };
    const bool done =
        a.segments && a.blocks && a.nodes && adopt_into(c, contents, &a);

    free(a.segments);
    free(a.blocks);
    free(a.nodes);
    return done;
}

/* Opens the policy with the present layout. */
static bool open_policy(struct chain *c, const struct content *contents)
{
    c->device = (struct frag_backend){.ops = &device_ops,
                                      .capacity = FRAG_UNLIMITED,
                                      .granularity = TORCH_SMALL_SEGMENT};
    memset(c->slots, 0, c->half->trace->slots * sizeof(*c->slots));
    c->stay_count = 0;
    c->is_open = tune_heap_open(c->order->version, c->order->text, &c->device,
                                &c->heap) == FRAG_OK;
    return c->is_open && adopt(c, contents);
}

/* ---- the replay of a stretch ---- */

struct taken {
    struct chain *chain;
    uint32_t range;
};

static void add_rival(void *user, frag_addr addr)
{
    const struct taken *t = user;
    struct known_stretch *k = t->chain->made;
    const struct pair pair = {t->range, range_at(t->chain, addr)};
    uint64_t i = 0;

    while (i < k->pair_count &&
           (k->pairs[i].low != pair.low || k->pairs[i].high != pair.high))
        i++;
    if (pair.low == pair.high || i < k->pair_count)
        return;
    if (GROW(k->pairs, k->pair_room, i + 1))
        k->pairs[k->pair_count++] = pair;
    else
        t->chain->failed = true;
}

static void serve(struct chain *c, uint64_t i)
{
    const struct frag_device_trace *t = c->half->trace;
    struct frag_block *b = &c->slots[t->id[i]];
    const struct frag_request req = {
        .size = t->bytes[i], .frees_at = FRAG_NEVER, .owner = t->id[i]};

    c->event = i;
    c->failed |= c->heap.policy->alloc(&c->heap, &req, b) != FRAG_OK;
    if (!c->failed && frag_torch_has_rivals(&c->heap, b)) {
        struct taken taken = {c, range_at(c, b->addr)};

        frag_torch_rivals(&c->heap, b, add_rival, &taken);
    }
}

static void replay(struct chain *c, uint64_t from, uint64_t to)
{
    const struct frag_device_trace *t = c->half->trace;

    for (uint64_t i = from; i < to && !c->failed; i++) {
        struct frag_block *b = &c->slots[t->id[i]];

        if (t->op[i] == FRAG_FREE && b->size) {
            c->heap.policy->free(&c->heap, b);
            b->size = 0;
        } else if (is_small(t, i)) {
            serve(c, i);
        }
    }
    frag_trace_passed(t, from, to);
}

static bool add_block(struct chain *c, struct held b)
{
    if (!GROW(c->blocks, c->room, c->count + 1))
        return false;
    c->blocks[c->count++] = b;
    return true;
}

/* Lists the live blocks before the event `now`. */
static bool list_blocks(struct chain *c, uint64_t now)
{
    bool ok = true;

    c->count = 0;
    for (uint64_t i = 0; i < c->stay_count; i++)
        ok = ok && add_block(c, c->stay[i]);
    for (uint32_t id = 0; ok && id < c->half->trace->slots; id++) {
        const struct frag_block *b = &c->slots[id];
        const uint32_t range = b->size ? range_at(c, b->addr) : 0;

        if (b->size)
            ok = add_block(
                c,
                (struct held){.range = range,
                              .at = (uint32_t)(b->addr - c->script.addr[range]),
                              .size = (uint32_t)b->size,
                              .slot = now > c->half->stays[id] ? STAYS : id});
    }
    return ok;
}

/* The place of a range in the layout at the start of the stretch; a range that
 * the stretch made keeps its number. */
static uint32_t place_of(const struct content *contents, uint32_t ranges,
                         uint32_t range)
{
    uint32_t k = 0;

    while (k < ranges && contents[k].range != range)
        k++;
    return k < ranges ? k : range;
}

/* Completes the stretch that was replayed: the ranges become places. */
static bool complete(struct chain *c, struct known_stretch *k,
                     const struct content *contents)
{
    const uint32_t ranges = k->from.ranges;

    k->to = (struct layout){.count = (uint32_t)c->count,
                            .ranges = (uint32_t)c->script.ranges};
    k->to.blocks = malloc((c->count + 1) * sizeof(*k->to.blocks));
    if (!k->to.blocks)
        return false;
    for (uint64_t i = 0; i < c->count; i++) {
        k->to.blocks[i] = c->blocks[i];
        k->to.blocks[i].range = place_of(contents, ranges, c->blocks[i].range);
    }
    for (uint64_t i = 0; i < k->pair_count; i++) {
        k->pairs[i].low = place_of(contents, ranges, k->pairs[i].low);
        k->pairs[i].high = place_of(contents, ranges, k->pairs[i].high);
    }
    return true;
}

/* Replays a stretch from the layout of k, and completes k. */
static bool replay_stretch(struct chain *c, struct known_stretch *k,
                           const struct content *contents, uint64_t from,
                           uint64_t to)
{
    c->made = k;
    if (!c->is_open && !open_policy(c, contents))
        return false;
    replay(c, from, to);
    if (c->failed || !list_blocks(c, to))
        return false;
    put_in_order(c);
    return complete(c, k, contents);
}

/* ---- the reuse of a stretch ---- */

/* The address of a range by its place. */
static frag_addr address_at(const struct chain *c,
                            const struct content *contents, uint32_t place)
{
    return place < c->script.ranges ? contents[place].addr
                                    : address_of(c, place);
}

static bool agrees(const struct chain *c, const struct known_stretch *k,
                   const struct content *contents)
{
    for (uint64_t i = 0; i < k->pair_count; i++)
        if (address_at(c, contents, k->pairs[i].low) >
            address_at(c, contents, k->pairs[i].high))
            return false;
    return true;
}

static const struct known_stretch *
find(struct stretches *s, const struct chain *c, const struct layout *from,
     const struct content *contents, uint64_t number)
{
    const struct known_stretch *k;

    pthread_mutex_lock(&s->lock);
    k = s->known[number];
    pthread_mutex_unlock(&s->lock);
    while (k && !(same_layout(&k->from, from) && agrees(c, k, contents)))
        k = k->next;
    return k;
}

static void keep(struct stretches *s, struct known_stretch *k, uint64_t number)
{
    pthread_mutex_lock(&s->lock);
    k->next = s->known[number];
    s->known[number] = k;
    pthread_mutex_unlock(&s->lock);
}

static bool reuse(struct chain *c, const struct known_stretch *k,
                  const struct content *contents)
{
    bool ok = true;

    close_policy(c);
    for (uint64_t i = 0; ok && i < k->made_count; i++)
        ok = make_range(c, k->made[i]);
    c->count = 0;
    for (uint32_t i = 0; ok && i < k->to.count; i++) {
        struct held b = k->to.blocks[i];

        b.range = b.range < k->from.ranges ? contents[b.range].range : b.range;
        ok = add_block(c, b);
    }
    put_in_order(c);
    return ok;
}

/* ---- the chain ---- */

/* Adds one stretch to the chain. */
static bool pass(struct stretches *s, struct chain *c,
                 const struct content *contents, uint64_t from,
                 struct stretch_counts *counts)
{
    const uint64_t number = from / s->half->length;
    const uint64_t end = from + s->half->length;
    struct known_stretch *made = calloc(1, sizeof(*made));
    const struct known_stretch *known = NULL;
    bool done;

    if (!made || !make_layout(c, contents, &made->from)) {
        free_stretch(made);
        return false;
    }
    known = find(s, c, &made->from, contents, number);
    counts->reused += known != NULL;
    counts->replayed += known == NULL;
    done = known ? reuse(c, known, contents)
                 : replay_stretch(c, made, contents, from,
                                  end < s->half->end ? end : s->half->end);
    if (done && !known)
        keep(s, made, number);
    else
        free_stretch(made);
    return done;
}

static bool pass_all(struct stretches *s, struct chain *c,
                     struct stretch_counts *counts)
{
    const uint64_t end =
        c->order->count < s->half->end ? c->order->count : s->half->end;

    for (uint64_t from = 0; from < end; from += s->half->length) {
        struct content *contents = contents_of(c);
        const bool ok = contents && !stop_is_asked(c->order->stop) &&
                        pass(s, c, contents, from, counts);

        free(contents);
        if (!ok)
            return false;
    }
    return true;
}

bool stretches_script(struct stretches *s, const struct stretch_order *o,
                      struct script *out, struct stretch_counts *counts)
{
    struct chain c = {.half = s->half, .order = o};
    bool done;

    c.slots = calloc((size_t)s->half->trace->slots + 1, sizeof(*c.slots));
    done = c.slots && pass_all(s, &c, counts);
    close_policy(&c);
    if (done)
        *out = c.script;
    else
        script_free(&c.script);
    free(c.slots);
    free(c.blocks);
    free(c.stay);
    return done;
}
