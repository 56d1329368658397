/* calibrate.c - times the calls of a backend, size by size and round by round,
 * and compares their speed with a cost model. It stores times; regression.c
 * computes costs from them. */
#include "real/device/calibrate.h"

#include <stdlib.h>

enum {
    TOGETHER = 64,         /* blocks held at once, if `room` allows it */
    FEW = 16,              /* the same, in a probe of the pace */
    BETWEEN = 1280 * 1024, /* bytes of host memory touched between two calls */
    LINE = 64,             /* bytes of a cache line of the host */
};

#define WIDEST (1024 * FRAG_GIB) /* bytes of the largest reservation */

/* One block that the calibration holds: its address, its physical memory, or
 * both. */
struct slot {
    frag_addr addr;
    frag_phys phys;
};

typedef enum frag_err (*slot_call)(struct frag_backend *mem, frag_size size,
                                   struct slot *s);

/* A call and the call that undoes it. */
struct layer {
    enum frag_driver_call make_call, undo_call;
    slot_call make, undo;
};

/* The state of a calibration: one size in one round. */
struct bench {
    const struct frag_calibration *c;
    struct frag_timings *out;
    struct frag_error *e;
    uint32_t round;
    frag_size bytes;
    unsigned most, count; /* slots: in total, and used for this size */
    struct slot slots[TOGETHER];
    unsigned char *other; /* BETWEEN bytes of host memory */
};

/* ---- the calls ---- */

/* A call of the backend with a size and what a slot holds. */
#define CALL(name, call, ...)                                           \
    static enum frag_err name(struct frag_backend *mem, frag_size size, \
                              struct slot *s)                           \
    {                                                                   \
        return mem->ops->call(mem, __VA_ARGS__);                        \
    }

CALL(alloc_segment, segment_alloc, size, &s->addr)
CALL(free_segment, segment_free, s->addr, size)
CALL(reserve_range, va_reserve, size, &s->addr)
CALL(free_range, va_free, s->addr, size)
CALL(create_phys, phys_create, size, &s->phys)
CALL(release_phys, phys_release, s->phys, size)
CALL(map_phys, map, s->addr, size, s->phys)
CALL(unmap_phys, unmap, s->addr, size)

/* A pair is one segment of twice the size: a copy goes from one half to the
 * other. */
CALL(alloc_pair, segment_alloc, 2 * size, &s->addr)
CALL(free_pair, segment_free, s->addr, 2 * size)

static enum frag_err copy_and_wait(struct frag_backend *mem, frag_size size,
                                   struct slot *s)
{
    FRAG_TRY(mem->ops->copy(mem, s->addr + size, s->addr, size, 0));
    return mem->ops->synchronize(mem);
}

/* Times a wait for an idle device. */
static enum frag_err wait_only(struct frag_backend *mem, frag_size size,
                               struct slot *s)
{
    (void)size;
    (void)s;
    return mem->ops->synchronize(mem);
}

#define UNTIMED FRAG_DRIVER_CALL_COUNT

static const struct layer small[] = {
    {FRAG_DRIVER_SMALL_ALLOC, FRAG_DRIVER_SMALL_FREE, alloc_segment,
     free_segment},
};
static const struct layer segments[] = {
    {FRAG_DRIVER_SEGMENT_ALLOC, FRAG_DRIVER_SEGMENT_FREE, alloc_segment,
     free_segment},
};
static const struct layer pages[] = {
    {FRAG_DRIVER_VA_RESERVE, FRAG_DRIVER_VA_FREE, reserve_range, free_range},
    {FRAG_DRIVER_PHYS_CREATE, FRAG_DRIVER_PHYS_RELEASE, create_phys,
     release_phys},
    {FRAG_DRIVER_MAP, FRAG_DRIVER_UNMAP, map_phys, unmap_phys},
};

static const struct layer copies[] = {
    {UNTIMED, UNTIMED, alloc_pair, free_pair},
    {FRAG_DRIVER_COPY, FRAG_DRIVER_SYNCHRONIZE, copy_and_wait, wait_only},
};

/* The calls that a calibration times. Sizes go from `from` to `to`, multiplied
 * by `step`. Each byte of the size needs `memory_each` bytes of device memory
 * (reservations need none). */
static const struct family {
    const struct layer *layers;
    unsigned layer_count, memory_each, step;
    frag_size from, to;
} families[] = {
    {small, 1, 1, 4, 512, FRAG_SMALL_SEGMENT / 2},
    {segments, 1, 1, 2, 2 * FRAG_MIB, 16 * FRAG_GIB},
    {pages, 3, 1, 2, 2 * FRAG_MIB, 8 * FRAG_GIB},
    {pages, 1, 0, 2, 16 * FRAG_GIB, WIDEST},
    {copies, 2, 2, 4, 4 * FRAG_KIB, 4 * FRAG_GIB},
};

/* The calls that measure the machine's pace: those that replays mostly make. */
static const struct family probes[] = {
    {segments, 1, 1, 2, 16 * FRAG_MIB, 16 * FRAG_MIB},
    {pages, 3, 1, 2, 2 * FRAG_MIB, 2 * FRAG_MIB},
};

/* ---- one size ---- */

static enum frag_err failed(struct bench *b, enum frag_driver_call call,
                            enum frag_err err)
{
    return frag_fail(b->e, err, "%s of %s: %s",
                     call == UNTIMED ? "memory for a copy"
                                     : frag_driver_call_names[call],
                     FRAG_SHOW_SIZE(b->bytes), frag_err_text(err));
}

static int by_time(const void *left, const void *right)
{
    const frag_time a = *(const frag_time *)left, b = *(const frag_time *)right;

    return (a > b) - (a < b);
}

/* A replay adds up the times of its calls, so their mean is the number of
 * interest. The slowest sixteenth is left out, since it shows the other work of
 * the machine. */
static frag_time usual(frag_time *times, unsigned n)
{
    const unsigned kept = n - n / 16;
    frag_time sum = 0;

    qsort(times, n, sizeof(*times), by_time);
    for (unsigned i = 0; i < kept; i++)
        sum += times[i];
    return sum / kept;
}

/* Stores the times of n calls as one row. */
static enum frag_err note(struct bench *b, enum frag_driver_call call,
                          frag_time *times, unsigned n)
{
    struct frag_timing row = {call, b->round, b->bytes, 0};

    if (!n || call == UNTIMED)
        return FRAG_OK;
    row.ns = usual(times, n);
    return frag_timings_add(b->out, row);
}

/* Stands for the work of a program between two calls. After it, the driver's
 * code and data are no longer in the nearest caches. */
static void do_other_work(struct bench *b)
{
    for (size_t i = 0; i < BETWEEN; i += LINE)
        b->other[i]++;
}

static enum frag_err timed(struct bench *b, slot_call act, struct slot *s,
                           frag_time *ns)
{
    struct frag_backend *mem = b->c->mem;
    enum frag_err err;
    frag_time start;

    do_other_work(b);
    start = mem->ops->now(mem);
    err = act(mem, b->bytes, s);
    *ns = mem->ops->now(mem) - start;
    return err;
}

/* Makes the layer's call in every slot. On error, the first *made slots hold
 * it. */
static enum frag_err make_layer(struct bench *b, const struct layer *layer,
                                unsigned *made)
{
    frag_time times[TOGETHER];
    enum frag_err err = FRAG_OK;

    for (*made = 0; *made < b->count; ++*made) {
        err = timed(b, layer->make, &b->slots[*made], &times[*made]);
        if (err != FRAG_OK)
            return failed(b, layer->make_call, err);
    }
    return note(b, layer->make_call, times, b->count);
}

/* Undoes the layer in all slots, also after an error. An undo that fails is
 * tried once more. */
static enum frag_err undo_layer(struct bench *b, const struct layer *layer,
                                unsigned made)
{
    frag_time times[TOGETHER];
    enum frag_err err = FRAG_OK;

    for (unsigned i = 0; i < made; i++) {
        enum frag_err undone = timed(b, layer->undo, &b->slots[i], &times[i]);

        if (undone != FRAG_OK) {
            err = failed(b, layer->undo_call, undone);
            (void)layer->undo(b->c->mem, b->bytes, &b->slots[i]);
        }
    }
    return err == FRAG_OK ? note(b, layer->undo_call, times, made) : err;
}

/* Times the layers above this one before it undoes this one. */
static enum frag_err time_layers(struct bench *b, const struct layer *layer,
                                 unsigned layers)
{
    enum frag_err err, undone;
    unsigned made;

    err = make_layer(b, layer, &made);
    if (err == FRAG_OK && layers > 1)
        err = time_layers(b, layer + 1, layers - 1);
    undone = undo_layer(b, layer, made);
    return err == FRAG_OK ? undone : err;
}

/* The number of blocks to hold. A small segment may occupy a whole granule. */
static unsigned how_many(const struct bench *b, const struct family *f)
{
    frag_size each = frag_round_up(b->bytes, b->c->mem->granularity);
    frag_size most =
        f->memory_each ? b->c->room / f->memory_each / each : WIDEST / each;

    return most < b->most ? (unsigned)most : b->most;
}

static enum frag_err time_family(struct bench *b, const struct family *f)
{
    enum frag_err err = FRAG_OK;

    for (b->bytes = f->from; err == FRAG_OK && b->bytes <= f->to;
         b->bytes *= f->step) {
        b->count = how_many(b, f);
        err = time_layers(b, f->layers, f->layer_count);
    }
    return err;
}

/* ---- all of it ---- */

#define TIME_ALL(b, list) time_families(b, list, sizeof(list) / sizeof(*(list)))

static enum frag_err time_families(struct bench *b, const struct family *list,
                                   size_t count)
{
    for (size_t i = 0; i < count; i++)
        FRAG_TRY(time_family(b, &list[i]));
    return FRAG_OK;
}

static enum frag_err bench_open(struct bench *b)
{
    if (!b->c->mem->ops->va_reserve)
        return frag_fail(b->e, FRAG_UNSUPPORTED,
                         "the device has no virtual memory calls to time");
    b->other = calloc(1, BETWEEN);
    return b->other ? FRAG_OK : frag_no_memory(b->e, "a calibration");
}

enum frag_err frag_calibrate(const struct frag_calibration *c,
                             struct frag_timings *out, struct frag_error *e)
{
    struct bench b = {.c = c, .out = out, .e = e, .most = TOGETHER};
    enum frag_err err = bench_open(&b);

    for (; err == FRAG_OK && b.round <= c->rounds; b.round++) {
        if (c->progress && c->progress(c->user, b.round, c->rounds + 1))
            err = frag_fail(e, FRAG_CANCELLED, "interrupted");
        else
            err = TIME_ALL(&b, families);
    }
    free(b.other);
    return err;
}

/* The warm-up round is left out. */
static double pace_of(const struct frag_timings *t,
                      const struct frag_costs *costs)
{
    double took = 0, modelled = 0;

    for (size_t i = 0; i < t->count; i++) {
        const struct frag_timing *row = &t->rows[i];

        if (!row->round)
            continue;
        took += (double)row->ns;
        modelled += (double)frag_cost_ns(costs, row->call, row->bytes);
    }
    return modelled > 0 ? took / modelled : 1;
}

enum frag_err frag_pace(struct frag_backend *mem, frag_size room,
                        const struct frag_costs *costs, double *pace,
                        struct frag_error *e)
{
    const struct frag_calibration c = {.mem = mem, .room = room};
    struct frag_timings timings = {0};
    struct bench b = {.c = &c, .out = &timings, .e = e, .most = FEW};
    enum frag_err err = bench_open(&b);

    for (; err == FRAG_OK && b.round <= 1; b.round++)
        err = TIME_ALL(&b, probes);
    if (err == FRAG_OK)
        *pace = pace_of(&timings, costs);
    frag_timings_free(&timings);
    free(b.other);
    return err;
}
