/* verify.c - prints the jobs and event streams for a run on a real device. */
#include "sim/experiments/tune/verify.h"

#include "sim/results/json.h"

enum { ENTRY = 24 }; /* bytes of an event in the stream */

static void put_number(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

/* The codes of the stream; -1: the event is not in the stream. A free is at the
 * event where it completed. */
static const int8_t codes[FRAG_OP_COUNT] = {
    [FRAG_ALLOC] = 0,           [FRAG_FREE] = 1,
    [FRAG_FREE_REQUESTED] = -1, [FRAG_RECORD_STREAM] = -1,
    [FRAG_EMPTY_CACHE] = 2,
};

static void put_event(FILE *out, const struct frag_device_trace *t, uint64_t i)
{
    unsigned char entry[ENTRY];

    if (codes[t->op[i]] < 0)
        return;
    put_number(entry, (uint64_t)codes[t->op[i]], 4);
    put_number(entry + 4, t->op[i] == FRAG_ALLOC ? t->stream[i] : 0, 4);
    put_number(entry + 8, t->id[i], 8);
    put_number(entry + 16, t->bytes[i], 8);
    fwrite(entry, 1, sizeof(entry), out);
}

void tune_verify_events(const struct tune_case *of, FILE *out)
{
    for (uint64_t i = 0; i < of->device->count; i++)
        put_event(out, of->device, i);
}

/* The index of an event of the trace in the stream. */
static uint64_t index_of(const struct frag_device_trace *t, uint64_t event)
{
    uint64_t index = 0;

    for (uint64_t i = 0; i < event; i++)
        index += codes[t->op[i]] >= 0;
    return index;
}

/* The job of a rung: one of several recorded settings is that of the case. */
static void put_job(FILE *out, const char *events, const struct tune_ladder *l,
                    const struct tune_rung *rung, size_t i)
{
    const char *recorded = l->cases[i].trace->settings;
    const char *conf = rung->text ? rung->text : recorded;
    const struct tune_result *predicted = &rung->results[i];
    const frag_size limit = frag_bound_of(l->cases[i].bound, FRAG_BOUND_LIMIT);
    const bool has_oom = predicted->first_oom != FRAG_NEVER;
    struct frag_json j = {.out = out};

    frag_json_object(&j, NULL);
    frag_json_text(&j, "events", events);
    frag_json_text(&j, "conf", conf ? conf : "");
    frag_json_number(&j, "cap", limit == FRAG_UNLIMITED ? 0 : limit);
    frag_json_number(&j, "repeat", 1);
    frag_json_object(&j, "predicted");
    frag_json_number(&j, "peak_reserved", predicted->peak);
    frag_json_count(&j, "first_oom_index",
                    has_oom ? index_of(l->cases[i].device, predicted->first_oom)
                            : UINT64_MAX);
    frag_json_end(&j);
    frag_json_end(&j);
    fputc('\n', out);
}

void tune_verify_jobs(const struct tune_ladder *l, const struct tune_rung *rung,
                      size_t i, const char *events, FILE *out)
{
    put_job(out, events, l, &l->rungs[0], i);
    put_job(out, events, l, rung, i);
}

enum frag_err tune_verify_check(const struct tune_ladder *l,
                                struct frag_error *e)
{
    for (size_t i = 0; i < l->case_count; i++) {
        if (frag_bound_of(l->cases[i].bound, FRAG_BOUND_CAPACITY) !=
            FRAG_UNLIMITED)
            return frag_fail(e, FRAG_UNSUPPORTED,
                             "%s: a job for a real device cannot make the "
                             "device full; pass --process-limit, or leave out "
                             "--verify-with",
                             l->cases[i].name);
        if (l->cases[i].device->pool_count > 1)
            return frag_fail(e, FRAG_UNSUPPORTED,
                             "%s: the trace has private pools, which an event "
                             "stream cannot express; leave out --verify-with",
                             l->cases[i].name);
    }
    return FRAG_OK;
}
