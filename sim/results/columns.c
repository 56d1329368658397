/* columns.c - the tables of columns: name, type, units, meaning and formula of
 * every number in a result. Result files store these texts, so a change of
 * a text changes the bytes of every result file. */
#include "sim/results/columns.h"

#include <math.h>
#include <string.h>

#define SUMMARY(field) offsetof(struct frag_result_row, summary.field)
#define CALLS(call)    SUMMARY(calls) + FRAG_CALL_##call * sizeof(uint64_t)
#define AT_PEAK(part)  SUMMARY(at_peak.part)
#define ROW(field)     offsetof(struct frag_result_row, field)

#define TEXT     FRAG_COLUMN_TEXT
#define COUNT    FRAG_COLUMN_COUNT
#define COUNT32  FRAG_COLUMN_COUNT32
#define OPTIONAL FRAG_COLUMN_OPTIONAL
#define ADDRESS  FRAG_COLUMN_ADDRESS
#define REAL     FRAG_COLUMN_REAL
#define END      FRAG_COLUMN_END

/* clang-format off */
const struct frag_column frag_summary_columns[] = {
    {"trace", TEXT, ROW(trace), "",
     "trace, its file name without folders and suffixes", NULL, NULL},
    {"device", COUNT, ROW(device), "1",
     "device number in the trace", NULL, NULL},
    {"policy", TEXT, ROW(policy), "",
     "policy as it was asked for", NULL, NULL},
    {"params", TEXT, ROW(params), "",
     "its parameters, defaults filled in", NULL, NULL},
    {"capacity_bytes", OPTIONAL, ROW(capacity), "byte",
     "memory the device could provide; none (NaN) if unlimited", NULL, NULL},
    {"backend", TEXT, ROW(backend), "",
     "memory under the policy", NULL, NULL},
    {"events", COUNT, SUMMARY(events), "1",
     "events replayed", NULL, NULL},
    {"peak_requested_bytes", COUNT, SUMMARY(peak_requested), "byte",
     "most bytes that live blocks had asked for; freed ones do not count",
     "max over events of requested", NULL},
    {"peak_allocated_bytes", COUNT, SUMMARY(peak_allocated), "byte",
     "most bytes granted to live blocks", "max over events of allocated", NULL},
    {"peak_active_bytes", COUNT, SUMMARY(peak_active), "byte",
     "most bytes allocated, or freed and not yet reusable", "max over events of active", NULL},
    {"peak_reserved_bytes", COUNT, SUMMARY(peak_reserved), "byte",
     "most bytes taken from the device", "max over events of reserved", NULL},
    {"end_reserved_bytes", COUNT, SUMMARY(end_reserved), "byte",
     "bytes taken from the device after the last event", NULL, NULL},
    {"peak_inactive_split_bytes", COUNT, SUMMARY(peak_inactive_split), "byte",
     "most free bytes in segments that also hold a live block", NULL, NULL},
    {"fragmentation_ratio", REAL, SUMMARY(fragmentation_ratio), "1",
     "fragmentation of the whole run (STAlloc, GMLake: 1 - utilization)",
     "1 - peak_allocated_bytes / peak_reserved_bytes", NULL},
    {"fragmentation_at_peak", REAL, SUMMARY(fragmentation_at_peak), "1",
     "fragmentation at the event of peak reserved",
     "1 - allocated / reserved at peak_reserved_event", NULL},
    {"fragmentation_mean", REAL, SUMMARY(fragmentation_mean), "1",
     "fragmentation, mean over events",
     "mean over events of 1 - allocated / reserved", NULL},
    {"overhead", REAL, SUMMARY(overhead), "1",
     "memory overhead of the whole run (Johnstone and Wilson, measure 4)",
     "peak_reserved_bytes / peak_requested_bytes", NULL},
    {"num_ooms", COUNT, SUMMARY(num_ooms), "1",
     "requests that could not be met", NULL, NULL},
    {"first_oom_event", OPTIONAL, SUMMARY(first_oom_event), "1",
     "index of the first such event, from 0; none (NaN) if all were met", NULL, NULL},
    {"num_alloc_retries", COUNT, SUMMARY(num_alloc_retries), "1",
     "requests not met at first: refused and asked again, or met after "
     "waiting and returning memory", NULL, NULL},
    {"num_segment_alloc", COUNT, CALLS(SEGMENT_ALLOC), "1",
     "segments taken from the device (cudaMalloc)", NULL, NULL},
    {"num_segment_free", COUNT, CALLS(SEGMENT_FREE), "1",
     "segments returned to the device (cudaFree)", NULL, NULL},
    {"num_map", COUNT, CALLS(MAP), "1",
     "ranges mapped (cuMemMap)", NULL, NULL},
    {"num_unmap", COUNT, CALLS(UNMAP), "1",
     "ranges unmapped (cuMemUnmap)", NULL, NULL},
    {"peak_segments", COUNT, SUMMARY(peak_segments), "1",
     "most segments held at once", NULL, NULL},
    {"bytes_moved", COUNT, SUMMARY(bytes_moved), "byte",
     "bytes copied to move live blocks", NULL, NULL},
    {"modelled_device_seconds", REAL, SUMMARY(modelled_device_seconds), "s",
     "time the backend's calls would take by its cost model", NULL, NULL},
    {"ns_per_event", REAL, SUMMARY(ns_per_event), "ns",
     "wall time of the replay loop alone for each event; none (NaN) if not "
     "measured", NULL, NULL},

    {"external_at_peak", REAL, SUMMARY(external_at_peak), "1",
     "external fragmentation at the event of peak reserved",
     "1 - largest free / total free at peak_reserved_event", NULL},
    {"internal_at_peak", REAL, SUMMARY(internal_at_peak), "1",
     "internal fragmentation at the event of peak reserved",
     "1 - requested / allocated at peak_reserved_event", NULL},
    {"overhead_average", REAL, SUMMARY(overhead_average), "1",
     "memory overhead over all events (Johnstone and Wilson, measure 1)",
     "sum over events of reserved / sum over events of requested", NULL},
    {"overhead_at_peak_requested", REAL, SUMMARY(overhead_at_peak_requested), "1",
     "memory overhead at the peak of requested (measure 2)",
     "reserved / requested at the event of peak requested", NULL},
    {"overhead_at_peak_reserved", REAL, SUMMARY(overhead_at_peak_reserved), "1",
     "memory overhead at the peak of reserved (measure 3)",
     "reserved / requested at peak_reserved_event", NULL},
    {"peak_reserved_event", COUNT, SUMMARY(peak_reserved_event), "1",
     "index of the first event of peak reserved, from 0", NULL, NULL},
    {"num_copy", COUNT, CALLS(COPY), "1",
     "copies queued to move live blocks", NULL, NULL},
    {"num_moves", COUNT, SUMMARY(num_moves), "1",
     "live blocks moved to another address", NULL, NULL},
    {"num_stalls", COUNT, SUMMARY(num_stalls), "1",
     "events during which live blocks were moved", NULL, NULL},
    {"num_synchronize", COUNT, CALLS(SYNCHRONIZE), "1",
     "waits for the whole device", NULL, NULL},
    {"at_peak_requested_bytes", COUNT, AT_PEAK(requested), "byte",
     "of peak reserved: asked for by live blocks", NULL, NULL},
    {"at_peak_rounding_bytes", COUNT, AT_PEAK(rounding), "byte",
     "of peak reserved: granted beyond what was asked for", NULL, NULL},
    {"at_peak_pending_bytes", COUNT, AT_PEAK(pending), "byte",
     "of peak reserved: freed, not yet reusable", NULL, NULL},
    {"at_peak_free_here_bytes", COUNT, AT_PEAK(free_here), "byte",
     "of peak reserved: free in the stream and pool that asked", NULL, NULL},
    {"at_peak_free_stream_bytes", COUNT, AT_PEAK(free_stream), "byte",
     "of peak reserved: free in another stream", NULL, NULL},
    {"at_peak_free_pool_bytes", COUNT, AT_PEAK(free_pool), "byte",
     "of peak reserved: free in another pool", NULL, NULL},
    {"at_peak_unusable_bytes", COUNT, AT_PEAK(unusable), "byte",
     "of peak reserved: tails that no request can use", NULL, NULL},
    {"lower_bound_bytes", COUNT, SUMMARY(lower_bound), "byte",
     "least memory that any of the policies compared needs for the requests served",
     "max over events of the sum over live blocks of requested, each rounded up "
     "to quantum_bytes", NULL},
    {"gap_to_bound", REAL, SUMMARY(gap_to_bound), "1",
     "how far peak reserved is above the lower bound",
     "peak_reserved_bytes / lower_bound_bytes - 1", NULL},
    {"optimal", COUNT, SUMMARY(optimal), "1",
     "1 if all were served and none of the policies compared can do it with less, "
     "else 0",
     "peak_reserved_bytes == lower_bound_bytes and num_ooms == 0 and "
     "0 < peak_device_bytes <= lower_bound_bytes, rounded up to units of the device", NULL},
    {"demand_bytes", COUNT, SUMMARY(demand), "byte",
     "least memory that any of the policies compared needs for all requests, "
     "failed ones included",
     "as lower_bound_bytes, over live blocks and failed requests that are not "
     "freed yet", NULL},
    {"device_total_bytes", COUNT, ROW(total), "byte",
     "memory of the device as it reports it", NULL, NULL},
    {"seed", COUNT, ROW(seed), "1",
     "seed of the run", NULL, NULL},
    {"trace_sha256", TEXT, ROW(trace_sha256), "",
     "SHA-256 of the trace's file", NULL, NULL},
    {"start", TEXT, ROW(start), "",
     "how the run began: empty, with the recorded live blocks, or with the "
     "recorded layout adopted", NULL, NULL},
    {"edit", TEXT, ROW(edit), "",
     "edits that `sweep --edit` applied to the trace; empty if there were none",
     NULL, NULL},
    {"process_limit_bytes", OPTIONAL, ROW(limit), "byte",
     "memory limit of the process, which the allocator keeps on a device with "
     "memory enough; none (NaN) if there was none", NULL, NULL},
    {"quantum_bytes", COUNT, SUMMARY(quantum), "byte",
     "unit to which lower_bound_bytes and demand_bytes round requests: the "
     "smallest of the policies compared; 0 before schema 2.3", NULL, NULL},
    {"peak_device_bytes", COUNT, SUMMARY(peak_device), "byte",
     "most memory of the device in use at once, in units of the device (2 MiB); "
     "0 if not known", NULL, NULL},
    {"need_bytes", OPTIONAL, SUMMARY(need), "byte",
     "least bound from which on nothing fails, of the kind that `sweep --need' "
     "names; none (NaN) if there is none, for runs under a bound, and without "
     "the option", NULL, NULL},
    {"capacity", TEXT, ROW(asked), "",
     "capacity as it was asked for, such as 1.05x, 80GiB or inf; empty without "
     "the option, and before schema 3.1", NULL, NULL},
    {NULL, END, 0, NULL, NULL, NULL, NULL},
};

#define POINT(field) offsetof(struct frag_point, field)

/* A time that is not recorded is 0 and not NaN: nanoseconds since the epoch
 * exceed 2^53, so a double cannot store them. */

const struct frag_column frag_series_columns[] = {
    {"event", COUNT, POINT(event), "1",
     "first event of the bucket, from 0", NULL, NULL},
    {"time", COUNT, POINT(time), "ns",
     "time of that event since the epoch; 0 if not recorded", NULL, NULL},
    {"requested", COUNT, POINT(requested), "byte",
     "bytes that live blocks asked for, after the bucket's last event", NULL, NULL},
    {"requested_max", COUNT, POINT(requested_max), "byte",
     "most in the bucket", "max over the bucket's events of requested", NULL},
    {"allocated", COUNT, POINT(allocated), "byte",
     "bytes granted to live blocks, after the bucket's last event", NULL, NULL},
    {"allocated_min", COUNT, POINT(allocated_min), "byte",
     "fewest in the bucket", "min over the bucket's events of allocated", NULL},
    {"allocated_max", COUNT, POINT(allocated_max), "byte",
     "most in the bucket", "max over the bucket's events of allocated", NULL},
    {"active", COUNT, POINT(active), "byte",
     "bytes allocated, or freed and not yet reusable", NULL, NULL},
    {"active_max", COUNT, POINT(active_max), "byte",
     "most in the bucket", "max over the bucket's events of active", NULL},
    {"reserved", COUNT, POINT(reserved), "byte",
     "bytes taken from the device, after the bucket's last event", NULL, NULL},
    {"reserved_min", COUNT, POINT(reserved_min), "byte",
     "fewest in the bucket", "min over the bucket's events of reserved", NULL},
    {"reserved_max", COUNT, POINT(reserved_max), "byte",
     "most in the bucket", "max over the bucket's events of reserved", NULL},
    {"largest_free", COUNT, POINT(largest_free), "byte",
     "largest free run inside one segment, after the last event", NULL, NULL},
    {NULL, END, 0, NULL, NULL, NULL, NULL},
};

#define OOM(field) offsetof(struct frag_oom, field)

const struct frag_column frag_oom_columns[] = {
    {"event", COUNT, OOM(event), "1", "index of the event, from 0", NULL, NULL},
    {"time", COUNT, OOM(time), "ns",
     "its time since the epoch; 0 if not recorded", NULL, NULL},
    {"stream", COUNT32, OOM(stream), "1",
     "stream that asked, index in the trace's streams", NULL, NULL},
    {"pool", COUNT32, OOM(pool), "1",
     "pool that asked, index in the trace's pools", NULL, NULL},
    {"request", COUNT, OOM(bytes), "byte", "bytes asked for", NULL, NULL},
    {"requested", COUNT, OOM(requested), "byte",
     "bytes that live blocks had asked for", NULL, NULL},
    {"allocated", COUNT, OOM(allocated), "byte",
     "bytes granted to live blocks", NULL, NULL},
    {"active", COUNT, OOM(active), "byte",
     "bytes allocated, or freed and not yet reusable", NULL, NULL},
    {"reserved", COUNT, OOM(reserved), "byte",
     "bytes taken from the device", NULL, NULL},
    {"total_free", COUNT, OOM(total_free), "byte",
     "reserved and not active", "reserved - active", NULL},
    {"largest_free", COUNT, OOM(largest_free), "byte",
     "largest free run inside one segment", NULL, NULL},
    {"part_requested", COUNT, OOM(breakdown.requested), "byte",
     "of reserved: asked for by live blocks", NULL, NULL},
    {"part_rounding", COUNT, OOM(breakdown.rounding), "byte",
     "of reserved: granted beyond what was asked for", NULL, NULL},
    {"part_pending", COUNT, OOM(breakdown.pending), "byte",
     "of reserved: freed, not yet reusable", NULL, NULL},
    {"part_free_here", COUNT, OOM(breakdown.free_here), "byte",
     "of reserved: free in the stream and pool that asked", NULL, NULL},
    {"part_free_stream", COUNT, OOM(breakdown.free_stream), "byte",
     "of reserved: free in another stream", NULL, NULL},
    {"part_free_pool", COUNT, OOM(breakdown.free_pool), "byte",
     "of reserved: free in another pool", NULL, NULL},
    {"part_unusable", COUNT, OOM(breakdown.unusable), "byte",
     "of reserved: tails that no request can use", NULL, NULL},
    {NULL, END, 0, NULL, NULL, NULL, NULL},
};

#define SEGMENT(field) offsetof(struct frag_segment_row, field)

const struct frag_column frag_segment_columns[] = {
    {"address", ADDRESS, SEGMENT(addr), "1", "first address", NULL, NULL},
    {"size", COUNT, SEGMENT(size), "byte", "bytes from there", NULL, NULL},
    {"allocated", COUNT, SEGMENT(allocated), "byte",
     "bytes granted to live blocks in it", NULL, NULL},
    {"blocks", COUNT32, SEGMENT(blocks), "1", "live blocks in it", NULL, NULL},
    {"at", COUNT, SEGMENT(at), "1",
     "when: the event of an OOM, or the number of events at the end", NULL, NULL},
    {"kind", COUNT32, SEGMENT(kind), "1",
     "0 a segment, 1 a mapped range", NULL, NULL},
    {NULL, END, 0, NULL, NULL, NULL, NULL},
};
/* clang-format on */

double frag_optional_real(uint64_t n)
{
    return n == UINT64_MAX ? NAN : (double)n;
}

bool frag_optional_count(double x, uint64_t *n)
{
    if (isnan(x) || x == -1)
        *n = UINT64_MAX;
    else if (x >= 0 && x <= 0x1p63 && x == floor(x))
        *n = (uint64_t)x;
    else
        return false;
    return true;
}

uint64_t frag_column_number(const struct frag_column *c, const void *row)
{
    const char *at = (const char *)row + c->offset;
    struct frag_bound bound;
    uint64_t value;
    uint32_t narrow;
    uint16_t half;

    switch (c->kind) {
    case FRAG_COLUMN_NOT:
        return !*(const bool *)at;
    case FRAG_COLUMN_BOOL:
    case FRAG_COLUMN_WORD8:
        return *(const bool *)at;
    case FRAG_COLUMN_COUNT16:
        memcpy(&half, at, sizeof(half));
        return half;
    case FRAG_COLUMN_DEVICE:
    case FRAG_COLUMN_COUNT32:
    case FRAG_COLUMN_WORD:
        memcpy(&narrow, at, sizeof(narrow));
        return narrow == UINT32_MAX && c->kind == FRAG_COLUMN_DEVICE
                   ? UINT64_MAX
                   : narrow;
    case FRAG_COLUMN_CAPACITY:
    case FRAG_COLUMN_LIMIT:
        memcpy(&bound, at, sizeof(bound));
        return frag_bound_of(bound, c->kind == FRAG_COLUMN_LIMIT
                                        ? FRAG_BOUND_LIMIT
                                        : FRAG_BOUND_CAPACITY);
    default:
        memcpy(&value, at, sizeof(value));
        return value || c->kind != FRAG_COLUMN_POSITIVE ? value : UINT64_MAX;
    }
}

double frag_column_real(const struct frag_column *c, const void *row)
{
    double x;

    memcpy(&x, (const char *)row + c->offset, sizeof(x));
    return x;
}

const char *frag_column_text(const struct frag_column *c, const void *row)
{
    const char *at = (const char *)row + c->offset, *text;

    if (c->words)
        return c->words[frag_column_number(c, row)];
    if (c->kind == FRAG_COLUMN_CHARS)
        return at;
    if (c->kind == FRAG_COLUMN_FILLED)
        return *at ? at : NULL;
    memcpy(&text, at, sizeof(text));
    return text;
}

size_t frag_column_count(const struct frag_column *columns)
{
    size_t n = 0;

    while (columns[n].kind != FRAG_COLUMN_END)
        n++;
    return n;
}

static const char *edit_of(const struct frag_run_identity *id)
{
    return id->trace.edit ? id->trace.edit : "";
}

struct frag_result_row frag_result_row(const struct frag_run_identity *id,
                                       const struct frag_run *run)
{
    return (struct frag_result_row){
        .trace = id->trace.name,
        .policy = id->policy,
        .params = run->params,
        .backend = id->backend,
        .trace_sha256 = id->trace.sha256,
        .edit = edit_of(id),
        .asked = id->capacity ? id->capacity : "",
        .start = run->summary.start < FRAG_START_COUNT
                     ? frag_start_names[run->summary.start]
                     : "",
        .device = id->trace.device,
        .capacity = frag_bound_of(id->bound, FRAG_BOUND_CAPACITY),
        .limit = frag_bound_of(id->bound, FRAG_BOUND_LIMIT),
        .total = id->total,
        .seed = id->seed,
        .summary = run->summary,
    };
}

int frag_results_order(const struct frag_run_identity *a, const char *params_a,
                       const struct frag_run_identity *b, const char *params_b)
{
    const int orders[] = {
        strcmp(a->trace.name, b->trace.name),
        strcmp(a->trace.path, b->trace.path),
        strcmp(a->trace.sha256, b->trace.sha256),
        strcmp(edit_of(a), edit_of(b)),
        frag_order(a->trace.events, b->trace.events),
        frag_order(a->trace.device, b->trace.device),
        strcmp(a->policy, b->policy),
        strcmp(params_a, params_b),
        frag_bound_order(a->bound, b->bound),
        frag_order(a->total, b->total),
        strcmp(a->backend, b->backend),
        frag_order(a->seed, b->seed),
        frag_order(a->stopped_at_oom, b->stopped_at_oom),
    };

    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
        if (orders[i])
            return orders[i];
    return 0;
}
