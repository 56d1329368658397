/* memo.c - finds the result of a run among those of earlier runs, or puts it
 * together from halves of earlier runs, or replays. */
#define _GNU_SOURCE /* tdestroy */
#include "sim/experiments/tune/memo.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "policies/torch/torch.h"
#include "policies/torch/versions.h"
#include "sim/arena/arena.h"
#include "sim/experiments/tune/run.h"
#include "sim/experiments/tune/script.h"
#include "sim/experiments/tune/split.h"
#include "sim/experiments/tune/stretch.h"
#include "sim/meter/meter.h"
#include "traces/grow.h"
#include "traces/torch_sizes.h"

enum {
    MOST_RANGES = 1000, /* of a half that is kept: all pairs are compared */
    TRIES = 6,          /* to find two halves that agree, before a replay */
};

/* What decides how the requests of a half are placed, beside the order of
 * addresses. */
struct half_key {
    frag_size capacity;
    const frag_size *sizes; /* of the blocks of all requests; each distinct list
                               exists once */
    frag_size large_segment, max_split, rounding;
    unsigned version;
    bool expandable;
};

/* A half of a run over the first `count` events. */
struct known_half {
    struct known_half *next;
    struct half_key key;
    uint64_t count;
    struct script script;
};

struct known_sizes {
    struct known_sizes *next;
    frag_size sizes[];
};

/* The stretches of small halves with this key. */
struct known_stretches {
    struct known_stretches *next;
    struct half_key key;
    struct stretches *stretches;
};

struct known_result {
    frag_size capacity;
    uint64_t count;
    unsigned version;
    struct tune_result result;
    char text[];
};

struct tune_memo {
    const struct frag_device_trace *device;
    bool has_halves;
    struct tune_large large;
    struct small_half small;
    frag_size *requests[HALVES]; /* distinct sizes, ascending */
    size_t request_count[HALVES];

    pthread_mutex_t lock; /* protects all below; what the lists have stays */
    struct known_half *halves[HALVES];
    struct known_sizes *sizes[HALVES];
    struct known_stretches *stretches;
    void *results; /* tree of struct known_result */
    struct tune_memo_counts counts;
};

/* The run that is asked for. */
struct job {
    struct tune_memo *memo;
    unsigned version;
    const struct cell_settings *settings; /* brief */
    const struct stop *stop;
    const struct tune_case *on;
    frag_size capacity;
    const char *text;
    struct half_key keys[HALVES];
};

/* ---- open and close ---- */

static int by_size(const void *a, const void *b)
{
    const frag_size x = *(const frag_size *)a, y = *(const frag_size *)b;

    return (x > y) - (x < y);
}

static enum half half_of(frag_size bytes)
{
    return bytes > TORCH_SMALL_SIZE ? LARGE : SMALL;
}

/* Lists the distinct sizes of a half. */
static bool list_requests(struct tune_memo *m, enum half half)
{
    const struct frag_device_trace *d = m->device;
    frag_size *sizes = calloc(d->count + 1, sizeof(*sizes));
    size_t all = 0, count = 0;

    if (!sizes)
        return false;
    for (uint64_t i = 0; i < d->count; i++)
        if (d->op[i] == FRAG_ALLOC && half_of(d->bytes[i]) == half)
            sizes[all++] = d->bytes[i];
    qsort(sizes, all, sizeof(*sizes), by_size);
    for (size_t i = 0; i < all; i++)
        if (!count || sizes[count - 1] != sizes[i])
            sizes[count++] = sizes[i];
    m->requests[half] = malloc((count + 1) * sizeof(*sizes));
    if (m->requests[half])
        memcpy(m->requests[half], sizes, count * sizeof(*sizes));
    m->request_count[half] = count;
    free(sizes);
    return m->requests[half] != NULL;
}

static enum frag_err open_halves(struct tune_memo *m, const char *recorded,
                                 uint64_t least, struct frag_error *e)
{
    const struct frag_device_trace *d = m->device;

    if (d->recorded.start.segment_count || torch_is_ascend(recorded) ||
        d->count < least)
        return FRAG_OK;
    FRAG_TRY(tune_large_split(d, &m->large, e));
    if (d->count - m->large.trace.count < least)
        return FRAG_OK;
    m->has_halves = true;
    return list_requests(m, LARGE) && list_requests(m, SMALL) &&
                   small_half_open(&m->small, d, least) == FRAG_OK
               ? FRAG_OK
               : frag_no_memory(e, "the sizes of the requests");
}

enum frag_err tune_memo_open(const struct frag_device_trace *device,
                             const char *recorded, uint64_t least,
                             struct tune_memo **out, struct frag_error *e)
{
    struct tune_memo *m = calloc(1, sizeof(*m));
    enum frag_err err;

    if (!m)
        return frag_no_memory(e, "the results of runs");
    m->device = device;
    pthread_mutex_init(&m->lock, NULL);
    err = open_halves(m, recorded, least, e);
    if (err == FRAG_OK)
        *out = m;
    else
        tune_memo_close(m);
    return err;
}

static void close_half(struct tune_memo *m, enum half half)
{
    while (m->halves[half]) {
        struct known_half *h = m->halves[half];

        m->halves[half] = h->next;
        script_free(&h->script);
        free(h);
    }
    while (m->sizes[half]) {
        struct known_sizes *s = m->sizes[half];

        m->sizes[half] = s->next;
        free(s);
    }
    free(m->requests[half]);
}

static void close_stretches(struct tune_memo *m)
{
    while (m->stretches) {
        struct known_stretches *k = m->stretches;

        m->stretches = k->next;
        stretches_close(k->stretches);
        free(k);
    }
}

void tune_memo_close(struct tune_memo *m)
{
    if (!m)
        return;
    close_half(m, LARGE);
    close_half(m, SMALL);
    tdestroy(m->results, free);
    close_stretches(m);
    tune_large_close(&m->large);
    small_half_close(&m->small);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

struct tune_memo_counts tune_memo_counts(struct tune_memo *m)
{
    struct tune_memo_counts counts;

    pthread_mutex_lock(&m->lock);
    counts = m->counts;
    pthread_mutex_unlock(&m->lock);
    return counts;
}

static void count(struct tune_memo *m, uint64_t *counter)
{
    pthread_mutex_lock(&m->lock);
    ++*counter;
    pthread_mutex_unlock(&m->lock);
}

/* ---- the keys of the halves ---- */

/* Returns the memo's list of these sizes, and frees the other. NULL: no
 * memory. */
static const frag_size *intern(struct tune_memo *m, enum half half,
                               struct known_sizes *s)
{
    const size_t bytes = m->request_count[half] * sizeof(*s->sizes);
    struct known_sizes *k;

    pthread_mutex_lock(&m->lock);
    k = m->sizes[half];
    while (k && memcmp(k->sizes, s->sizes, bytes) != 0)
        k = k->next;
    if (!k) {
        s->next = m->sizes[half];
        m->sizes[half] = s;
    }
    pthread_mutex_unlock(&m->lock);
    if (k)
        free(s);
    return k ? k->sizes : s->sizes;
}

/* The largest ordinary segment that requests with blocks of these sizes make,
 * and so the largest free block. */
static frag_size largest_segment(const struct frag_torch_rules *r,
                                 const frag_size *sizes, size_t count)
{
    frag_size most = TORCH_SMALL_SEGMENT;

    for (size_t i = 0; i < count; i++) {
        const frag_size size = torch_segment_size(sizes[i], r->large_segment);

        most = size > most ? size : most;
    }
    return most;
}

/* Sets the bound on splits, unless it decides nothing: a request below the
 * bound is refused a free block of at least the bound, and one of at least the
 * bound is refused a block that is larger by the rounding or more. In
 * expandable segments a free block may have any size. */
static void set_split(struct half_key *k, const struct frag_torch_rules *r,
                      frag_size most)
{
    k->max_split = FRAG_UNLIMITED;
    k->rounding = FRAG_UNLIMITED;
    if (r->max_split > most)
        return;
    k->max_split = r->max_split;
    if (r->max_non_split_rounding <= most - r->max_split)
        k->rounding = r->max_non_split_rounding;
}

/* The settings of a half that matter. A small pool has segments of one size. */
static void set_key(struct half_key *k, enum half half,
                    const struct frag_torch_rules *r, const frag_size *sizes,
                    size_t count)
{
    k->version = r->version;
    k->expandable = r->expandable;
    k->large_segment = half == LARGE ? r->large_segment : 0;
    set_split(k, r,
              r->expandable ? FRAG_UNLIMITED - 1
                            : largest_segment(r, sizes, count));
}

/* Sets the keys of the job. UNSUPPORTED: its halves depend on each other. */
static enum frag_err set_keys(struct job *job)
{
    struct tune_memo *m = job->memo;

    for (int half = 0; half < HALVES; half++) {
        const size_t n = m->request_count[half];
        struct known_sizes *s =
            malloc(sizeof(*s) + (n + 1) * sizeof(*s->sizes));
        struct half_key *key = &job->keys[half];
        struct frag_torch_rules rules;
        enum frag_err err = s ? FRAG_OK : FRAG_NOMEM;

        if (err == FRAG_OK) {
            memcpy(s->sizes, m->requests[half], n * sizeof(*s->sizes));
            err = tune_rules(job->version, job->text, &rules, s->sizes, n);
        }
        if (err != FRAG_OK || rules.limited) {
            free(s);
            return FRAG_UNSUPPORTED;
        }
        *key = (struct half_key){.capacity = job->capacity};
        set_key(key, (enum half)half, &rules, s->sizes, n);
        key->sizes = intern(m, (enum half)half, s);
    }
    return FRAG_OK;
}

static bool same_key(const struct half_key *a, const struct half_key *b)
{
    return a->capacity == b->capacity && a->sizes == b->sizes &&
           a->large_segment == b->large_segment &&
           a->max_split == b->max_split && a->rounding == b->rounding &&
           a->version == b->version && a->expandable == b->expandable;
}

/* ---- halves ---- */

/* The latest half that fits the job and, if `order` is not NULL, has the order
 * of addresses that this player made. NULL: there is none. */
static const struct script *find_half(const struct job *job, enum half half,
                                      const struct player *order)
{
    const struct known_half *h;

    pthread_mutex_lock(&job->memo->lock);
    h = job->memo->halves[half];
    pthread_mutex_unlock(&job->memo->lock);
    while (h && (h->count < job->on->device->count ||
                 !same_key(&h->key, &job->keys[half]) ||
                 (order && !script_agrees(&h->script, order))))
        h = h->next;
    return h ? &h->script : NULL;
}

/* Adds a half that was made for the job, and moves its script there. NULL:
 * it cannot be kept. */
static const struct script *keep_half(const struct job *job, enum half half,
                                      struct script *script)
{
    struct tune_memo *m = job->memo;
    struct known_half *h =
        script->ranges <= MOST_RANGES ? calloc(1, sizeof(*h)) : NULL;

    if (!h)
        return NULL;
    *h = (struct known_half){.key = job->keys[half],
                             .count = job->on->device->count,
                             .script = *script};
    *script = (struct script){0};
    pthread_mutex_lock(&m->lock);
    h->next = m->halves[half];
    m->halves[half] = h;
    pthread_mutex_unlock(&m->lock);
    return &h->script;
}

static enum frag_err replay(const struct job *job, const struct tune_case *on,
                            struct recorder *r, struct tune_result *out,
                            struct frag_error *e)
{
    const struct recording to = recording_of(job->settings, r);

    r->trace = on->device;
    return tune_replay(job->version, &to.settings, job->stop, on, job->capacity,
                       job->text, out, e);
}

/* Number of events of the large half among the first `count` events. */
static uint64_t large_count(const struct tune_large *l, uint64_t count)
{
    uint64_t from = 0, to = l->trace.count;

    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;

        if (l->event[middle] < count)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Replays the large requests beside the script of the small ones. *out is NULL
 * if the half is not valid alone. */
static enum frag_err record_large(const struct job *job,
                                  const struct script *small,
                                  const struct script **out,
                                  struct frag_error *e)
{
    const struct tune_large *l = &job->memo->large;
    struct frag_device_trace part = l->trace;
    struct tune_case on = *job->on;
    struct player other;
    struct recorder r = {.event = l->event, .other = &other};
    struct tune_result unused;
    enum frag_err err = player_open(&other, small);

    if (err != FRAG_OK)
        return frag_no_memory(e, "the calls of a run");
    part.count = large_count(l, job->on->device->count);
    on.device = &part;
    count(job->memo, &job->memo->counts.large_replays);
    err = replay(job, &on, &r, &unused, e);
    *out = NULL;
    if (err == FRAG_OK && !r.failed)
        *out = keep_half(job, LARGE, &r.halves[LARGE]);
    recorder_close(&r);
    player_close(&other);
    return err;
}

/* ---- the small half from stretches ---- */

/* The stretches of this key, which are made if there are none. NULL: no
 * memory. */
static struct stretches *stretches_of(struct tune_memo *m,
                                      const struct half_key *key)
{
    struct known_stretches *k;

    pthread_mutex_lock(&m->lock);
    k = m->stretches;
    while (k && !same_key(&k->key, key))
        k = k->next;
    if (!k && (k = calloc(1, sizeof(*k)))) {
        *k = (struct known_stretches){m->stretches, *key,
                                      stretches_open(&m->small)};
        m->stretches = k;
    }
    pthread_mutex_unlock(&m->lock);
    return k ? k->stretches : NULL;
}

/* Makes the small half with this order of addresses. NULL: it must be found
 * otherwise. */
static const struct script *make_small(const struct job *job,
                                       const frag_addr *addr, uint64_t ranges)
{
    struct tune_memo *m = job->memo;
    const struct half_key *key = &job->keys[SMALL];
    const struct stretch_order order = {.version = job->version,
                                        .text = job->text,
                                        .count = job->on->device->count,
                                        .addr = addr,
                                        .ranges = ranges,
                                        .stop = job->stop};
    struct stretches *s =
        m->small.length && !key->expandable ? stretches_of(m, key) : NULL;
    struct stretch_counts counts = {0};
    struct script script;
    const struct script *made = NULL;

    if (s && stretches_script(s, &order, &script, &counts)) {
        made = keep_half(job, SMALL, &script);
        script_free(&script);
    }
    pthread_mutex_lock(&m->lock);
    m->counts.stretches += counts.replayed;
    m->counts.reused += counts.reused;
    pthread_mutex_unlock(&m->lock);
    return made;
}

/* Makes the small half with the order of addresses of the latest one with other
 * settings. */
static const struct script *guess_small(const struct job *job)
{
    const struct known_half *h;

    pthread_mutex_lock(&job->memo->lock);
    h = job->memo->halves[SMALL];
    pthread_mutex_unlock(&job->memo->lock);
    while (h && h->key.expandable)
        h = h->next;
    return h ? make_small(job, h->script.addr, h->script.ranges) : NULL;
}

/* ---- two halves together ---- */

/* The run of both halves. */
struct joint {
    struct player players[HALVES];
    struct tune_result result;
    bool served; /* the device refused nothing */
};

static enum frag_err play_halves(const struct job *job, struct joint *j)
{
    struct frag_backend *arena;
    struct meter meter;
    enum frag_err err;

    FRAG_TRY(cell_arena(job->settings, job->capacity, job->settings->total,
                        &arena, NULL));
    j->players[LARGE].device = j->players[SMALL].device = arena;
    err = meter_open(&meter, arena, NULL);
    if (err == FRAG_OK) {
        j->served = players_play(j->players, &meter.base,
                                 job->on->device->count) == FRAG_OK;
        j->result = (struct tune_result){.peak = meter.reserved_peak,
                                         .seconds = (double)meter.spent * 1e-9,
                                         .first_oom = FRAG_NEVER};
        for (size_t k = 0; k < FRAG_CALL_COUNT; k++)
            j->result.calls += meter.calls[k];
        meter_close(&meter);
    }
    frag_arena_close(arena);
    return err;
}

static void close_joint(struct joint *j)
{
    player_close(&j->players[LARGE]);
    player_close(&j->players[SMALL]);
}

static enum frag_err join(const struct job *job,
                          const struct script *const scripts[HALVES],
                          struct joint *j)
{
    enum frag_err err = player_open(&j->players[LARGE], scripts[LARGE]);

    if (err == FRAG_OK)
        err = player_open(&j->players[SMALL], scripts[SMALL]);
    return err == FRAG_OK ? play_halves(job, j) : err;
}

/* A half with the order of addresses that the player made. NULL: none. */
static const struct script *half_in_order(const struct job *job, enum half half,
                                          const struct player *order)
{
    const struct script *found = find_half(job, half, order);

    return found || half == LARGE ? found
                                  : make_small(job, order->addr, order->ranges);
}

/* Replaces each half that has another order of addresses in the joint run than
 * in its own. Whether both have the same order. */
static bool settle(const struct job *job, const struct joint *j,
                   const struct script *scripts[HALVES])
{
    bool agree = true;

    for (int half = 0; half < HALVES; half++)
        if (!script_agrees(scripts[half], &j->players[half])) {
            agree = false;
            scripts[half] =
                half_in_order(job, (enum half)half, &j->players[half]);
        }
    return agree;
}

/* Finds the result from two halves, of which the large one may be replayed.
 * *found is false if the whole run must be replayed. */
static enum frag_err by_halves(const struct job *job, struct tune_result *out,
                               bool *found, struct frag_error *e)
{
    const struct script *scripts[HALVES] = {
        [LARGE] = find_half(job, LARGE, NULL),
        [SMALL] = find_half(job, SMALL, NULL)};

    if (!scripts[SMALL])
        scripts[SMALL] = guess_small(job);
    for (int i = 0; i < TRIES && !*found && scripts[SMALL]; i++) {
        struct joint j = {.served = false};
        enum frag_err err = FRAG_OK;

        if (!scripts[LARGE])
            FRAG_TRY(record_large(job, scripts[SMALL], &scripts[LARGE], e));
        if (!scripts[LARGE])
            return FRAG_OK;
        err = join(job, scripts, &j);
        *found = err == FRAG_OK && j.served && settle(job, &j, scripts);
        *out = j.result;
        close_joint(&j);
        if (err != FRAG_OK)
            return frag_no_memory(e, "two halves of a run");
        if (!j.served)
            return FRAG_OK;
    }
    return FRAG_OK;
}

/* Replays the whole run and keeps its halves. */
static enum frag_err by_replay(const struct job *job, bool records,
                               struct tune_result *out, struct frag_error *e)
{
    struct recorder r = {.trace = job->on->device};
    enum frag_err err;

    count(job->memo, &job->memo->counts.replays);
    if (!records)
        return tune_replay(job->version, job->settings, job->stop, job->on,
                           job->capacity, job->text, out, e);
    err = replay(job, job->on, &r, out, e);
    if (err == FRAG_OK && !r.failed) {
        (void)keep_half(job, LARGE, &r.halves[LARGE]);
        (void)keep_half(job, SMALL, &r.halves[SMALL]);
    }
    recorder_close(&r);
    return err;
}

/* Whether the large halves that were replayed so far helped often enough. With
 * many empty_cache, the order of the addresses differs from setting to
 * setting. */
static bool pays(struct tune_memo *m)
{
    enum { ENOUGH = 32, SHARE = 4 };
    const struct tune_memo_counts n = tune_memo_counts(m);

    return n.large_replays < ENOUGH || n.joined >= n.large_replays / SHARE;
}

static enum frag_err find_result(struct job *job, struct tune_result *out,
                                 struct frag_error *e)
{
    const bool has_halves = job->memo->has_halves && pays(job->memo) &&
                            job->settings->backend == &cell_arena_backend &&
                            job->settings->check != CELL_CHECK_ALL &&
                            set_keys(job) == FRAG_OK;
    bool found = false;

    if (has_halves)
        FRAG_TRY(by_halves(job, out, &found, e));
    if (!found)
        return by_replay(job, has_halves, out, e);
    count(job->memo, &job->memo->counts.joined);
    return FRAG_OK;
}

/* ---- results ---- */

static int by_run(const void *a, const void *b)
{
    const struct known_result *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    if (x->capacity != y->capacity)
        return x->capacity < y->capacity ? -1 : 1;
    if (x->version != y->version)
        return x->version < y->version ? -1 : 1;
    return strcmp(x->text, y->text);
}

/* Looks the result up; if it is not known, enters the one of `k`. */
static bool look_up(struct tune_memo *m, struct known_result *k, bool enters)
{
    struct known_result **found;
    bool known;

    pthread_mutex_lock(&m->lock);
    found = enters ? tsearch(k, &m->results, by_run)
                   : tfind(k, &m->results, by_run);
    known = found && *found != k;
    if (known)
        k->result = (*found)->result;
    m->counts.known += known && !enters;
    pthread_mutex_unlock(&m->lock);
    return enters ? found && !known : known;
}

enum frag_err tune_run(unsigned version, const struct cell_settings *settings,
                       const struct stop *stop, const struct tune_case *on,
                       frag_size capacity, const char *text,
                       struct tune_result *out, struct frag_error *e)
{
    struct cell_settings brief = *settings;
    struct job job = {on->memo, version,  &brief, stop,
                      on,       capacity, text,   {{0}, {0}}};
    struct known_result *k;
    enum frag_err err;

    brief.brief = true;
    if (!on->memo)
        return tune_replay(version, &brief, stop, on, capacity, text, out, e);
    k = calloc(1, sizeof(*k) + strlen(text) + 1);
    if (!k)
        return frag_no_memory(e, "the result of a run");
    k->capacity = capacity;
    k->count = on->device->count;
    k->version = torch_modelled_as(version);
    strcpy(k->text, text);
    if (look_up(on->memo, k, false)) {
        *out = k->result;
        free(k);
        return FRAG_OK;
    }
    err = find_result(&job, &k->result, e);
    *out = k->result;
    if (err != FRAG_OK || !look_up(on->memo, k, true))
        free(k);
    return err;
}
