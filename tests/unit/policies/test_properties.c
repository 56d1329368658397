/* test_properties.c - tests the contract, and further properties, of every
 * registered policy under random traffic, on an arena that is as hostile as a
 * device can be: segments touch, and addresses never come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/experiments/contract/contract.h"
#include "sim/experiments/contract/traffic.h"
#include "tests/support/subjects.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 1200, SEEDS = FRAG_SANITIZED ? 1 : 3 };

static const frag_size CAPACITY = 96 * FRAG_MIB;

static const struct setting settings[] = {
    {"torch", "expandable_segments:True"},
    {"torch", "max_split_size_mb:32,garbage_collection_threshold:0.6"},
    {"torch", "roundup_power2_divisions:4"},
    {"first_fit", "segment=2MiB"},
    {"best_fit", "segment=64MiB"},
    {"best_fit", "segment=2MiB"},
    {"buddy", "segment=2MiB"},
    {"tlsf", "segment=2MiB,second_levels=1"},
    {"tlsf", "segment=64MiB,second_levels=8"},
    {"size_class", "subdivisions=1"},
    {"size_class", "segment=512,subdivisions=64"},
    {"bfc", "region=512KiB,split=64KiB,gc=no"},
    {"expandable", "page=6MiB,span=256MiB"},
    {"remap", "budget=0"},
    {"stitch", "fragment=512,reuse=1,pool=0"},
    {"stitch", "fragment=6MiB,reuse=2"},
    {"remap", "budget=2,span=96MiB"},
    {"remap", "slack=0"},
    {"compact", "threshold=1,span=96MiB"},
    {"plan_online", "rest=expandable"},
    {"rmm_pool", "initial=32MiB"},
    {"rmm_arena", "fraction=1"},
    {"rmm_binning", "smallest=256B,largest=256B,blocks=1"},
    {"rmm_binning", "smallest=4KiB,largest=1MiB,blocks=8"},
    {"cuda_async", "page=2MiB,sync=7,threshold=8MiB"},
    {"cuda_async", "page=4MiB,opportunistic=no"},
    {"cuda_async", "run_ahead=9,internal=no,retry=yes"},
    {NULL, NULL},
};

static void fail_at(const struct subject *s, const char *fault, uint64_t seed,
                    size_t step)
{
    char text[128];

    fail_msg("%s: %s (seed %llu, step %zu)", subject_text(s, text), fault,
             (unsigned long long)seed, step);
}

/* Runs a whole script and closes; the answers stay in t. */
static void run_script(struct traffic *t, const struct subject *s,
                       const struct script *script, uint64_t seed,
                       const struct traffic_options *opts)
{
    const char *fault;
    size_t step;

    assert_int_equal(traffic_open(t, s->policy, s->params, opts), FRAG_OK);
    step = traffic_run(t, script, 0, script->count);
    fault = traffic_close(t);
    if (fault)
        fail_at(s, fault, seed, step);
}

/* The scripts of the contract need more memory than its small device has. */
static void random_traffic_fills_the_device(void **state)
{
    static struct script script;
    static struct traffic t;
    const struct traffic_options opts = {.capacity = CAPACITY, .scale = 1};

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        script_make(&script, seed, STEPS, 0);
        run_script(&t, *state, &script, seed, &opts);
        assert_true(t.ooms > 0);
    }
}

/* The first step at which the answers differ, or count. */
static size_t first_difference(const struct answer *a, const struct answer *b,
                               size_t count, frag_size scale)
{
    size_t i;

    for (i = 0; i < count; i++)
        if (a[i].err != b[i].err || a[i].birth != b[i].birth ||
            a[i].at * scale != b[i].at || a[i].size * scale != b[i].size ||
            a[i].used * scale != b[i].used)
            break;
    return i;
}

static void check_same(const struct subject *s, const struct subject *other,
                       const struct traffic_options *opts,
                       const struct traffic_options *others, frag_size unit,
                       const char *fault)
{
    static struct script script;
    static struct traffic a, b;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        size_t same;

        script_make(&script, seed, STEPS, 0);
        for (size_t i = 0; i < script.count; i++)
            script.steps[i].size = frag_round_up(script.steps[i].size, unit);
        run_script(&a, s, &script, seed, opts);
        run_script(&b, other, &script, seed, others);
        same = first_difference(a.answers, b.answers, script.count,
                                others->scale / opts->scale);
        if (same < script.count)
            fail_at(s, fault, seed, same);
    }
}

/* The resolved parameters with every size twice as large. */
static void double_sizes(const struct subject *s, char *text, size_t room)
{
    struct frag_params *read;
    char resolved[256];
    struct frag_error e;
    size_t used = 0;

    assert_int_equal(frag_params_read(s->policy, s->params, &read, &e),
                     FRAG_OK);
    snprintf(resolved, sizeof(resolved), "%s", read->text);
    free(read);
    text[0] = '\0';
    for (const struct frag_param *p = s->policy->params; p && p->name; p++) {
        const size_t length = strlen(p->name);
        const char *at = resolved;
        char value[64];
        frag_size size;

        while (strncmp(at, p->name, length) || at[length] != '=')
            at = strchr(at, ',') + 1;
        at += length + 1;
        snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, ","), at);
        if (p->kind == FRAG_PARAM_SIZE &&
            frag_size_parse(value, &size) == FRAG_OK && size != FRAG_UNLIMITED)
            snprintf(value, sizeof(value), "%llu",
                     (unsigned long long)(2 * size));
        used += (size_t)snprintf(text + used, room - used, "%s%s=%s",
                                 used ? "," : "", p->name, value);
    }
}

/* For policies whose sizes are all parameters: policies with their own grammar
 * of settings contain constants, and plan_online passes no sizes to the policy
 * of its rest. */
static void doubling_all_sizes_doubles_the_picture(void **state)
{
    const struct traffic_options opts = {.scale = 1};
    const struct traffic_options doubled = {.scale = 2};
    const struct subject *s = *state;
    char params[512];
    const struct subject other = {s->policy, params};

    if (s->policy->configure || s->policy == frag_policy_find("plan_online"))
        skip();
    double_sizes(s, params, sizeof(params));
    check_same(s, &other, &opts, &doubled, FRAG_QUANTUM,
               "doubling changes the picture");
}

/* While at most n blocks of one size are live, a policy holds at most the
 * memory of n new blocks. This does not hold if trim releases parts of
 * segments, since granules stay half in use. */
static void one_size_leaves_no_external_waste(void **state)
{
    static const frag_size sizes[] = {1,
                                      512,
                                      700,
                                      96 * FRAG_KIB,
                                      FRAG_MIB,
                                      FRAG_MIB + FRAG_MIB / 2,
                                      3 * FRAG_MIB,
                                      12 * FRAG_MIB};
    static struct script script;
    static struct traffic t;
    static frag_size fresh[MAX_LIVE + 1];
    const struct traffic_options opts = {.scale = 1, .one_stream = true};
    const struct subject *s = *state;

    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
        size_t live = 0, peak = 0;

        assert_int_equal(traffic_open(&t, s->policy, s->params, &opts),
                         FRAG_OK);
        for (uint32_t i = 0; i < MAX_LIVE; i++) {
            const struct step step = {.id = i, .size = sizes[k]};

            assert_int_equal(traffic_step(&t, &step), FRAG_OK);
            fresh[i + 1] = t.mem.used;
        }
        assert_null(traffic_close(&t));

        script_make(&script, k, STEPS, sizes[k]);
        for (size_t i = 0; i < script.count; i++)
            if (script.steps[i].kind == STEP_TRIM)
                script.steps[i].kind = STEP_NONE;
        run_script(&t, s, &script, k, &opts);
        for (size_t i = 0; i < script.count; i++) {
            live += script.steps[i].kind == STEP_ALLOC;
            live -= script.steps[i].kind == STEP_FREE;
            peak = live > peak ? live : peak;
            if (t.answers[i].used > fresh[peak])
                fail_at(s, "holes of the only size were not used", k, i);
        }
    }
}

/* ---- a fit against a map of bytes ---- */

enum { UNIT = 512, MAP_SEGMENTS = 256, MAP_UNITS = 64, SEGMENT_UNITS = 32 };

/* A map of all memory, a byte a unit, and the choice among its holes. */
struct map {
    size_t count;
    struct {
        frag_addr addr;
        size_t units;
        char used[MAP_UNITS];
    } segments[MAP_SEGMENTS];
    frag_addr rover; /* where the last block ended */
};

typedef bool better(const struct map *m, const struct frag_block *hole,
                    const struct frag_block *best);

static bool is_lower(const struct map *m, const struct frag_block *hole,
                     const struct frag_block *best)
{
    (void)m;
    return hole->addr < best->addr;
}

static bool is_tighter(const struct map *m, const struct frag_block *hole,
                       const struct frag_block *best)
{
    return hole->size < best->size ||
           (hole->size == best->size && is_lower(m, hole, best));
}

static bool is_next(const struct map *m, const struct frag_block *hole,
                    const struct frag_block *best)
{
    const bool ahead = hole->addr >= m->rover;

    return ahead != (best->addr >= m->rover) ? ahead : is_lower(m, hole, best);
}

static frag_addr choose(const struct map *m, size_t units, better *is_better)
{
    struct frag_block best = {0};

    for (size_t i = 0; i < m->count; i++) {
        size_t run = 0;

        for (size_t u = 0; u <= m->segments[i].units; u++) {
            struct frag_block hole;

            if (u < m->segments[i].units && !m->segments[i].used[u]) {
                run++;
                continue;
            }
            hole = (struct frag_block){.addr = m->segments[i].addr +
                                               (u - run) * UNIT,
                                       .size = run * UNIT};
            if (run >= units && (!best.size || is_better(m, &hole, &best)))
                best = hole;
            run = 0;
        }
    }
    return best.addr;
}

static void mark(struct map *m, const struct frag_block *b, char used)
{
    for (size_t i = 0; i < m->count; i++)
        for (size_t u = 0; u < m->segments[i].units; u++) {
            const frag_addr addr = m->segments[i].addr + u * UNIT;

            if (addr >= b->addr && addr < b->addr + b->size)
                m->segments[i].used[u] = used;
        }
}

/* The map learns of the segment that a block without a hole was put into. */
static void add_segment(struct map *m, const struct faulty *mem)
{
    const struct faulty_memory *h = &mem->held[mem->count - 1];

    m->segments[m->count].addr = h->addr;
    m->segments[m->count].units = h->size / UNIT;
    m->count++;
}

static void follow_map(const char *name, better *is_better)
{
    static struct map m;
    static struct traffic t;
    const struct traffic_options opts = {.scale = 1};
    uint64_t rng = 7;

    memset(&m, 0, sizeof(m));
    assert_int_equal(
        traffic_open(&t, frag_policy_find(name), "segment=16KiB", &opts),
        FRAG_OK);
    t.mem.base.granularity = 4 * UNIT;
    for (int i = 0; i < 4000; i++) {
        const uint64_t dice = random_next(&rng);
        struct step step = {.kind = STEP_FREE,
                            .id = (uint32_t)(dice % MAX_LIVE)};
        struct live *l = &t.live[step.id];
        frag_addr wanted;

        if (l->is_live) {
            mark(&m, &l->block, 0);
            traffic_step(&t, &step);
            continue;
        }
        step.kind = STEP_ALLOC;
        step.size = (1 + (dice >> 32) % (dice & 256 ? 40 : 6)) * UNIT;
        wanted = choose(&m, step.size / UNIT, is_better);
        assert_int_equal(traffic_step(&t, &step), FRAG_OK);
        if (!wanted) {
            add_segment(&m, &t.mem);
            wanted = m.segments[m.count - 1].addr;
        }
        if (l->block.addr != wanted)
            fail_msg("%s: step %d: not the hole that a scan finds", name, i);
        mark(&m, &l->block, 1);
        m.rover = l->block.addr + l->block.size;
    }
    assert_null(traffic_close(&t));
}

static void first_fit_takes_the_hole_that_a_scan_finds(void **state)
{
    (void)state;
    follow_map("first_fit", is_lower);
}

static void next_fit_takes_the_hole_that_a_scan_finds(void **state)
{
    (void)state;
    follow_map("next_fit", is_next);
}

static void best_fit_takes_the_hole_that_a_scan_finds(void **state)
{
    (void)state;
    follow_map("best_fit", is_tighter);
}

static const struct property properties[] = {
    PROPERTY(random_traffic_fills_the_device),
    PROPERTY(doubling_all_sizes_doubles_the_picture),
    PROPERTY(one_size_leaves_no_external_waste),
    {NULL, NULL},
};

/* ---- the contract of every policy ---- */

struct pair {
    const struct contract_property *property;
    struct contract_subject subject;
};

static void is_kept(void **state)
{
    const struct pair *p = *state;
    struct frag_error why = {""};

    if (contract_applies(p->property, p->subject.policy) &&
        contract_test(p->property, &p->subject, &why) != FRAG_OK)
        fail_msg("%s:%s: %s", p->subject.policy->name,
                 p->subject.params ? p->subject.params : "", why.text);
}

/* The contract does not depend on how long a plan is searched. */
static const char *params_of(const struct subject *s)
{
    return s->params || strcmp(s->policy->name, "plan") ? s->params
                                                        : "effort=20000";
}

static int run_contract(void)
{
    static struct subject subjects[MAX_SUBJECTS];
    static struct pair pairs[MAX_SUBJECTS * MAX_PROPERTIES];
    static char names[MAX_SUBJECTS * MAX_PROPERTIES][256];
    static struct CMUnitTest tests[MAX_SUBJECTS * MAX_PROPERTIES];
    const size_t count = list_subjects(settings, subjects);
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        for (const struct contract_property *p = contract_properties; p->name;
             p++, n++) {
            char text[128];

            assert_true(n < MAX_SUBJECTS * MAX_PROPERTIES);
            snprintf(names[n], sizeof(names[n]), "%s: %s",
                     subject_text(&subjects[i], text), p->name);
            pairs[n] =
                (struct pair){p, {subjects[i].policy, params_of(&subjects[i])}};
            tests[n] = (struct CMUnitTest){.name = names[n],
                                           .test_func = is_kept,
                                           .initial_state = &pairs[n]};
        }
    return _cmocka_run_group_tests("contract", tests, n, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_fit_takes_the_hole_that_a_scan_finds),
        cmocka_unit_test(next_fit_takes_the_hole_that_a_scan_finds),
        cmocka_unit_test(best_fit_takes_the_hole_that_a_scan_finds),
    };

    return cmocka_run_group_tests_name("fits", tests, NULL, NULL) +
           run_contract() + run_properties("properties", settings, properties);
}
