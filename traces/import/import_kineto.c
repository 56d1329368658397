/* import_kineto.c - imports the JSON of torch.profiler (Kineto), recorded with
 * profile_memory=True. The memory events of the file are instants, such as
 *
 *   {"ph": "i", "name": "[memory]", "ts": 4310848349627.540, "args": {
 *    "Device Type": 1, "Device Id": 0, "Addr": 140094919956480,
 *    "Bytes": 1024000, "Total Allocated": 77569536}}
 *
 * Bytes above 0 are an alloc, below 0 a free; "[OutOfMemory]" is a failed
 * request. The file groups events by thread, so they are sorted by time, and in
 * file order where times are equal. "Total Allocated" is the sum of PyTorch's
 * allocator after the event: it states what was live before the first event,
 * and checks every other one. The memory of the reader is that of the memory
 * events.
 *
 * Format: pytorch, torch/csrc/autograd/profiler_kineto.cpp; kineto,
 * libkineto/include/MetadataFieldCatalog.h.
 */
#include <inttypes.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/fields.h"
#include "traces/grow.h"
#include "traces/import/importers.h"
#include "traces/json/records.h"
#include "traces/live.h"

#define EVENT "traceEvents/[]/"

/* The fields of an event that are read. */
#define FIELDS(X)                            \
    X(BASE, "baseTimeNanoseconds")           \
    X(NAME, EVENT "name")                    \
    X(CATEGORY, EVENT "cat")                 \
    X(TIME, EVENT "ts")                      \
    X(DURATION, EVENT "dur")                 \
    X(DEVICE_TYPE, EVENT "args/Device Type") \
    X(DEVICE_ID, EVENT "args/Device Id")     \
    X(ADDR, EVENT "args/Addr")               \
    X(BYTES, EVENT "args/Bytes")             \
    X(TOTAL, EVENT "args/Total Allocated")

enum field_number {
#define X(name, path) F_##name,
    FIELDS(X)
#undef X
        FIELD_COUNT
};

static const char *const paths[] = {
#define X(name, path) path,
    FIELDS(X)
#undef X
};

enum { CPU = 0 }; /* of c10::DeviceType */

/* An alloc, a free or a failed request. */
struct timeline_event {
    frag_time time;
    int64_t bytes; /* below 0: a free of that many bytes; never 0 */
    frag_addr addr;
    frag_size total; /* bytes live on the device after the event */
    uint64_t where;  /* position in the file */
    uint32_t device;
    bool failed, has_total;
};

/* The events in the order of the file. */
struct timeline {
    struct timeline_event *events;
    uint64_t count, room;
};

/* A phase of the program, which is a mark at its begin and at its end. */
struct phase {
    frag_time begin, end;
    char name[64]; /* a longer one is cut */
};

struct kineto {
    struct frag_source *source;
    struct frag_build *build;
    struct frag_error *e;
    uint64_t records; /* events of any kind */
    uint64_t empty;   /* memory events of 0 bytes */
    struct timeline cpu, gpu;
    int64_t gpu_type; /* of c10::DeviceType, if there are events */
    struct phase *phases;
    uint64_t phase_count, phase_room;
};

/* ---- the values of an event ---- */

static struct field field_of(const struct json_value *v)
{
    return (struct field){v->text, v->length};
}

static enum frag_err wrong(const struct kineto *k, uint64_t where,
                           const char *expected, const struct json_value *v)
{
    if (v->kind == JSON_ABSENT)
        return frag_fail(k->e, FRAG_CORRUPT,
                         "%s:%" PRIu64
                         ": expected %s, found an event without it",
                         frag_source_name(k->source), where, expected);
    return field_wrong(k->source, where, expected, field_of(v), k->e);
}

/* Reads a whole number, which may have a sign. */
static bool read_integer(const struct json_value *v, int64_t *value)
{
    const bool negative = v->text[0] == '-';
    uint64_t n;

    if (v->kind != JSON_NUMBER ||
        !field_decimal((struct field){v->text + negative, v->length - negative},
                       &n) ||
        n > INT64_MAX)
        return false;
    *value = negative ? -(int64_t)n : (int64_t)n;
    return true;
}

/* Reads decimal microseconds with any number of decimals as whole ns. */
static bool read_time(const struct json_value *v, frag_time *ns)
{
    const char *point = memchr(v->text, '.', v->length);
    const size_t whole = point ? (size_t)(point - v->text) : v->length;
    const size_t decimals = point ? v->length - whole - 1 : 0;
    uint64_t us, rest = 0;

    if (v->kind != JSON_NUMBER ||
        !field_decimal((struct field){v->text, whole}, &us) ||
        us > UINT64_MAX / 1000 - 1)
        return false;
    if (decimals &&
        !field_decimal((struct field){point + 1, decimals < 3 ? decimals : 3},
                       &rest))
        return false;
    for (size_t i = decimals; i < 3 && decimals; i++)
        rest *= 10;
    *ns = us * 1000 + rest;
    return true;
}

/* The times of an event are relative to a base in newer files. */
static enum frag_err time_of(const struct kineto *k,
                             const struct json_value *values, uint64_t where,
                             enum field_number number, frag_time *time)
{
    uint64_t base = 0;

    if (values[F_BASE].kind == JSON_NUMBER &&
        !field_decimal(field_of(&values[F_BASE]), &base))
        return wrong(k, where, "baseTimeNanoseconds as a whole number",
                     &values[F_BASE]);
    if (!read_time(&values[number], time) ||
        __builtin_add_overflow(*time, base, time))
        return wrong(k, where, "a time in microseconds (ts)", &values[number]);
    return FRAG_OK;
}

/* ---- the events of the file ---- */

static enum frag_err read_address(const struct kineto *k,
                                  const struct json_value *values,
                                  struct timeline_event *ev)
{
    int64_t addr;

    if (ev->failed)
        return FRAG_OK;
    if (values[F_ADDR].kind == JSON_ABSENT)
        return frag_fail(k->e, FRAG_CORRUPT,
                         "%s:%" PRIu64 ": expected \"Addr\" in a [memory] "
                         "event, found none: PyTorch 1.9 and earlier write no "
                         "addresses, and without them no free can be joined "
                         "with its alloc; profile with PyTorch 1.10 or later, "
                         "or " FRAG_RECORD_SNAPSHOT,
                         frag_source_name(k->source), ev->where);
    if (!read_integer(&values[F_ADDR], &addr))
        return wrong(k, ev->where, "an address (Addr)", &values[F_ADDR]);
    ev->addr = (frag_addr)addr;
    return FRAG_OK;
}

/* Sets *t to the timeline of the event's device. */
static enum frag_err read_device(struct kineto *k,
                                 const struct json_value *values,
                                 struct timeline_event *ev, struct timeline **t)
{
    int64_t type = 0, device = 0;

    if (!read_integer(&values[F_DEVICE_TYPE], &type) || type < 0)
        return wrong(k, ev->where, "a device type (Device Type)",
                     &values[F_DEVICE_TYPE]);
    if (!read_integer(&values[F_DEVICE_ID], &device) || device < -1 ||
        device > INT16_MAX)
        return wrong(k, ev->where, "a device number (Device Id)",
                     &values[F_DEVICE_ID]);
    *t = type == CPU ? &k->cpu : &k->gpu;
    ev->device = device < 0 ? 0 : (uint32_t)device; /* the CPU is number -1 */
    if (type == CPU)
        return FRAG_OK;
    if (k->gpu.count && k->gpu_type != type)
        return wrong(k, ev->where, "GPUs of one type (Device Type)",
                     &values[F_DEVICE_TYPE]);
    k->gpu_type = type;
    return FRAG_OK;
}

static enum frag_err read_sizes(const struct kineto *k,
                                const struct json_value *values,
                                struct timeline_event *ev)
{
    int64_t total = 0;

    if (!read_integer(&values[F_BYTES], &ev->bytes) ||
        (ev->failed && ev->bytes < 0))
        return wrong(k, ev->where, "a number of bytes (Bytes)",
                     &values[F_BYTES]);
    ev->has_total = values[F_TOTAL].kind != JSON_ABSENT;
    if (ev->has_total && !read_integer(&values[F_TOTAL], &total))
        return wrong(k, ev->where, "a number of bytes (Total Allocated)",
                     &values[F_TOTAL]);
    ev->total = (frag_size)total;
    return FRAG_OK;
}

static enum frag_err add_event(struct kineto *k,
                               const struct json_value *values, bool failed,
                               uint64_t where)
{
    struct timeline_event ev = {.where = where, .failed = failed};
    struct timeline *t = NULL;

    FRAG_TRY(time_of(k, values, where, F_TIME, &ev.time));
    FRAG_TRY(read_device(k, values, &ev, &t));
    FRAG_TRY(read_sizes(k, values, &ev));
    FRAG_TRY(read_address(k, values, &ev));
    if (!ev.bytes) {
        k->empty++;
        return FRAG_OK;
    }
    if (!GROW(t->events, t->room, t->count + 1))
        return FRAG_NOMEM;
    t->events[t->count++] = ev;
    return FRAG_OK;
}

/* Whether the event is a step of the profiler or of an optimizer on the host.
 * The same names on the timeline of the GPU are left out. */
static bool is_phase(const struct json_value *values)
{
    const struct field name = field_of(&values[F_NAME]);

    return (field_begins(name, "ProfilerStep#") ||
            field_begins(name, "Optimizer.step#")) &&
           field_is(field_of(&values[F_CATEGORY]), "user_annotation");
}

static enum frag_err add_phase(struct kineto *k,
                               const struct json_value *values, uint64_t where)
{
    struct phase *p;
    frag_time duration;

    if (!GROW(k->phases, k->phase_room, k->phase_count + 1))
        return FRAG_NOMEM;
    p = &k->phases[k->phase_count];
    FRAG_TRY(time_of(k, values, where, F_TIME, &p->begin));
    if (!read_time(&values[F_DURATION], &duration) ||
        __builtin_add_overflow(p->begin, duration, &p->end))
        return wrong(k, where, "a duration in microseconds (dur)",
                     &values[F_DURATION]);
    strncpy(p->name, values[F_NAME].text, sizeof(p->name) - 1);
    p->name[sizeof(p->name) - 1] = '\0';
    k->phase_count++;
    return FRAG_OK;
}

static enum frag_err read_record(void *user, const struct json_value *values,
                                 uint64_t where)
{
    struct kineto *k = user;
    const struct field name = field_of(&values[F_NAME]);

    k->records++;
    if (field_is(name, "[memory]"))
        return add_event(k, values, false, where);
    if (field_is(name, "[OutOfMemory]"))
        return add_event(k, values, true, where);
    return is_phase(values) ? add_phase(k, values, where) : FRAG_OK;
}

/* ---- the events of one device, in the order of time ---- */

enum { LIVE, FREED }; /* states of an address */

struct device {
    const struct timeline *t;
    struct frag_build *build;
    struct frag_error *e;
    uint32_t device;
    struct live seen; /* every address of an event, by its state. The slot is
                         the index of the last alloc in t->events */
    uint64_t vanished, unknown, contradictions, other_size; /* for notes */
    frag_size before; /* bytes live before the first event and never freed */
};

static enum frag_err put(const struct device *d, enum frag_entry_kind kind,
                         const struct timeline_event *ev, frag_size size)
{
    const struct frag_entry entry = {
        .kind = kind, .addr = ev->addr, .size = size, .time = ev->time};

    return frag_build_entry(d->build, d->device, &entry, ev->where, d->e);
}

static enum frag_err put_alloc(struct device *d,
                               const struct timeline_event *ev, uint32_t index)
{
    struct live_row *row = live_find(&d->seen, ev->addr);

    if (row && row->state == LIVE) {
        d->vanished++;
        FRAG_TRY(put(d, FRAG_ENTRY_FREE_COMPLETED, ev, 1));
    }
    if (row)
        row->slot = index, row->state = LIVE;
    else if (!live_put(&d->seen, ev->addr, index))
        return FRAG_NOMEM;
    return put(d, FRAG_ENTRY_ALLOC, ev, (frag_size)ev->bytes);
}

/* The builder adds a block to the initial state if no alloc had its address. */
static enum frag_err put_free(struct device *d, const struct timeline_event *ev)
{
    struct live_row *row = live_find(&d->seen, ev->addr);
    const frag_size size = (frag_size)-ev->bytes;

    if (row && row->state == FREED) {
        d->unknown++;
        return FRAG_OK;
    }
    if (row) {
        row->state = FREED;
        d->other_size += (frag_size)d->t->events[row->slot].bytes != size;
    } else {
        if (!live_put(&d->seen, ev->addr, 0))
            return FRAG_NOMEM;
        live_find(&d->seen, ev->addr)->state = FREED;
        d->before -= size < d->before ? size : d->before;
    }
    return put(d, FRAG_ENTRY_FREE_COMPLETED, ev, size);
}

static enum frag_err put_event(struct device *d,
                               const struct timeline_event *ev, uint32_t index)
{
    if (ev->failed)
        return put(d, FRAG_ENTRY_FAILED, ev, (frag_size)ev->bytes);
    return ev->bytes > 0 ? put_alloc(d, ev, index) : put_free(d, ev);
}

/* Returns what the total must have been before the event. */
static frag_size total_before(const struct timeline_event *ev)
{
    return ev->total - (ev->failed ? 0 : (frag_size)ev->bytes);
}

/* The blocks that were live before the first event. Those that are freed later
 * are in the trace already; the builder writes a note about all of them. */
static enum frag_err put_before(const struct device *d, uint64_t where)
{
    if (!d->before)
        return FRAG_OK;
    FRAG_TRY(frag_build_before(d->build, d->device, d->before, where, d->e));
    return frag_build_note(
        d->build,
        "device %" PRIu32 ": %s were live before the profiler began and are "
        "never freed; the file has their sum alone, so they are one block that "
        "is allocated first, and what they and the free memory between them "
        "do to fragmentation is not known",
        d->device, FRAG_SHOW_SIZE(d->before));
}

static enum frag_err note_device(const struct device *d)
{
    const struct frag_build_count notes[] = {
        {d->contradictions,
         "memory events contradict the sum of the allocated bytes that PyTorch "
         "stated with them; events before them are missing or in the wrong "
         "order"},
        {d->vanished, "addresses were allocated again without a free; each was "
                      "freed at its next alloc"},
        {d->other_size, "blocks were freed with another size than that of "
                        "their alloc, which counts"},
        {d->unknown, "frees of addresses that were free already are left out"},
    };

    for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
        if (notes[i].count)
            FRAG_TRY(
                frag_build_note(d->build, "device %" PRIu32 ": %" PRIu64 " %s",
                                d->device, notes[i].count, notes[i].words));
    return FRAG_OK;
}

/* Passes the marks, the events and the notes of one device to the builder. */
static enum frag_err put_events(struct device *d, uint64_t first, uint64_t end)
{
    const struct timeline *t = d->t;

    for (uint64_t i = first; i < end; i++) {
        const struct timeline_event *ev = &t->events[i];
        const struct timeline_event *last = i > first ? ev - 1 : NULL;

        if (!last)
            d->before = ev->has_total && (int64_t)total_before(ev) > 0
                            ? total_before(ev)
                            : 0;
        else if (ev->has_total && last->has_total)
            d->contradictions += total_before(ev) != last->total;
        FRAG_TRY(put_event(d, ev, (uint32_t)i));
    }
    FRAG_TRY(put_before(d, t->events[first].where));
    return note_device(d);
}

/* ---- all devices ---- */

static int by_time(const void *a, const void *b)
{
    const struct timeline_event *x = a, *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->where > y->where) - (x->where < y->where);
}

/* Sorts the events by device and time, and in the order of the file where times
 * are equal, and passes them to the builder. Bytes that were live before the
 * first event of a device are added to its initial state: `total` states their
 * sum. Notes count the events that contradict `total` or each other. */
static enum frag_err timeline_build(struct timeline *t,
                                    struct frag_build *build,
                                    struct frag_error *e)
{
    enum frag_err err = FRAG_OK;
    uint64_t end;

    if (t->count > UINT32_MAX)
        return FRAG_NOMEM;
    if (t->count)
        qsort(t->events, (size_t)t->count, sizeof(*t->events), by_time);
    for (uint64_t i = 0; i < t->count && err == FRAG_OK; i = end) {
        struct device d = {
            .t = t, .build = build, .e = e, .device = t->events[i].device};

        for (end = i; end < t->count && t->events[end].device == d.device;)
            end++;
        err = put_events(&d, i, end);
        live_fini(&d.seen);
    }
    return err;
}

/* ---- the file ---- */

/* The trace is the memory of the GPUs, or that of the CPU if the profile has no
 * other. The notes state which, and what the sizes are. */
static enum frag_err put_notes(const struct kineto *k)
{
    if (k->empty)
        FRAG_TRY(frag_build_note(
            k->build, "%" PRIu64 " memory events of 0 bytes are left out",
            k->empty));
    if (!k->gpu.count)
        return frag_build_note(k->build,
                               "the profile has memory of the CPU only: "
                               "device 0 of the trace is the host");
    if (k->cpu.count)
        FRAG_TRY(frag_build_note(
            k->build,
            "%" PRIu64 " memory events of the CPU are left out: the trace is "
            "the memory of the GPU",
            k->cpu.count));
    return frag_build_note(
        k->build,
        "the sizes of the requests are those of the blocks that PyTorch "
        "granted, rounded up and with rests that were not split off; the "
        "profile does not have what was asked");
}

static enum frag_err put_phases(const struct kineto *k, uint32_t device)
{
    for (uint64_t i = 0; i < k->phase_count; i++) {
        const struct phase *p = &k->phases[i];
        const size_t length = strlen(p->name);

        FRAG_TRY(frag_build_mark(k->build, device, FRAG_MARK_BEGIN, p->begin,
                                 p->name, length, k->e));
        FRAG_TRY(frag_build_mark(k->build, device, FRAG_MARK_END, p->end,
                                 p->name, length, k->e));
    }
    return FRAG_OK;
}

/* Each device has all marks. */
static enum frag_err put_all_phases(const struct kineto *k,
                                    const struct timeline *t)
{
    /* timeline_build sorted the events by device. */
    for (uint64_t i = 0; i < t->count; i++)
        if (!i || t->events[i].device != t->events[i - 1].device)
            FRAG_TRY(put_phases(k, t->events[i].device));
    return FRAG_OK;
}

static enum frag_err put_all(struct kineto *k)
{
    struct timeline *t = k->gpu.count ? &k->gpu : &k->cpu;

    if (!t->count)
        return frag_fail(k->e, FRAG_CORRUPT,
                         "%s:0: expected memory events ([memory]), found none "
                         "among %" PRIu64 " events; profile with "
                         "torch.profiler.profile(profile_memory=True), "
                         "or " FRAG_RECORD_SNAPSHOT,
                         frag_source_name(k->source), k->records);
    FRAG_TRY(put_notes(k));
    FRAG_TRY(timeline_build(t, k->build, k->e));
    return put_all_phases(k, t);
}

static const struct json_schema schema = {
    .record = "traceEvents/[]",
    .fields = paths,
    .field_count = FIELD_COUNT,
    .each = read_record,
};

static enum frag_err kineto_read(struct frag_source *source,
                                 struct frag_build *build,
                                 const struct frag_read_options *opts,
                                 struct frag_error *e)
{
    struct kineto k = {.source = source, .build = build, .e = e};
    enum frag_err err = json_read(source, &schema, opts, &k, e);

    if (err == FRAG_OK)
        err = put_all(&k);
    free(k.cpu.events);
    free(k.gpu.events);
    free(k.phases);
    return err;
}

/* An object whose beginning has the words of Kineto or of any Chrome trace. A
 * file of another program has no [memory] event, which check_count states. */
static bool kineto_recognize(const unsigned char *bytes, size_t count)
{
    static const char *const words[] = {"\"traceEvents\"",
                                        "\"deviceProperties\""};
    const struct field text = field_trimmed(
        field_unmarked((struct field){(const char *)bytes, count}));
    size_t blank = 0;

    while (blank < text.length && strchr(" \t\r\n", text.text[blank]))
        blank++;
    if (blank == text.length || text.text[blank] != '{')
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (field_contains(text, words[i]))
            return true;
    return false;
}

const struct frag_importer frag_importer_kineto = {
    .name = "kineto",
    .summary = "trace of torch.profiler with profile_memory=True (JSON)",
    .made = "torch.profiler.profile(profile_memory=True), then "
            "export_chrome_trace(\"run.json.gz\")",
    .lacks = "streams, sizes of requests (it has those of blocks), stacks, "
             "pools, segments, blocks that were live before the profiler began",
    .note = "a torch.profiler trace has no streams, so all requests are on one "
            "stream and a freed block can be reused at once",
    .recognize = kineto_recognize,
    .read = kineto_read,
};
