/* contract.c - the properties of a policy: runs scripts of requests, replays
 * generated traces, reads parameters. */
#include "sim/experiments/contract/contract.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/arena/arena.h"
#include "sim/experiments/contract/filling.h"
#include "sim/experiments/contract/traffic.h"
#include "sim/replay/replay.h"
#include "traces/gen/generator.h"

enum { STEPS = 1200, SEEDS = 3 };

/* Of the small device. The requests of a script need up to twice as much. */
#define CAPACITY (96 * FRAG_MIB)

/* The memory of a test. */
struct contract_bench {
    struct script script;
    struct traffic a, b;
};

static const struct traffic_options small_device = {.capacity = CAPACITY,
                                                    .scale = 1};
static const struct traffic_options large_device = {.scale = 1};

/* ------------------------------------------------------- scripts --- */

static enum frag_err lacks(struct frag_error *why, const char *fault,
                           uint64_t seed, size_t step)
{
    return frag_fail(why, FRAG_CONTRACT,
                     "%s (random requests %" PRIu64 ", step %zu)", fault, seed,
                     step);
}

static enum frag_err open_traffic(struct traffic *t,
                                  const struct contract_subject *s,
                                  const struct traffic_options *opts,
                                  struct frag_error *why)
{
    const enum frag_err err = traffic_open(t, s->policy, s->params, opts);

    if (err == FRAG_OK || err == FRAG_NOMEM)
        return err;
    return frag_fail(why, FRAG_CONTRACT, "the policy cannot be opened: %s",
                     frag_err_text(err));
}

/* Runs steps [0, to) of the script and closes; the answers stay in t. */
static enum frag_err run(struct contract_bench *b, struct traffic *t,
                         const struct contract_subject *s,
                         const struct traffic_options *opts, uint64_t seed,
                         size_t to, struct frag_error *why)
{
    const char *fault;
    size_t step;

    FRAG_TRY(open_traffic(t, s, opts, why));
    step = traffic_run(t, &b->script, 0, to);
    fault = traffic_close(t);
    return fault ? lacks(why, fault, seed, step) : FRAG_OK;
}

static enum frag_err blocks_are_apart(struct contract_bench *b,
                                      const struct contract_subject *s,
                                      struct frag_error *why)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        script_make(&b->script, seed, STEPS, 0);
        FRAG_TRY(run(b, &b->a, s, &small_device, seed, b->script.count, why));
        FRAG_TRY(run(b, &b->a, s, &large_device, seed, b->script.count, why));
    }
    return FRAG_OK;
}

static enum frag_err closing_returns_all(struct contract_bench *b,
                                         const struct contract_subject *s,
                                         struct frag_error *why)
{
    enum { STRIDE = 113, SEED = 5 };

    script_make(&b->script, SEED, STEPS, 0);
    for (size_t stop = 0; stop < STEPS; stop += STRIDE)
        FRAG_TRY(run(b, &b->a, s, &small_device, SEED, stop, why));
    return FRAG_OK;
}

/* All blocks are freed at the end of a script. */
static enum frag_err trim_returns_all(struct contract_bench *b,
                                      const struct contract_subject *s,
                                      struct frag_error *why)
{
    struct traffic *t = &b->a;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const char *fault;
        size_t step;

        script_make(&b->script, seed, STEPS, 0);
        FRAG_TRY(open_traffic(t, s, &small_device, why));
        step = traffic_run(t, &b->script, 0, b->script.count);
        s->policy->trim(&t->heap);
        if (!t->fault && frag_arena_used(t->arena))
            t->fault = "trim keeps memory that no block needs";
        fault = traffic_close(t);
        if (fault)
            return lacks(why, fault, seed, step);
    }
    return FRAG_OK;
}

/* Only one seed, since the checks read every page of a span. */
static enum frag_err check_finds_nothing(struct contract_bench *b,
                                         const struct contract_subject *s,
                                         struct frag_error *why)
{
    struct traffic *t = &b->a;
    const char *fault, *found = NULL;
    size_t step;

    script_make(&b->script, 1, STEPS, 0);
    FRAG_TRY(open_traffic(t, s, &small_device, why));
    for (step = 0; step < b->script.count && !found && !t->fault; step++) {
        traffic_run(t, &b->script, step, step + 1);
        found = s->policy->check(&t->heap);
    }
    fault = traffic_close(t);
    return found || fault ? lacks(why, found ? found : fault, 1, step)
                          : FRAG_OK;
}

static bool has_trim(const struct frag_policy *policy)
{
    return policy->trim != NULL;
}

static bool has_check(const struct frag_policy *policy)
{
    return policy->check != NULL;
}

/* The first step at which the answers differ, or count. */
static size_t first_difference(const struct answer *a, const struct answer *b,
                               size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        if (a[i].err != b[i].err || a[i].birth != b[i].birth ||
            a[i].at != b[i].at || a[i].size != b[i].size ||
            a[i].used != b[i].used)
            break;
    return i;
}

static enum frag_err compare(struct contract_bench *b,
                             const struct contract_subject *s,
                             const struct traffic_options *other,
                             const char *fault, struct frag_error *why)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        size_t same;

        script_make(&b->script, seed, STEPS, 0);
        FRAG_TRY(run(b, &b->a, s, &small_device, seed, b->script.count, why));
        FRAG_TRY(run(b, &b->b, s, other, seed, b->script.count, why));
        same = first_difference(b->a.answers, b->b.answers, b->script.count);
        if (same < b->script.count)
            return lacks(why, fault, seed, same);
    }
    return FRAG_OK;
}

static enum frag_err answers_repeat(struct contract_bench *b,
                                    const struct contract_subject *s,
                                    struct frag_error *why)
{
    return compare(b, s, &small_device, "the second run answers differently",
                   why);
}

static enum frag_err names_do_not_matter(struct contract_bench *b,
                                         const struct contract_subject *s,
                                         struct frag_error *why)
{
    const struct traffic_options renamed = {
        .capacity = CAPACITY, .scale = 1, .mask = 0x5a5a5a5b};

    return compare(b, s, &renamed,
                   "with other owners in the requests, the answers differ",
                   why);
}

/* ------------------------------------------------- a full device --- */

static bool ends_the_run(enum frag_err err)
{
    return err != FRAG_OK && err != FRAG_OOM;
}

/* Requests more than the small device has between two small requests. Returns
 * the fault, or NULL. */
static const char *overfill(struct traffic *t)
{
    static const struct step small = {.id = 0, .size = 5 * FRAG_KIB},
                             large = {.id = 1, .size = 1024 * FRAG_GIB},
                             next = {.id = 2, .size = 7 * FRAG_KIB};

    if (ends_the_run(traffic_step(t, &small)))
        return "a request of 5 KiB ends the run";
    if (traffic_step(t, &large) != FRAG_OOM)
        return "a device of 96 MiB is asked for 1 TiB, and the answer is no "
               "OOM";
    if (ends_the_run(traffic_step(t, &next)))
        return "the request after an OOM ends the run";
    return traffic_judge(t);
}

static enum frag_err large_request_is_refused(struct contract_bench *b,
                                              const struct contract_subject *s,
                                              struct frag_error *why)
{
    const char *fault;

    FRAG_TRY(open_traffic(&b->a, s, &small_device, why));
    b->a.fault = overfill(&b->a);
    fault = traffic_close(&b->a);
    return fault ? frag_fail(why, FRAG_CONTRACT, "%s", fault) : FRAG_OK;
}

/* The k-th call that the policy makes on the device after its init is refused
 * once, for each k. */
static enum frag_err refusals_do_no_harm(struct contract_bench *b,
                                         const struct contract_subject *s,
                                         struct frag_error *why)
{
    enum { SEED = 9, SHORT = 300, REFUSALS = 100 };
    struct traffic *t = &b->a;

    script_make(&b->script, SEED, SHORT, 0);
    for (uint64_t k = 1; k <= REFUSALS; k++) {
        const char *fault;
        bool refused;
        size_t step;

        FRAG_TRY(open_traffic(t, s, &large_device, why));
        t->mem.fail_at = t->mem.calls + k;
        step = traffic_run(t, &b->script, 0, b->script.count);
        refused = t->mem.calls >= t->mem.fail_at;
        fault = traffic_close(t);
        if (fault)
            return frag_fail(why, FRAG_CONTRACT,
                             "%s (random requests %d, step %zu; the device "
                             "refused call %" PRIu64 ")",
                             fault, SEED, step, k);
        if (!refused)
            break;
    }
    return FRAG_OK;
}

/* ------------------------------------------------------- replays --- */

/* Any error of the replay is one of the policy: the ledger is small. */
static enum frag_err replay(const struct contract_subject *s,
                            const struct frag_device_trace *trace,
                            frag_size capacity, struct frag_error *why)
{
    struct frag_backend *arena = frag_arena_open(
        &(const struct frag_arena_options){.capacity = capacity});
    struct frag_run out;
    enum frag_err err;

    if (!arena)
        return FRAG_NOMEM;
    err = frag_replay(&(const struct frag_replay){.trace = trace,
                                                  .policy = s->policy,
                                                  .params = s->params,
                                                  .mem = arena,
                                                  .check = true,
                                                  .repeat = 2},
                      &out, why);
    frag_arena_close(arena);
    if (err != FRAG_OK)
        return FRAG_CONTRACT;
    if (out.summary.gap_to_bound < 0)
        err = frag_fail(why, FRAG_CONTRACT,
                        "it reserves %" PRIu64 " bytes, less than the lower "
                        "bound of %" PRIu64 " bytes with its quantum",
                        out.summary.peak_reserved, out.summary.lower_bound);
    frag_run_free(&out);
    return err;
}

static enum frag_err ledger_accepts(struct contract_bench *b,
                                    const struct contract_subject *s,
                                    struct frag_error *why)
{
    static const struct {
        const char *generator, *params;
        frag_size capacity; /* of the small device */
    } rows[] = {
        {"stationary", "allocs=3000,live=100,spread=1,streams=3",
         80 * FRAG_MIB},
        {"training", "steps=3", FRAG_GIB},
    };

    (void)b;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_trace *trace;
        enum frag_err err;

        FRAG_TRY(frag_generate(frag_generator_find(rows[i].generator),
                               rows[i].params, 1, &trace, why));
        err = replay(s, trace->devices, FRAG_UNLIMITED, why);
        FRAG_THEN(err, replay(s, trace->devices, rows[i].capacity, why));
        frag_trace_close(trace);
        FRAG_TRY(err);
    }
    return FRAG_OK;
}

static enum frag_err nothing_is_served(struct contract_bench *b,
                                       const struct contract_subject *s,
                                       struct frag_error *why)
{
    const struct frag_device_trace nothing = {.count = 0};

    (void)b;
    return replay(s, &nothing, FRAG_UNLIMITED, why);
}

static enum frag_err quantum_is_kept(struct contract_bench *b,
                                     const struct contract_subject *s,
                                     struct frag_error *why)
{
    (void)b;
    return filling_holds(s, why);
}

/* ---------------------------------------------------- parameters --- */

/* Words that no policy takes for parameters. */
static const char *const foreign[] = {"no_such_parameter=1",
                                      "no_such_parameter"};

static enum frag_err read_params(const struct frag_policy *policy,
                                 const char *text, struct frag_error *e)
{
    struct frag_params *params;
    const enum frag_err err = frag_params_read(policy, text, &params, e);

    if (err == FRAG_OK)
        free(params);
    return err;
}

static enum frag_err must_refuse(const struct frag_policy *policy,
                                 const char *text, struct frag_error *why)
{
    struct frag_error e = {""};
    const enum frag_err err = read_params(policy, text, &e);

    if (err == FRAG_INVALID && *e.text)
        return FRAG_OK;
    return frag_fail(why, FRAG_CONTRACT,
                     err == FRAG_INVALID ? "\"%s\" is refused without a message"
                                         : "\"%s\" is not refused",
                     text);
}

/* A word that is no value is refused. */
static enum frag_err check_param(const struct frag_policy *policy,
                                 const struct frag_param *p,
                                 struct frag_error *why)
{
    char text[512];

    snprintf(text, sizeof(text), "%s=no such value", p->name);
    return must_refuse(policy, text, why);
}

/* The text that describes all parameters has the same meaning when it is read
 * again. */
static enum frag_err reads_back(const struct contract_subject *s,
                                struct frag_error *why)
{
    struct frag_params *once, *twice;
    enum frag_err err;

    FRAG_TRY(frag_params_read(s->policy, s->params, &once, why));
    err = frag_params_read(s->policy, once->text, &twice, why);
    if (err == FRAG_OK) {
        if (strcmp(once->text, twice->text) != 0)
            err = frag_fail(why, FRAG_CONTRACT,
                            "\"%.200s\" is described as \"%.200s\"", once->text,
                            twice->text);
        free(twice);
    }
    free(once);
    return err;
}

static enum frag_err check_params(const struct contract_subject *s,
                                  struct frag_error *why)
{
    const struct frag_policy *policy = s->policy;

    FRAG_TRY(frag_policy_check(policy, why));
    for (const struct frag_param *p = policy->params;
         !policy->configure && p && p->name; p++)
        FRAG_TRY(check_param(policy, p, why));
    for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
        FRAG_TRY(must_refuse(policy, foreign[i], why));
    return reads_back(s, why);
}

static enum frag_err parameters_are_sound(struct contract_bench *b,
                                          const struct contract_subject *s,
                                          struct frag_error *why)
{
    const enum frag_err err = check_params(s, why);

    (void)b;
    return err == FRAG_OK || err == FRAG_NOMEM ? err : FRAG_CONTRACT;
}

/* ----------------------------------------------------- the table --- */

const struct contract_property contract_properties[] = {
    {"parameters are complete, and wrong ones are refused",
     parameters_are_sound, NULL},
    {"an empty trace is served", nothing_is_served, NULL},
    {"blocks are aligned, inside held memory, and do not overlap",
     blocks_are_apart, NULL},
    {"the ledger accepts replays of generated traces", ledger_accepts, NULL},
    {"blocks take whole quanta of held memory", quantum_is_kept, NULL},
    {"a request that the device cannot meet is an OOM",
     large_request_is_refused, NULL},
    {"a refused device call harms no live block", refusals_do_no_harm, NULL},
    {"trim returns all memory after the last free", trim_returns_all, has_trim},
    {"its own check finds nothing after each call", check_finds_nothing,
     has_check},
    {"closing returns all memory at any time", closing_returns_all, NULL},
    {"the same calls have the same answers", answers_repeat, NULL},
    {"the owners of blocks do not matter", names_do_not_matter, NULL},
    {NULL, NULL, NULL},
};

bool contract_applies(const struct contract_property *property,
                      const struct frag_policy *policy)
{
    return !property->has || property->has(policy);
}

enum frag_err contract_test(const struct contract_property *property,
                            const struct contract_subject *s,
                            struct frag_error *why)
{
    struct contract_bench *bench = malloc(sizeof(*bench));
    enum frag_err err;

    if (!bench)
        return frag_no_memory(why, "the test");
    err = property->test(bench, s, why);
    free(bench);
    return err;
}
