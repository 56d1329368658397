/* test_edit.c - tests the edits of a trace against a judge that applies each of
 * them to a list of events by the simplest means: it marks, renumbers and sorts
 * the whole list. The judge shares no code with traces/edit/.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/edit/edit.h"
#include "traces/storage.h"

enum { EVENTS = 160, MOST = 4 * EVENTS * 4, MARK = 100, SEEDS = 40 };

/* ---- the judge's list ---- */

/* An event or a mark. Entries are sorted by place, then rank, then order. */
struct entry {
    int op; /* enum frag_op, or MARK */
    int block;
    uint64_t bytes, pool, time;
    uint64_t stream; /* of a FREE: 1 + the handle of the stream on which it was
                        freed, 0: that of its ALLOC */
    int site;
    int place, rank, order;
    bool is_initial;
};

struct list {
    struct entry items[MOST];
    int count;
};

static uint64_t state;

static unsigned roll(unsigned sides)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % sides;
}

static const uint64_t handles[] = {0, 7, 900};
static const char *const functions[] = {"", "forward", "attention", "step"};

static struct entry *push(struct list *l, int op, int block)
{
    struct entry *e = &l->items[l->count++];

    assert_true(l->count < MOST);
    *e = (struct entry){.op = op, .block = block};
    return e;
}

static const struct entry *alloc_of(const struct list *l, int block)
{
    for (int i = 0; i < l->count; i++)
        if (l->items[i].op == FRAG_ALLOC && l->items[i].block == block)
            return &l->items[i];
    return NULL;
}

static bool has_free_streams; /* of the list that is made */

static void release(struct list *l, int block)
{
    const uint64_t own = alloc_of(l, block)->stream;
    const uint64_t on = handles[roll(3)];

    push(l, FRAG_FREE, block)->stream =
        has_free_streams && on != own ? 1 + on : 0;
}

/* One random event of a block that is in use. */
static void use(struct list *l, int block, int *states)
{
    const unsigned what = roll(6);

    if (states[block] == 2 || what > 2)
        release(l, block);
    else if (what == 0)
        push(l, FRAG_FREE_REQUESTED, block);
    else
        push(l, FRAG_RECORD_STREAM, block)->stream = handles[roll(3)];
    if (states[block] == 2 || what > 2)
        states[block] = 0;
    else if (what == 0)
        states[block] = 2;
}

static void request(struct list *l, int block, int *states)
{
    struct entry *e = push(l, FRAG_ALLOC, block);

    e->bytes = 1 + roll(5000);
    e->stream = handles[roll(3)];
    e->pool = roll(3) == 0;
    e->site = (int)roll(4);
    states[block] = 1;
}

/* Sets the times and what is initial, and numbers the events. A mark has the
 * place of the event after it. */
static void number(struct list *l)
{
    int n = 0;

    for (int i = 0; i < l->count; i++) {
        l->items[i].place = n;
        l->items[i].order = i;
        l->items[i].rank = l->items[i].op == MARK ? 1 : 3;
        n += l->items[i].op != MARK;
    }
}

static void make(struct list *l, uint64_t seed, int initial)
{
    static int states[EVENTS + 64];
    int blocks = 0;

    state = seed * 2654435761u + 99;
    has_free_streams = roll(3) > 0;
    l->count = 0;
    memset(states, 0, sizeof(states));
    for (int i = 0; i < initial; i++)
        request(l, blocks++, states);
    for (int i = 0; i < EVENTS; i++) {
        const int block = blocks ? (int)roll((unsigned)blocks) : 0;

        if (i % 20 == 19)
            push(l, MARK, 0);
        if (roll(30) == 0)
            push(l, FRAG_EMPTY_CACHE, 0);
        else if (blocks && states[block] && roll(2))
            use(l, block, states);
        else
            request(l, blocks++, states);
    }
    number(l);
    for (int i = 0; i < l->count; i++) {
        l->items[i].is_initial = i < initial;
        l->items[i].time = 1000 + 10 * (uint64_t)i;
    }
}

static int by_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->place != y->place)
        return x->place - y->place;
    return x->rank != y->rank ? x->rank - y->rank : x->order - y->order;
}

static void sort(struct list *l)
{
    qsort(l->items, (size_t)l->count, sizeof(*l->items), by_place);
}

/* The number of events without the marks. */
static int events_of(const struct list *l)
{
    int n = 0;

    for (int i = 0; i < l->count; i++)
        n += l->items[i].op != MARK;
    return n;
}

static bool has_block(int op)
{
    return op != MARK && op != FRAG_EMPTY_CACHE;
}

/* Moved and added events have the time of the event before them. */
static void settle_times(struct list *l, const bool *moved)
{
    uint64_t last = 0;

    for (int i = 0; i < l->count; i++) {
        if (l->items[i].op == MARK)
            continue;
        if (moved[l->items[i].order])
            l->items[i].time = last;
        last = l->items[i].time;
    }
}

/* The list as text, one line for each entry; blocks are numbered by their
 * ALLOCs. A FREE on the stream of its ALLOC is one without a stream. */
static char *describe(const struct list *l)
{
    static int names[MOST];
    static uint64_t own[MOST];
    size_t size;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);
    int blocks = 0;

    for (int i = 0; i < l->count; i++) {
        const struct entry *e = &l->items[i];

        if (e->op == MARK) {
            fprintf(out, "mark\n");
            continue;
        }
        if (e->op == FRAG_ALLOC) {
            names[e->block] = blocks++;
            own[e->block] = e->stream;
        }
        fprintf(out, "%s %d %llu %llu %llu %llu %s%s\n", frag_op_names[e->op],
                has_block(e->op) ? names[e->block] : 0,
                (unsigned long long)e->bytes,
                e->op == FRAG_FREE && e->stream == 1 + own[e->block]
                    ? 0ull
                    : (unsigned long long)e->stream,
                (unsigned long long)e->pool, (unsigned long long)e->time,
                functions[e->site], e->is_initial ? " initial" : "");
    }
    fclose(out);
    return text;
}

/* ---- traces ---- */

static struct frag_frame frames[] = {{0, 1, 10}, {0, 2, 20}, {0, 3, 30}};
static const uint64_t firsts[] = {0, 0, 1, 2, 3};
static const char *const texts[] = {"a/model.py", "forward", "attention",
                                    "step"};
static const struct frag_pool_id pools[] = {{0, 0}, {0, 1}};

/* The columns of a trace that a list makes. */
struct columns {
    uint8_t op[MOST];
    uint32_t id[MOST], stack[MOST];
    uint64_t bytes[MOST];
    frag_stream stream[MOST];
    frag_pool pool[MOST];
    frag_time time[MOST];
    struct frag_mark marks[MOST];
    struct frag_device_trace device;
    struct frag_trace trace;
    char path[16];
};

static frag_stream row_of(uint64_t handle)
{
    return handle == 0 ? 0 : handle == 7 ? 1 : 2;
}

/* The stream of an entry in the columns. Some lists state the stream of every
 * FREE, also where it is that of the ALLOC. */
static frag_stream column_of(const struct list *l, const struct entry *e)
{
    if (e->op != FRAG_FREE)
        return row_of(e->stream);
    if (e->stream)
        return (frag_stream)(1 + row_of(e->stream - 1));
    return l->items[0].bytes % 2
               ? (frag_stream)(1 + row_of(alloc_of(l, e->block)->stream))
               : 0;
}

static struct frag_trace *trace_of(const struct list *l, struct columns *c)
{
    uint64_t n = 0, marks = 0;

    *c = (struct columns){.path = "list"};
    for (int i = 0; i < l->count; i++) {
        const struct entry *e = &l->items[i];

        if (e->op == MARK) {
            c->marks[marks++] = (struct frag_mark){
                .event = n, .time = 5, .kind = FRAG_MARK_END, .name = 3};
            continue;
        }
        c->op[n] = (uint8_t)e->op;
        c->id[n] = has_block(e->op) ? (uint32_t)e->block : 0;
        c->bytes[n] = e->bytes;
        c->stream[n] = column_of(l, e);
        if (e->op == FRAG_FREE && c->stream[n])
            c->device.free_streams = true;
        c->pool[n] = (frag_pool)e->pool;
        c->time[n] = e->time;
        c->stack[n] = (uint32_t)e->site;
        c->device.initial += e->is_initial;
        n++;
    }
    c->device.slots = EVENTS + 64;
    c->device.count = n;
    c->device.op = c->op;
    c->device.id = c->id;
    c->device.bytes = c->bytes;
    c->device.stream = c->stream;
    c->device.pool = c->pool;
    c->device.time = c->time;
    c->device.stack = c->stack;
    c->device.stream_count = 3;
    c->device.streams = handles;
    c->device.pool_count = 2;
    c->device.pools = pools;
    c->device.marks = c->marks;
    c->device.mark_count = marks;
    c->trace = (struct frag_trace){
        .path = c->path,
        .format = "csv",
        .sha256 = "abc",
        .device_count = 1,
        .devices = &c->device,
        .string_count = 4,
        .strings = texts,
        .stack_count = 4,
        .stack_first = firsts,
        .frames = frames,
    };
    assert_int_equal(frag_trace_check(&c->device, "list", NULL), FRAG_OK);
    return &c->trace;
}

static int site_in(const struct frag_trace *t, uint32_t stack)
{
    const char *name;

    if (stack >= t->stack_count ||
        t->stack_first[stack] == t->stack_first[stack + 1])
        return 0;
    name = t->strings[t->frames[t->stack_first[stack]].function];
    for (int k = 1; k < 4; k++)
        if (!strcmp(name, functions[k]))
            return k;
    fail_msg("the function %s is not in the input", name);
    return 0;
}

/* The handle of the stream of event i, as in struct entry. A FREE on the stream
 * of its ALLOC, whose row is `own`, has no stream. */
static uint64_t stream_in(const struct frag_device_trace *d, uint64_t i,
                          frag_stream own)
{
    if (d->op[i] == FRAG_ALLOC || d->op[i] == FRAG_RECORD_STREAM)
        return d->streams[d->stream[i]];
    if (d->op[i] != FRAG_FREE || !d->stream[i]) {
        assert_int_equal(d->stream[i], 0);
        return 0;
    }
    assert_true(d->free_streams);
    assert_int_not_equal(d->stream[i], own + 1);
    return 1 + d->streams[d->stream[i] - 1];
}

/* The events of the first device as a list. */
static void list_of(const struct frag_trace *t, struct list *l)
{
    static int holder[MOST];
    static frag_stream own[MOST];
    const struct frag_device_trace *d = &t->devices[0];
    uint64_t mark = 0, elsewhere = 0;
    int blocks = 0;

    l->count = 0;
    for (uint64_t i = 0; i <= d->count; i++) {
        struct entry *e;

        for (; mark < d->mark_count && d->marks[mark].event == i; mark++) {
            assert_string_equal(t->strings[d->marks[mark].name], "step");
            push(l, MARK, 0);
        }
        if (i == d->count)
            break;
        e = push(l, d->op[i], 0);
        if (e->op == FRAG_ALLOC) {
            holder[d->id[i]] = blocks++;
            own[d->id[i]] = d->stream[i];
        }
        if (has_block(e->op))
            e->block = holder[d->id[i]];
        e->bytes = d->bytes[i];
        e->stream = stream_in(d, i, own[d->id[i]]);
        elsewhere += e->op == FRAG_FREE && e->stream;
        e->pool = d->pools[d->pool[i]].number;
        e->time = d->time ? d->time[i] : 0;
        e->site = d->stack ? site_in(t, d->stack[i]) : 0;
        e->is_initial = i < d->initial;
    }
    assert_int_equal(mark, d->mark_count);
    assert_int_equal(d->free_streams, elsewhere > 0);
    number(l);
}

static struct frag_trace *applied(const struct frag_trace *t, const char *text)
{
    struct frag_edits *edits;
    struct frag_error e = {""};
    struct frag_trace *out = NULL;

    if (frag_edits_read(&text, 1, &edits, &e) != FRAG_OK ||
        frag_edits_apply(edits, t, &out, &e) != FRAG_OK)
        fail_msg("%s: %s", text, e.text);
    frag_edits_free(edits);
    assert_string_equal(out->path, t->path);
    assert_string_equal(out->sha256, t->sha256);
    assert_true(out->note_count >= 1);
    assert_null(out->devices[0].recorded.addr);
    return out;
}

/* Applies the edit, and compares the result with the judge's list. */
static void expect(const struct list *input, const char *text,
                   const struct list *wanted, uint64_t seed)
{
    static struct columns c;
    static struct list found;
    struct frag_trace *out = applied(trace_of(input, &c), text);
    char *a, *b;

    list_of(out, &found);
    a = describe(&found);
    b = describe(wanted);
    if (strcmp(a, b) != 0) {
        size_t at = 0;

        while (a[at] == b[at])
            at++;
        while (at && a[at - 1] != '\n')
            at--;
        fail_msg("%s, seed %llu: found \"%.60s\", expected \"%.60s\"", text,
                 (unsigned long long)seed, a + at, b + at);
    }
    free(a);
    free(b);
    frag_trace_close(out);
}

/* ---- the judge's edits ---- */

static void naive_slice(const struct list *in, int from, int to,
                        struct list *out)
{
    out->count = 0;
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < in->count; i++) {
            struct entry e = in->items[i];
            bool is_live = false;

            for (int k = 0; k < in->count; k++)
                if (in->items[k].block == e.block &&
                    in->items[k].place < from) {
                    if (in->items[k].op == FRAG_ALLOC)
                        is_live = true;
                    if (in->items[k].op == FRAG_FREE)
                        is_live = false;
                }
            if (pass < 2 ? e.place < from && has_block(e.op) && is_live &&
                               (e.op == FRAG_ALLOC) == (pass == 0)
                         : (e.place >= from && e.place <= to) ||
                               (e.op == MARK && e.place == to + 1)) {
                e.is_initial = e.is_initial || pass == 0;
                out->items[out->count++] = e;
            }
        }
}

typedef bool chosen(const struct entry *request);

static bool is_large(const struct entry *e)
{
    return e->bytes >= 2048 && e->bytes <= 4096;
}

static bool is_attention(const struct entry *e)
{
    return e->site == 2;
}

static bool is_stream(const struct entry *e)
{
    return e->stream == 7 || e->stream == 900;
}

static bool is_pool(const struct entry *e)
{
    return e->pool == 1;
}

static bool is_any(const struct entry *e)
{
    (void)e;
    return true;
}

static const struct selector {
    const char *keys;
    chosen *is;
} selectors[] = {
    {"min=2KiB,max=4KiB", is_large},
    {"site=attention", is_attention},
    {"site=attention (model.py:20)", is_attention},
    {"stream=7+0x384", is_stream},
    {"pool=0:1", is_pool},
    {"device=0", is_any},
};

enum { SELECTORS = sizeof(selectors) / sizeof(*selectors) };

static void naive_filter(const struct list *in, chosen *is, bool wanted,
                         struct list *out)
{
    out->count = 0;
    for (int i = 0; i < in->count; i++)
        if (!has_block(in->items[i].op) ||
            is(alloc_of(in, in->items[i].block)) == wanted)
            out->items[out->count++] = in->items[i];
}

/* Where the free goes: its place, and before or after the marks there. */
static void naive_move(const struct list *in, chosen *is, int by,
                       struct list *out)
{
    static bool moved[MOST];
    const int count = events_of(in);
    int initial = 0;

    *out = *in;
    memset(moved, 0, sizeof(moved));
    for (int i = 0; i < in->count; i++)
        initial += in->items[i].is_initial;
    for (int i = 0; i < out->count; i++) {
        struct entry *e = &out->items[i];
        int used = 0, request = -1, to;

        if ((e->op != FRAG_FREE && e->op != FRAG_FREE_REQUESTED) ||
            !is(alloc_of(in, e->block)))
            continue;
        for (int k = 0; k < in->count; k++) {
            const struct entry *x = &in->items[k];

            if (!has_block(x->op) || x->block != e->block)
                continue;
            if (x->op == FRAG_ALLOC || x->op == FRAG_RECORD_STREAM)
                used = x->place + 1;
            else if (request < 0)
                request = x->place;
        }
        to = by < 0 ? request + by : request + by + 1;
        to = to < used ? used : to;
        to = to < initial ? initial : to;
        to = to > count ? count : to;
        if (to == request || to == request + 1)
            continue;
        to += in->items[i].place - request;
        to = to > count ? count : to;
        e->place = to;
        e->rank = by < 0 ? 2 : 0;
        moved[e->order] = true;
    }
    sort(out);
    settle_times(out, moved);
}

static void naive_empty(const struct list *in, int every, struct list *out)
{
    static bool moved[MOST];
    int initial = 0;

    *out = *in;
    memset(moved, 0, sizeof(moved));
    for (int i = 0; i < in->count; i++)
        initial += in->items[i].is_initial;
    for (int at = initial + every; at <= events_of(in); at += every) {
        struct entry *e = push(out, FRAG_EMPTY_CACHE, 0);

        e->place = at;
        e->order = out->count - 1;
        moved[e->order] = true;
    }
    sort(out);
    settle_times(out, moved);
}

/* Appends a copy of `more` after the FREEs of all blocks that are live, which
 * are in the order of the output's slots: the judge does not know that order,
 * so it takes it from `slots`. */
static int free_all(struct list *l, const struct frag_trace *slots, int at)
{
    static int block_of[MOST];
    const struct frag_device_trace *d = &slots->devices[0];
    uint64_t time = 0;
    int n = 0, added = 0;

    for (int i = 0; i < l->count; i++) {
        if (l->items[i].op == MARK)
            continue;
        if (l->items[i].op == FRAG_ALLOC)
            block_of[d->id[n]] = l->items[i].block;
        time = l->items[i].time;
        n++;
    }
    assert_int_equal(n, at);
    for (; (uint64_t)n < d->count && d->op[n] == FRAG_FREE; n++) {
        bool is_live = false;

        for (int i = 0; i < l->count; i++)
            if (has_block(l->items[i].op) &&
                l->items[i].block == block_of[d->id[n]])
                is_live = l->items[i].op != FRAG_FREE;
        if (!is_live)
            break;
        push(l, FRAG_FREE, block_of[d->id[n]])->time = time;
        added++;
    }
    for (int b = 0; b < MOST / 2; b++) { /* none is left */
        bool is_live = false;

        for (int i = 0; i < l->count; i++)
            if (has_block(l->items[i].op) && l->items[i].block == b)
                is_live = l->items[i].op != FRAG_FREE;
        assert_false(is_live);
    }
    return added;
}

static void append(struct list *l, const struct list *more, int first_block,
                   uint64_t handle_shift)
{
    uint64_t last = 0, begin = 0;
    bool found = false;

    for (int i = 0; i < l->count; i++)
        if (l->items[i].op != MARK)
            last = l->items[i].time;
    for (int i = 0; i < more->count && !found; i++)
        if (more->items[i].op != MARK && !more->items[i].is_initial) {
            begin = more->items[i].time;
            found = true;
        }
    for (int i = 0; i < more->count; i++) {
        struct entry e = more->items[i];

        e.block += first_block;
        e.is_initial = false;
        e.time = e.time - begin + last;
        e.stream += handle_shift;
        l->items[l->count++] = e;
    }
}

/* ---- the tests ---- */

static struct list in, out, more;

static void slices_are_those_of_the_judge(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        char text[64];
        int from, to;

        make(&in, seed, (int)(seed % 4));
        from = (int)roll(EVENTS - 1);
        to = from + (int)roll((unsigned)(EVENTS - from));
        naive_slice(&in, from, to, &out);
        snprintf(text, sizeof(text), "slice:events=%d..%d", from, to);
        expect(&in, text, &out, seed);
    }
}

static void a_slice_of_time_has_its_events(void **unused)
{
    (void)unused;
    make(&in, 3, 0);
    for (int i = 0; i < in.count; i++)
        in.items[i].time *= 1000000; /* 10 ms from one entry to the next */
    for (int i = 0; i < in.count; i++) {
        const uint64_t time = in.items[i].time - in.items[0].time;

        if (in.items[i].op == MARK || time < 500000000)
            continue;
        naive_slice(&in, in.items[i].place, in.items[i].place + 30, &out);
        break;
    }
    /* 31 entries, two of which may be marks: find the end by its time. */
    {
        char text[64];
        const uint64_t begin = in.items[0].time;
        uint64_t first = 0, last = 0;

        for (int i = 0; i < out.count; i++)
            if (out.items[i].op != MARK && !out.items[i].is_initial &&
                out.items[i].time - begin >= 500000000) {
                first = first ? first : out.items[i].time - begin;
                last = out.items[i].time - begin;
            }
        snprintf(text, sizeof(text), "slice:seconds=%.3f..%.3f",
                 (double)first / 1e9, (double)(last + 5000000) / 1e9);
        expect(&in, text, &out, 3);
    }
}

static void requests_are_kept_and_left_out(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed < SEEDS; seed++)
        for (int k = 0; k < SELECTORS; k++) {
            char text[64];

            make(&in, seed, (int)(seed % 4));
            naive_filter(&in, selectors[k].is, true, &out);
            snprintf(text, sizeof(text), "keep:%s", selectors[k].keys);
            expect(&in, text, &out, seed);
            if (selectors[k].is == is_any)
                continue;
            naive_filter(&in, selectors[k].is, false, &out);
            snprintf(text, sizeof(text), "drop:%s", selectors[k].keys);
            expect(&in, text, &out, seed);
        }
}

static uint64_t times_15(uint64_t bytes)
{
    return bytes + bytes / 2 + bytes % 2; /* halves are rounded up */
}

static void sizes_change(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed < SEEDS; seed++)
        for (int k = 0; k < SELECTORS; k++) {
            char text[96];

            make(&in, seed, 2);
            out = in;
            for (int i = 0; i < out.count; i++)
                if (out.items[i].op == FRAG_ALLOC &&
                    selectors[k].is(&in.items[i]))
                    out.items[i].bytes = times_15(in.items[i].bytes);
            snprintf(text, sizeof(text), "scale:factor=1.5,%s",
                     selectors[k].keys);
            expect(&in, text, &out, seed);
        }
}

static void pools_change(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        make(&in, seed, 1);
        out = in;
        for (int i = 0; i < out.count; i++)
            out.items[i].pool = 0;
        expect(&in, "pool:to=0:0", &out, seed);
        out = in;
        for (int i = 0; i < out.count; i++)
            if (in.items[i].op == FRAG_ALLOC && in.items[i].pool == 1 &&
                is_large(&in.items[i]))
                out.items[i].pool = 5;
        expect(&in, "pool:pool=0:1,to=0:5,min=2KiB,max=4KiB", &out, seed);
    }
}

static void frees_move(void **unused)
{
    static const int shifts[] = {-1, -3, -25, -1000, 1, 4, 30, 1000};

    (void)unused;
    for (uint64_t seed = 1; seed < SEEDS; seed++)
        for (size_t s = 0; s < sizeof(shifts) / sizeof(*shifts); s++) {
            const int by = shifts[s];
            const struct selector *k = &selectors[seed % SELECTORS];
            char text[96];

            make(&in, seed, 2);
            naive_move(&in, k->is, by, &out);
            snprintf(text, sizeof(text), "free:%s=%d,%s",
                     by < 0 ? "earlier" : "later", by < 0 ? -by : by, k->keys);
            expect(&in, text, &out, seed);
        }
}

static void empty_cache_is_added_and_left_out(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        char text[64];
        const int every = 1 + (int)roll(20);

        make(&in, seed, (int)(seed % 3));
        naive_empty(&in, every, &out);
        snprintf(text, sizeof(text), "empty-cache:every=%d", every);
        expect(&in, text, &out, seed);
        out.count = 0;
        for (int i = 0; i < in.count; i++)
            if (in.items[i].op != FRAG_EMPTY_CACHE)
                out.items[out.count++] = in.items[i];
        expect(&in, "no-empty-cache", &out, seed);
    }
}

static void repetitions_follow_each_other(void **unused)
{
    static struct columns c;

    (void)unused;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        struct frag_trace *made;

        make(&in, seed, 2);
        made = applied(trace_of(&in, &c), "repeat:times=3");
        out = in;
        for (int n = 1; n < 3; n++) {
            free_all(&out, made, events_of(&out));
            append(&out, &in, n * MOST / 8, 0);
        }
        frag_trace_close(made);
        expect(&in, "repeat:times=3", &out, seed);
    }
}

/* ---- properties ---- */

static const char *const identities[] = {
    "slice:events=0..",
    "scale:factor=1",
    "keep:min=1",
    "drop:min=1GiB",
    "repeat:times=1",
    "slice:seconds=0..",
    "pool:pool=0:1,to=0:1",
    "empty-cache:every=9999",
    "free:at=step-end,mark=step,min=1GiB",
    "free:earlier=1,min=1GiB",
    "scale:factor=2;scale:factor=1;slice:events=0..;drop:min=1GiB",
};

static void some_edits_change_nothing(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed < SEEDS; seed++)
        for (size_t k = 0; k < sizeof(identities) / sizeof(*identities); k++) {
            make(&in, seed, (int)(seed % 4));
            out = in;
            for (int i = 0; strchr(identities[k], '2') && i < out.count; i++)
                out.items[i].bytes *= 2;
            expect(&in, identities[k], &out, seed);
        }
}

static void the_first_repetition_is_the_original(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        char text[96];

        make(&in, seed, (int)(seed % 4));
        snprintf(text, sizeof(text), "repeat:times=3;slice:events=..%d",
                 events_of(&in) - 1);
        out = in;
        expect(&in, text, &out, seed);
    }
}

static void a_slice_of_a_slice_is_a_slice(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        make(&in, seed, 0);
        naive_slice(&in, 10, 120, &more);
        number(&more);
        naive_slice(&more, 30, 70, &out);
        expect(&in, "slice:events=10..120;slice:events=30..70", &out, seed);
        expect(&more, "slice:events=30..70", &out, seed);
    }
}

/* Steps begin at the marks: event 19, 39, ... of the trace. */
static void steps_are_cut_at_marks(void **unused)
{
    static bool moved[MOST];

    (void)unused;
    for (uint64_t seed = 1; seed < 10; seed++) {
        make(&in, seed, 0);
        naive_slice(&in, 39, 78, &out);
        expect(&in, "slice:steps=2..3,mark=step", &out, seed);
        expect(&in, "slice:mark=step,steps=2..3", &out, seed);
        naive_empty(&in, 1000, &out); /* no call; then two, by hand */
        memset(moved, 0, sizeof(moved));
        for (int n = 2; n <= 7; n += 2) {
            struct entry *e = push(&out, FRAG_EMPTY_CACHE, 0);

            e->place = 19 + 20 * n;
            e->order = out.count - 1;
            moved[e->order] = true;
        }
        sort(&out);
        settle_times(&out, moved);
        expect(&in, "empty-cache:every-steps=2,mark=step", &out, seed);
    }
}

/* Whether a RECORD_STREAM of the block of entry i precedes it in its step. */
static bool is_used_in_step(const struct list *l, int i)
{
    for (int k = i; k-- > 0 && l->items[k].op != MARK;)
        if (l->items[k].op == FRAG_RECORD_STREAM &&
            l->items[k].block == l->items[i].block)
            return true;
    return false;
}

/* In a complete step, no request follows the release of a block, which is its
 * first FREE_REQUESTED or FREE; or, at the begin of steps, no request precedes
 * the release of a block that is older than the step. */
static void frees_go_to_the_ends_of_steps(void **unused)
{
    static struct columns c;
    static struct list found;
    static bool is_released[MOST], is_old[MOST];

    (void)unused;
    for (uint64_t seed = 1; seed < 10; seed++)
        for (int end = 0; end < 2; end++) {
            struct frag_trace *t;
            int releases = 0, requests = 0;

            make(&in, seed, 0);
            t = applied(trace_of(&in, &c),
                        end ? "free:at=step-end,mark=step"
                            : "free:at=step-begin,mark=step");
            list_of(t, &found);
            memset(is_released, 0, sizeof(is_released));
            memset(is_old, 0, sizeof(is_old));
            for (int i = 0; i < found.count; i++) {
                const struct entry *e = &found.items[i];

                if (e->op == MARK) {
                    memset(is_old, true, (size_t)EVENTS + 64);
                    for (int k = i; k < found.count; k++)
                        if (found.items[k].op == FRAG_ALLOC)
                            is_old[found.items[k].block] = false;
                    releases = requests = 0;
                } else if (e->op == FRAG_ALLOC || e->op == FRAG_RECORD_STREAM) {
                    requests++;
                    if (end && e->place >= 19 && e->place < 155)
                        assert_int_equal(releases, 0);
                } else if (e->op != FRAG_EMPTY_CACHE &&
                           !is_released[e->block]) {
                    is_released[e->block] = true;
                    releases++;
                    if (!end && is_old[e->block] && e->place >= 19 &&
                        e->place < 155 && !is_used_in_step(&found, i))
                        assert_int_equal(requests, 0);
                }
            }
            assert_int_equal(events_of(&found), events_of(&in));
            frag_trace_close(t);
        }
}

/* ---- errors ---- */

static void wrong_edits_are_explained(void **unused)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"slcie:events=1..2", "did you mean \"slice\"?"},
        {"slice:evnts=1..2", "did you mean \"events\"?"},
        {"slice", "expected one of events=A..B, steps=A..B or seconds=A..B"},
        {"slice:events=1..2,steps=1..2", "expected one of events="},
        {"slice:events=2..1", "expected a range such as"},
        {"slice:events=1..2,events=1..2", "found it twice"},
        {"slice:seconds=1", "expected a range of seconds"},
        {"scale", "expected factor=X; for example scale:factor=1.5"},
        {"scale:factor=0", "expected a number above 0"},
        {"scale:factor=-1", "expected a number above 0"},
        {"scale:factor=1.5x", "expected a number above 0"},
        {"keep:min=0", "expected a size above 0"},
        {"pad:bytes=256", "fragsim 0.2 removed it: use `scale'"},
        {"round:unit=2MiB", "fragsim 0.2 removed it"},
        {"stream:from=7,into=0", "fragsim 0.2 removed it"},
        {"pool:pool=0:1", "expected to=OWNER:NUMBER"},
        {"pool:to=0:1+0:2", "expected a pool such as 0:1"},
        {"free:earlier=0", "expected a whole number above 0"},
        {"free:at=step", "expected step-begin|step-end"},
        {"keep:pool=1", "expected pools such as 0:1"},
        {"keep:stream=1+", "expected numbers separated by +"},
        {"settings:from=1", "expected one of change=N, limit=SIZE or set="},
        {"settings:set=a:1", "expected from=EVENT"},
        {"keep:foo", "expected KEY=VALUE, found \"foo\""},
        {"no-empty-cache:min=1", "expected no key, found \"min\""},
        {"interleave:file=x", "fragsim 0.2 removed it: processes"},
        {"", "there is no edit \"\""},
        {"scale:factor=2;", "there is no edit \"\""},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_edits *edits = NULL;
        struct frag_error e = {""};

        assert_int_equal(frag_edits_read(&rows[i].text, 1, &edits, &e),
                         FRAG_INVALID);
        if (!strstr(e.text, rows[i].words))
            fail_msg("%s: \"%s\"", rows[i].text, e.text);
        assert_null(edits);
    }
}

static void edits_that_do_not_fit_are_explained(void **unused)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"slice:events=500..", "has 160 events"},
        {"slice:steps=9..9,mark=step", "has the complete steps 1 to 7"},
        {"slice:steps=1..9,mark=step", "has the complete steps 1 to 7"},
        {"slice:seconds=99..", "no event of list is at that time"},
        {"keep:stream=8", "stream 8 is not in list, which has 0 7 900"},
        {"keep:pool=3:1", "which has 0:0 0:1"},
        {"keep:device=4", "which has 0"},
        {"keep:site=atention", "did you mean \"attention\"?"},
        {"scale:factor=1e30", "would exceed 2^63 - 1"},
        {"keep:max=1,min=9999;no-empty-cache", "no event of list remains"},
        {"settings:from=999,set=a:1", "has 160 events"},
        {"no-settings:change=1", "has 0 changes of settings"},
    };
    static struct columns c;

    (void)unused;
    make(&in, 5, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_edits *edits;
        struct frag_trace *none = NULL;
        struct frag_error e = {""};

        assert_int_equal(frag_edits_read(&rows[i].text, 1, &edits, &e),
                         FRAG_OK);
        assert_int_equal(frag_edits_apply(edits, trace_of(&in, &c), &none, &e),
                         FRAG_INVALID);
        if (!strstr(e.text, rows[i].words))
            fail_msg("%s: \"%s\"", rows[i].text, e.text);
        assert_null(none);
        frag_edits_free(edits);
    }
}

static void a_trace_without_times_or_stacks_says_so(void **unused)
{
    static const struct {
        const char *text, *words;
    } rows[] = {{"slice:seconds=1..2", "list has no times"},
                {"keep:site=x", "needs call stacks"}};
    static struct columns c;

    (void)unused;
    make(&in, 5, 0);
    trace_of(&in, &c);
    c.device.time = NULL;
    c.device.stack = NULL;
    c.trace.stack_count = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_edits *edits;
        struct frag_trace *none = NULL;
        struct frag_error e = {""};

        assert_int_equal(frag_edits_read(&rows[i].text, 1, &edits, &e),
                         FRAG_OK);
        assert_int_equal(frag_edits_apply(edits, &c.trace, &none, &e),
                         FRAG_INVALID);
        if (!strstr(e.text, rows[i].words))
            fail_msg("%s: \"%s\"", rows[i].text, e.text);
        frag_edits_free(edits);
    }
}

/* ---- notes, texts and the edges of a list ---- */

static void notes_say_what_changed(void **unused)
{
    static struct columns c;
    static const frag_addr addr[MOST];
    struct frag_trace *t;

    (void)unused;
    make(&in, 5, 0);
    trace_of(&in, &c);
    c.device.recorded.addr = addr;
    t = applied(&c.trace, "scale:factor=2,site=attention;slice:events=0..9");
    assert_int_equal(t->note_count, 3);
    assert_non_null(strstr(t->notes[0], "answers of the recorded allocator"));
    assert_non_null(
        strstr(t->notes[1], "edit \"scale:factor=2,site=attention"));
    assert_string_equal(t->notes[2],
                        "edit \"slice:events=0..9\": events kept: 10 of 160");
    frag_trace_close(t);
}

static void texts_are_read_again(void **unused)
{
    const char *const two[] = {"slice:events=0..9; scale:factor=3",
                               "keep:site=f(int, int)"};
    const char *again;
    struct frag_edits *edits, *copy;

    (void)unused;
    assert_int_equal(frag_edits_read(two, 2, &edits, NULL), FRAG_OK);
    again = frag_edits_text(edits);
    assert_string_equal(again,
                        "slice:events=0..9;scale:factor=3;keep:site=f(int, "
                        "int)");
    assert_int_equal(frag_edits_read(&again, 1, &copy, NULL), FRAG_OK);
    assert_string_equal(frag_edits_text(copy), again);
    frag_edits_free(copy);
    frag_edits_free(edits);
}

/* The events that completed the trace of a job that died remain the last ones.
 */
static void added_events_stay_added(void **unused)
{
    static struct columns c;
    struct frag_trace *t;

    (void)unused;
    make(&in, 5, 0);
    trace_of(&in, &c);
    c.device.added = 60;
    t = applied(&c.trace, "scale:factor=2");
    assert_int_equal(t->devices[0].added, 60);
    frag_trace_close(t);
    t = applied(&c.trace, "slice:events=..109");
    assert_int_equal(t->devices[0].added, 10);
    frag_trace_close(t);
    t = applied(&c.trace, "repeat:times=2");
    assert_int_equal(t->devices[0].added, 0);
    frag_trace_close(t);
}

/* A segment with the two initial blocks and a free part, on the stream 900 in
 * the pool 0:1, which no event uses. */
static void the_start_stays_if_its_blocks_do(void **unused)
{
    static const struct {
        const char *text;
        bool stays;
    } rows[] = {{"scale:factor=1", true},
                {"slice:events=0..99", true},
                {"empty-cache:every=9;repeat:times=2", true},
                {"scale:factor=2", false},
                {"drop:max=7", false},
                {"pool:to=0:5", false},
                {"slice:events=4..", false}};
    static struct columns c;
    struct frag_recorded_segment segment = {
        .addr = 512, .size = 1536, .block_count = 3, .stream = 2, .pool = 1};
    struct frag_recorded_block blocks[] = {
        {512, 512, 500, FRAG_ACTIVE_ALLOCATED, 0},
        {1024, 512, 500, FRAG_ACTIVE_ALLOCATED, 0},
        {1536, 512, 0, FRAG_INACTIVE, UINT32_MAX}};

    (void)unused;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_trace *t;
        const struct frag_layout *l;

        make(&in, 5, 2);
        in.items[0].bytes = 7;
        for (int k = 0; k < in.count; k++)
            in.items[k].pool = 0;
        /* At event 4, the same blocks are live as at the start. */
        if (!strcmp(rows[i].text, "slice:events=4..")) {
            in.count = 5;
            in.items[2] = (struct entry){
                .op = FRAG_ALLOC, .block = 2, .bytes = 9, .time = 1100};
            in.items[3] =
                (struct entry){.op = FRAG_FREE, .block = 2, .time = 1101};
            in.items[4] = (struct entry){
                .op = FRAG_ALLOC, .block = 3, .bytes = 9, .time = 1102};
        }
        trace_of(&in, &c);
        for (uint64_t k = 0; k < c.device.count; k++)
            c.id[k] += c.op[k] != FRAG_EMPTY_CACHE;
        blocks[0].slot = c.id[1];
        blocks[1].slot = c.id[0];
        c.device.recorded.start = (struct frag_layout){1, 3, &segment, blocks};
        t = applied(&c.trace, rows[i].text);
        l = &t->devices[0].recorded.start;
        if ((l->segment_count == 1) != rows[i].stays)
            fail_msg("%s: %u segments", rows[i].text,
                     (unsigned)l->segment_count);
        if (rows[i].stays) {
            const struct frag_device_trace *d = &t->devices[0];

            assert_int_equal(d->streams[l->segments[0].stream], 900);
            assert_int_equal(d->pools[l->segments[0].pool].number, 1);
            assert_int_equal(l->blocks[0].slot, d->id[1]);
            assert_int_equal(l->blocks[1].slot, d->id[0]);
            assert_int_equal(l->blocks[2].slot, UINT32_MAX);
        } else {
            assert_non_null(strstr(t->notes[t->note_count - 1], "the start"));
        }
        frag_trace_close(t);
    }
}

/* Streams and pools that no event uses are not in the tables. */
static void tables_hold_what_is_used(void **unused)
{
    static struct columns c;
    struct frag_trace *t;

    (void)unused;
    make(&in, 5, 0);
    t = applied(trace_of(&in, &c), "drop:stream=7;drop:pool=0:1");
    assert_int_equal(t->devices[0].pool_count, 1);
    assert_true(t->devices[0].stream_count >= 1);
    for (uint32_t i = 1; i < t->devices[0].stream_count; i++)
        assert_true(t->devices[0].streams[i - 1] < t->devices[0].streams[i]);
    frag_trace_close(t);
}

/* Two devices, the second of which has the events of the first. */
static struct frag_trace *with_two_devices(struct columns *c,
                                           struct frag_device_trace devices[2])
{
    struct frag_trace *t = trace_of(&in, c);

    devices[0] = devices[1] = c->device;
    devices[1].device = 1;
    t->device_count = 2;
    t->devices = devices;
    return t;
}

/* The changes of a device as text: event and what is set, * if edited. */
static void expect_changes(const struct frag_trace *t, const char *text,
                           const char *wanted)
{
    struct frag_trace *out_trace = applied(t, text);
    const struct frag_device_trace *d = &out_trace->devices[0];
    char found[400] = "";

    for (uint64_t i = 0; i < d->change_count; i++) {
        const struct frag_setting_change *x = &d->changes[i];
        char limit[40];

        snprintf(limit, sizeof(limit), "limit %d", (int)x->limit);
        sprintf(found + strlen(found), "%s%d %s%s", i ? "; " : "",
                (int)x->event, x->kind ? limit : d->strings[x->text],
                x->origin == FRAG_CHANGE_EDITED ? "*" : "");
    }
    if (strcmp(found, wanted) != 0)
        fail_msg("%s: \"%s\", expected \"%s\"", text, found, wanted);
    assert_int_equal(d->change_count != 0,
                     out_trace->settings &&
                         strstr(out_trace->settings, "follows_changes:True"));
    frag_trace_close(out_trace);
}

static void changes_of_settings_are_edited(void **unused)
{
    static const struct frag_setting_change changes[] = {
        {.event = 20, .text = 1, .stack = 2},
        {.event = 30, .kind = FRAG_CHANGE_LIMIT, .limit = 5}};
    static char settings[] = "follows_changes:True,max_split_size_mb:40";
    static struct columns c;
    struct frag_trace *t, *out_trace;

    (void)unused;
    make(&in, 5, 0);
    t = trace_of(&in, &c);
    expect_changes(t, "settings:from=7,set=a:1,b:2", "7 a:1,b:2*");
    expect_changes(t, "settings:from=160,limit=9", "160 limit 9*");
    c.device.changes = changes;
    c.device.change_count = 2;
    c.device.strings = t->strings;
    out_trace = applied(t, "repeat:times=1"); /* nobody knows their start */
    assert_null(out_trace->settings);
    frag_trace_close(out_trace);
    t->settings = settings;
    expect_changes(t, "no-settings", "");
    expect_changes(t, "no-settings:change=1", "30 limit 5*");
    expect_changes(t, "no-settings:change=1;no-settings:change=1", "");
    expect_changes(t, "settings:from=25,limit=9",
                   "20 forward; 25 limit 9*; 30 limit 5");
    expect_changes(t, "settings:from=40,change=1", "30 limit 5; 40 forward*");
    expect_changes(t, "settings:from=1,change=2", "1 limit 5*; 20 forward");
    expect_changes(t, "slice:events=21..50", "12 forward; 21 limit 5");
    expect_changes(t, "repeat:times=1", "20 forward; 30 limit 5");
}

static void devices_are_edited_apart(void **unused)
{
    static struct columns c;
    struct frag_device_trace devices[2];
    struct frag_trace *t, *out_trace;

    (void)unused;
    make(&in, 5, 1);
    t = with_two_devices(&c, devices);
    out_trace = applied(t, "keep:device=1;no-empty-cache");
    assert_int_equal(out_trace->device_count, 2);
    assert_int_equal(out_trace->devices[0].count, 0);
    assert_true(out_trace->devices[1].count > 100);
    frag_trace_close(out_trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_those_of_the_judge),
        cmocka_unit_test(a_slice_of_time_has_its_events),
        cmocka_unit_test(requests_are_kept_and_left_out),
        cmocka_unit_test(sizes_change),
        cmocka_unit_test(pools_change),
        cmocka_unit_test(frees_move),
        cmocka_unit_test(empty_cache_is_added_and_left_out),
        cmocka_unit_test(repetitions_follow_each_other),
        cmocka_unit_test(some_edits_change_nothing),
        cmocka_unit_test(the_first_repetition_is_the_original),
        cmocka_unit_test(a_slice_of_a_slice_is_a_slice),
        cmocka_unit_test(steps_are_cut_at_marks),
        cmocka_unit_test(frees_go_to_the_ends_of_steps),
        cmocka_unit_test(wrong_edits_are_explained),
        cmocka_unit_test(edits_that_do_not_fit_are_explained),
        cmocka_unit_test(a_trace_without_times_or_stacks_says_so),
        cmocka_unit_test(notes_say_what_changed),
        cmocka_unit_test(texts_are_read_again),
        cmocka_unit_test(added_events_stay_added),
        cmocka_unit_test(the_start_stays_if_its_blocks_do),
        cmocka_unit_test(tables_hold_what_is_used),
        cmocka_unit_test(changes_of_settings_are_edited),
        cmocka_unit_test(devices_are_edited_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
