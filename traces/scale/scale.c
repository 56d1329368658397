/* scale.c - what is known about each request, its size at a batch size, and the
 * trace that these sizes make. */
#include "traces/scale/scale.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "traces/scale/curve.h"
#include "traces/scale/match.h"

const char *const scale_kind_names[SCALE_KIND_COUNT] = {
#define X(name, text) text,
    SCALE_KINDS(X)
#undef X
};

const struct scale_guess scale_guesses[SCALE_GUESSES] = {
    {SCALE_LAW_SHARE, 0.9, "10 % smaller"},
    {SCALE_LAW_SHARE, 1.1, "10 % larger"},
    {SCALE_LAW_FIRST, 1, "in proportion to the smallest recording"},
    {SCALE_LAW_LINE, 1, "on a line"},
    {SCALE_LAW_SAME, 1, "constant"},
    {SCALE_LAW_ABSENT, 1, "absent"},
};

/* ---- one request ---- */

static frag_size size_in(const struct scaling *s, size_t recording,
                         uint64_t block)
{
    return s->sizes[recording * s->blocks.count + block];
}

/* The points of a block, ascending by batch. At least one: the template's. */
static size_t points_of(const struct scaling *s, uint64_t block,
                        struct point points[MOST_POINTS])
{
    size_t n = 0;

    for (size_t r = 0; r < s->count; r++)
        if (size_in(s, r, block))
            points[n++] = (struct point){(double)s->recordings[r].batch,
                                         (double)size_in(s, r, block)};
    return n;
}

/* A block that the very next event frees is the workspace of a kernel. */
static bool is_workspace(const struct scaling *s, uint64_t block)
{
    return s->blocks.lives[block].free == s->blocks.lives[block].alloc + 1;
}

/* A size that is the same number of bytes a sample in all recordings is that
 * of a tensor. */
static bool is_exact_share(const struct scaling *s, uint64_t block)
{
    struct point p[MOST_POINTS];
    const size_t n = points_of(s, block, p);

    for (size_t i = 1; i < n; i++)
        if (fabs(p[i].bytes * p[0].batch - p[0].bytes * p[i].batch) > 0)
            return false;
    return n > 1;
}

/* Every workspace that grows is guessed, also if its sizes follow a curve: the
 * library may choose another algorithm at a batch size that was not recorded.
 */
static bool is_guessed(const struct scaling *s, uint64_t block)
{
    const uint32_t like = s->like[block];
    const enum scale_kind kind = s->kind[like];

    return (double)size_in(s, s->count - 1, block) >= least_guess &&
           (kind >= SCALE_CHANGED ||
            (kind != SCALE_CONSTANT && is_workspace(s, block) &&
             !is_exact_share(s, like)));
}

/* Bytes of whole elements: a size that is no whole number is rounded up to the
 * largest power of two, at most 16, that divides the size in the template. The
 * most is 2^62, which no device has. */
static frag_size whole(double bytes, frag_size template)
{
    const frag_size unit = template % 16 ? template & -template : 16;
    const double nearest = round(bytes);

    if (nearest >= 0x1p62)
        return (frag_size)1 << 62;
    if (nearest >= 1 && fabs(bytes - nearest) < 1e-3)
        return (frag_size)nearest;
    return frag_round_up(bytes < 1 ? 1 : (frag_size)ceil(bytes), unit);
}

struct scale_size scale_at(const struct scaling *s, uint64_t block,
                           uint64_t batch, const struct scale_guess *guess)
{
    const uint32_t like = s->like[block];
    struct point p[MOST_POINTS];
    const size_t n = points_of(s, like, p);
    const struct curve c =
        guess && is_guessed(s, block)
            ? curve_guess(guess, p, n, (double)batch)
            : curve_at(p, n, (double)batch, is_workspace(s, like));

    if (c.per_sample <= 0)
        return (struct scale_size){(frag_size)c.bytes, 0};
    return (struct scale_size){whole(c.bytes, (frag_size)p[n - 1].bytes),
                               c.per_sample};
}

/* ---- all requests ---- */

static enum scale_kind kind_of(const struct scaling *s, uint64_t block)
{
    struct point p[MOST_POINTS];
    const size_t n = points_of(s, block, p);

    return curve_at(p, n, p[n - 1].batch, is_workspace(s, block)).kind;
}

/* The blocks in the order of their sizes in the template, and of those of one
 * size, of their kinds and their sizes in the other recordings. */
struct order {
    frag_size bytes;
    const frag_size *first; /* size in the first recording */
    size_t count, stride;
    uint32_t block;
    uint8_t kind;
};

static int by_sizes(const void *a, const void *b)
{
    const struct order *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    for (size_t r = 0; r < x->count; r++)
        if (x->first[r * x->stride] != y->first[r * y->stride])
            return x->first[r * x->stride] < y->first[r * y->stride] ? -1 : 1;
    return x->block < y->block ? -1 : 1;
}

static bool is_same(const struct order *a, const struct order *b)
{
    if (a->bytes != b->bytes || a->kind != b->kind)
        return false;
    for (size_t r = 0; r < a->count; r++)
        if (a->first[r * a->stride] != b->first[r * b->stride])
            return false;
    return true;
}

/* Of rows of one size, the block of the most frequent sizes that follow a
 * curve; UINT32_MAX if there is none. */
static uint32_t most_frequent(const struct order *rows, uint64_t count)
{
    uint32_t best = UINT32_MAX;
    uint64_t longest = 0;

    for (uint64_t i = 0, n; i < count && rows[i].kind < SCALE_CHANGED; i += n) {
        for (n = 1; i + n < count && is_same(&rows[i], &rows[i + n]);)
            n++;
        if (n > longest) {
            longest = n;
            best = rows[i].block;
        }
    }
    return best;
}

/* The rows of one size that have no partner follow the curve of others. */
static void follow(struct scaling *s, const struct order *rows, uint64_t count)
{
    const uint32_t best = most_frequent(rows, count);

    for (uint64_t i = 0; i < count; i++)
        s->like[rows[i].block] =
            rows[i].kind < SCALE_ALONE || best == UINT32_MAX ? rows[i].block
                                                             : best;
}

static enum frag_err find_likes(struct scaling *s, struct frag_error *e)
{
    const uint64_t count = s->blocks.count;
    struct order *rows = malloc(((size_t)count + 1) * sizeof(*rows));

    if (!rows)
        return frag_no_memory(e, "the sizes of the requests");
    for (uint64_t b = 0; b < count; b++)
        rows[b] = (struct order){size_in(s, s->count - 1, b),
                                 &s->sizes[b],
                                 s->count,
                                 (size_t)count,
                                 (uint32_t)b,
                                 s->kind[b]};
    qsort(rows, (size_t)count, sizeof(*rows), by_sizes);
    for (uint64_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && rows[i].bytes == rows[i + n].bytes;)
            n++;
        follow(s, rows + i, n);
    }
    free(rows);
    return FRAG_OK;
}

/* The first event after which most bytes are live. */
static uint64_t peak_of(const struct blocks *b)
{
    uint64_t peak = 0;

    for (uint64_t i = 1; i <= b->events; i++)
        if (b->live[i] > b->live[peak])
            peak = i;
    return peak;
}

static void count_request(const struct scaling *s, uint64_t block,
                          uint64_t peak, struct scale_requests *r)
{
    const frag_size bytes = size_in(s, s->count - 1, block);

    r->count++;
    r->bytes += bytes;
    r->peak_bytes +=
        block_is_live(&s->blocks, (uint32_t)block, peak) ? bytes : 0;
}

static void count_requests(struct scaling *s)
{
    const uint64_t peak = peak_of(&s->blocks);

    for (uint64_t b = 0; b < s->blocks.count; b++) {
        count_request(s, b, peak, &s->requests[s->kind[b]]);
        if (is_guessed(s, b))
            count_request(s, b, peak, &s->guessed);
    }
}

static uint64_t count_allocs(const struct frag_device_trace *d)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < d->count; i++)
        n += d->op[i] == FRAG_ALLOC;
    return n;
}

/* Most requests of the shortest recording have partners of plausible sizes; a
 * longer one may have more steps. */
static enum frag_err check_program(const struct scaling *s,
                                   struct frag_error *e)
{
    const struct scale_recording *last = &s->recordings[s->count - 1];
    uint64_t least = s->blocks.count, found = 0;

    for (size_t r = 0; r < s->count; r++) {
        const uint64_t n = count_allocs(s->recordings[r].device);

        least = n < least ? n : least;
    }
    for (unsigned k = 0; k < SCALE_CHANGED; k++)
        found += s->requests[k].count;
    if (found < least / 2)
        return frag_fail(e, FRAG_INVALID,
                         "%.100s: expected requests like those of the other "
                         "recordings, found only %" PRIu64 " of %" PRIu64
                         ": are these recordings of one program?",
                         last->path, found, least);
    if (!s->requests[SCALE_GROWING].count && !s->requests[SCALE_SQUARE].count)
        return frag_fail(e, FRAG_INVALID,
                         "%.100s: expected requests that are larger than at "
                         "batch %" PRIu64
                         ", found none: are these recordings of one program "
                         "at different batch sizes?",
                         last->path, s->recordings[0].batch);
    return FRAG_OK;
}

static enum frag_err match_all(struct scaling *s, struct frag_error *e)
{
    const size_t last = s->count - 1;
    const uint64_t count = s->blocks.count;

    for (size_t r = 0; r < last; r++)
        FRAG_TRY(scale_match(&s->recordings[last], &s->blocks,
                             &s->recordings[r], s->sizes + r * count, e));
    for (uint64_t b = 0; b < count; b++)
        s->sizes[last * count + b] =
            s->template->bytes[s->blocks.lives[b].alloc];
    for (uint64_t b = 0; b < count; b++)
        s->kind[b] = (uint8_t)kind_of(s, b);
    FRAG_TRY(find_likes(s, e));
    count_requests(s);
    return check_program(s, e);
}

static int by_batch(const void *a, const void *b)
{
    const struct scale_recording *x = a, *y = b;

    return x->batch < y->batch ? -1 : x->batch > y->batch;
}

static enum frag_err check(const struct scale_recording *r, size_t count,
                           struct frag_error *e)
{
    if (count < 2 || count > MOST_POINTS)
        return frag_fail(e, FRAG_INVALID,
                         "expected recordings at 2 to %d batch sizes, found "
                         "%zu",
                         MOST_POINTS, count);
    for (size_t i = 0; i < count; i++) {
        if (!r[i].batch)
            return frag_fail(e, FRAG_INVALID, "%.200s: the batch size is 0",
                             r[i].path);
        if (i && r[i].batch == r[i - 1].batch)
            return frag_fail(e, FRAG_INVALID,
                             "batch size %" PRIu64 " has two recordings: "
                             "%.100s and %.100s; pass one of them",
                             r[i].batch, r[i - 1].path, r[i].path);
    }
    return FRAG_OK;
}

static enum frag_err reserve(struct scaling *s, struct frag_error *e)
{
    const size_t count = (size_t)s->blocks.count;

    if (!count || count >= UINT32_MAX)
        return frag_fail(e, FRAG_INVALID,
                         "%.200s: expected requests, found %zu",
                         s->recordings[s->count - 1].path, count);
    s->sizes = calloc(s->count * count, sizeof(*s->sizes));
    s->kind = calloc(count, sizeof(*s->kind));
    s->like = calloc(count, sizeof(*s->like));
    return s->sizes && s->kind && s->like
               ? FRAG_OK
               : frag_no_memory(e, "the sizes of the requests");
}

static enum frag_err open_all(struct scaling *s, struct frag_error *e)
{
    qsort(s->recordings, s->count, sizeof(*s->recordings), by_batch);
    FRAG_TRY(check(s->recordings, s->count, e));
    s->template = s->recordings[s->count - 1].device;
    FRAG_TRY(blocks_open(s->template, s->template->count, &s->blocks, e));
    FRAG_TRY(reserve(s, e));
    return match_all(s, e);
}

enum frag_err scale_open(const struct scale_recording *recordings, size_t count,
                         struct scaling *out, struct frag_error *e)
{
    struct scaling s = {.count = count};
    enum frag_err err;

    s.recordings = malloc((count + 1) * sizeof(*s.recordings));
    if (!s.recordings)
        return frag_no_memory(e, "the recordings");
    if (count)
        memcpy(s.recordings, recordings, count * sizeof(*recordings));
    err = open_all(&s, e);
    if (err == FRAG_OK)
        *out = s;
    else
        scale_close(&s);
    return err;
}

void scale_close(struct scaling *s)
{
    free(s->recordings);
    blocks_close(&s->blocks);
    free(s->sizes);
    free(s->kind);
    free(s->like);
    *s = (struct scaling){0};
}

/* ---- a trace ---- */

static const struct scale_recording *recording_at(const struct scaling *s,
                                                  uint64_t batch)
{
    for (size_t r = 0; r < s->count; r++)
        if (s->recordings[r].batch == batch)
            return &s->recordings[r];
    return NULL;
}

/* The largest batch at which the largest request, if it grew with the square,
 * would still be a size. */
static enum frag_err check_batch(const struct scaling *s, uint64_t batch,
                                 struct frag_error *e)
{
    double most = 1;

    for (uint64_t b = 0; b < s->blocks.count; b++)
        most = fmax(most, (double)size_in(s, s->count - 1, b));
    if (batch && most * (double)batch * (double)batch < 0x1p62)
        return FRAG_OK;
    return frag_fail(e, FRAG_INVALID,
                     "batch size %" PRIu64 ": expected 1 to %.0f", batch,
                     floor(sqrt(0x1p62 / most)));
}

enum frag_err scale_make(const struct scaling *s, uint64_t batch,
                         const struct scale_guess *guess, struct scaled *out,
                         struct frag_error *e)
{
    const struct scale_recording *recording = recording_at(s, batch);
    uint64_t *bytes;

    FRAG_TRY(check_batch(s, batch, e));
    if (recording) {
        *out = (struct scaled){*recording->device, true, NULL};
        return FRAG_OK;
    }
    bytes = calloc((size_t)s->template->count + 1, sizeof(*bytes));
    if (!bytes)
        return frag_no_memory(e, "the trace of batch size %" PRIu64, batch);
    for (uint64_t b = 0; b < s->blocks.count; b++)
        bytes[s->blocks.lives[b].alloc] = scale_at(s, b, batch, guess).bytes;
    *out = (struct scaled){*s->template, false, bytes};
    out->device.bytes = bytes;
    out->device.recorded = (struct frag_recorded){0};
    return FRAG_OK;
}

void scaled_close(struct scaled *s)
{
    free(s->bytes);
    *s = (struct scaled){0};
}
