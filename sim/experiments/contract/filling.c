/* filling.c - fills devices with blocks that are never freed.
 *
 * If blocks take less than whole quanta, then less is held than the quanta of
 * all live blocks just before the policy takes more memory, or at the latest
 * when the device is full. So each event is judged, and the device is the
 * smallest on which the policy serves a request. A policy that knows the future
 * is not asked for more than fits: it may hold all that it needs from the
 * beginning. The judge shares no code with the bound of a run.
 */
#include "sim/experiments/contract/filling.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/arena/arena.h"
#include "sim/experiments/contract/traffic.h"
#include "sim/replay/replay.h"

/* The device is at most so large, and a run makes at most so many requests. */
#define LARGEST ((frag_size)1 << 40)
#define MOST    ((uint64_t)1 << 19)

/* One run. */
struct filling {
    frag_size quantum;
    struct frag_device_trace trace;
    struct frag_backend *arena;
    frag_size whole;  /* bytes of the live requests in whole quanta */
    frag_size excess; /* most bytes by which they exceeded what was held */
};

static void judge(void *user, uint64_t event, const struct frag_block *block)
{
    struct filling *f = user;
    const frag_size held = frag_arena_used(f->arena);

    if (block)
        f->whole += frag_round_up(f->trace.bytes[event], f->quantum);
    if (f->whole > held && f->whole - held > f->excess)
        f->excess = f->whole - held;
}

/* Runs the trace on a device that counts bytes. Any error is one of the policy.
 */
static enum frag_err run(struct filling *f, const struct contract_subject *s,
                         frag_size capacity, struct frag_error *why)
{
    const struct frag_replay_watch watch = {.user = f, .done = judge};
    struct frag_run out;
    enum frag_err err;

    f->arena = frag_arena_open(&(const struct frag_arena_options){
        .capacity = capacity, .rule = FRAG_RULE_EXACT});
    if (!f->arena)
        return FRAG_NOMEM;
    err = frag_replay(&(const struct frag_replay){.trace = &f->trace,
                                                  .watch = &watch,
                                                  .policy = s->policy,
                                                  .params = s->params,
                                                  .mem = f->arena,
                                                  .stop_at_oom = true},
                      &out, why);
    if (err == FRAG_OK)
        frag_run_free(&out);
    frag_arena_close(f->arena);
    return err == FRAG_OK ? FRAG_OK : FRAG_CONTRACT;
}

/* Fills a device with requests of `least` bytes, which are whole quanta, and a
 * random rest. */
static enum frag_err fill(struct filling *f, const struct contract_subject *s,
                          frag_size least, frag_size capacity,
                          struct frag_error *why)
{
    const frag_size rests = f->quantum > 1 ? f->quantum / 2 : 1;
    const uint64_t full = s->policy->needs & FRAG_NEEDS_FUTURE
                              ? capacity / (least + f->quantum)
                              : capacity / (least + FRAG_ALIGNMENT) + 1,
                   count = full < MOST ? full : MOST;
    uint64_t *bytes = malloc((count + 1) * sizeof(*bytes)), rng = 1;
    uint32_t *id = malloc((count + 1) * sizeof(*id));
    void *zeros = calloc(count + 1, sizeof(frag_stream));
    enum frag_err err = FRAG_NOMEM;

    for (uint32_t i = 0; bytes && id && i < count; i++) {
        bytes[i] = least + 1 + random_next(&rng) % rests;
        id[i] = i;
    }
    f->trace = (struct frag_device_trace){.slots = (uint32_t)count,
                                          .count = count,
                                          .op = zeros,
                                          .id = id,
                                          .bytes = bytes,
                                          .stream = zeros,
                                          .pool = zeros,
                                          .stream_count = 1,
                                          .pool_count = 1};
    if (bytes && id && zeros)
        err = run(f, s, capacity, why);
    free(bytes);
    free(id);
    free(zeros);
    return err;
}

/* Begins with a device that has no room for whole quanta, and doubles it until
 * the policy serves a request; *served says whether it does. */
static enum frag_err fill_smallest(frag_size quantum, frag_size least,
                                   const struct contract_subject *s,
                                   bool *served, struct frag_error *why)
{
    struct filling f = {.quantum = quantum};

    FRAG_TRY(fill(&f, s, least, least + quantum / 2, why));
    for (frag_size size = FRAG_MIB; !f.whole && size <= LARGEST; size *= 2)
        FRAG_TRY(fill(&f, s, least, size, why));
    *served |= f.whole > 0;
    if (!f.excess)
        return FRAG_OK;
    return frag_fail(why, FRAG_CONTRACT,
                     "the quantum is stated as %" PRIu64 " bytes, but live "
                     "requests of %" PRIu64 " to %" PRIu64 " bytes in whole "
                     "quanta exceed the held memory by %" PRIu64 " bytes",
                     quantum, least + 1, least + quantum / 2, f.excess);
}

enum frag_err filling_holds(const struct contract_subject *s,
                            struct frag_error *why)
{
    static const frag_size leasts[] = {0, FRAG_QUANTUM, 2 * FRAG_MIB,
                                       64 * FRAG_MIB};
    struct frag_params *params;
    enum frag_err err = FRAG_OK;
    bool served = false;

    FRAG_TRY(frag_params_read(s->policy, s->params, &params, why));
    for (size_t i = 0; err == FRAG_OK && i < sizeof(leasts) / sizeof(*leasts);
         i++)
        err = fill_smallest(params->quantum, leasts[i], s, &served, why);
    free(params);
    if (err == FRAG_OK && !served)
        err = frag_fail(why, FRAG_CONTRACT,
                        "no request is served, on no device up to 1 TiB");
    return err == FRAG_OK || err == FRAG_NOMEM ? err : FRAG_CONTRACT;
}
