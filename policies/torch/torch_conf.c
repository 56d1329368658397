/* torch_conf.c - reads and writes the settings of PYTORCH_CUDA_ALLOC_CONF.
 * torch_conf.h has the grammar's rules and source.
 */
#include "policies/torch/torch_conf.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/nearest.h"
#include "traces/text.h"

/* The text, split at the characters , : [ ] into tokens. White space is
 * dropped, as PyTorch does it; before TORCH_PARSER only blanks are. */
struct tokens {
    const char **token; /* one block of memory with the texts */
    size_t count;
    size_t at; /* index of the next token */
};

static bool is_separator(char c)
{
    return c && strchr(",:[]", c);
}

static enum frag_err split_text(struct tokens *t, const char *text,
                                unsigned version, struct frag_error *e)
{
    const char *dropped = version < TORCH_PARSER ? " " : " \t\n\v\f\r";
    const size_t room = strlen(text) + 1;
    bool in_word = false;
    char *out;

    *t = (struct tokens){malloc(room * (sizeof(*t->token) + 2)), 0, 0};
    if (!t->token)
        return frag_no_memory(e, "the settings");
    out = (char *)(t->token + room); /* a NUL ends each token */
    for (; *text; text++) {
        if (strchr(dropped, *text))
            continue;
        if (!in_word || is_separator(*text)) {
            if (in_word)
                *out++ = '\0';
            t->token[t->count++] = out;
        }
        *out++ = *text;
        in_word = !is_separator(*text);
        if (!in_word)
            *out++ = '\0';
    }
    *out = '\0';
    return FRAG_OK;
}

/* Returns the next token, or "" at the end. */
static const char *next_token(struct tokens *t)
{
    return t->at < t->count ? t->token[t->at++] : "";
}

static bool next_is(const struct tokens *t, const char *text)
{
    return t->at < t->count && !strcmp(t->token[t->at], text);
}

/* ---- values ---- */

/* As C++ stoull: reads the leading digits, ignores the rest, wraps "-1" around,
 * and refuses a number of more than 64 bits. */
static bool to_number(const char *word, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(word, &end, 10);
    return end != word && !errno;
}

static bool is_power_of_two(uint64_t n)
{
    return n && !(n & (n - 1));
}

/* A key and its value, which are being read. */
struct reading {
    const struct key *key;
    const char *word; /* the first token of the value */
    struct tokens *t; /* those after it */
    struct torch_conf *conf;
    struct frag_error *e;
};

typedef enum frag_err read_fn(const struct reading *r);

/* What a key is for. */
enum key_kind {
    PLACING,  /* affects placement */
    OWN,      /* only fragsim has it */
    FURTHER,  /* affects pinned memory, or torch_npu only */
    LEFT_OUT, /* accepted and not modelled */
    OTHER,    /* no effect on placement: checked and ignored */
};

struct key {
    const char *name;
    enum key_kind kind;
    read_fn *read;
    size_t at;      /* of the value in struct torch_conf */
    uint64_t least; /* of a size, in MiB */
};

static enum frag_err bad(const char *key, const char *want, const char *found,
                         struct frag_error *e)
{
    return frag_fail(e, FRAG_INVALID, "%s: expected %s, found \"%.40s\"", key,
                     want, found);
}

static enum frag_err unlike(const struct reading *r, const char *want)
{
    return bad(r->key->name, want, r->word, r->e);
}

static void *value_of(const struct reading *r)
{
    return (char *)r->conf + r->key->at;
}

static enum frag_err read_at_least(const struct reading *r, uint64_t least)
{
    frag_size *size = value_of(r);
    char want[64];
    uint64_t n;

    snprintf(want, sizeof(want), "a number of MiB, at least %llu",
             (unsigned long long)least);
    if (!to_number(r->word, &n) || n < least)
        return unlike(r, want);
    *size = n > UINT64_MAX / FRAG_MIB ? FRAG_UNLIMITED : n * FRAG_MIB;
    return FRAG_OK;
}

static enum frag_err read_megabytes(const struct reading *r)
{
    return read_at_least(r, r->key->least);
}

/* A size of at least large_segment_size_mb, or what the version wants. */
static enum frag_err read_split(const struct reading *r)
{
    const uint64_t large = r->conf->large_segment / FRAG_MIB;
    const unsigned least =
        torch_setting_least(torch_setting_find(r->key->name), r->conf->version);

    return read_at_least(r, least > large ? least : large);
}

static enum frag_err check_switch(const struct reading *r)
{
    return strcmp(r->word, "True") && strcmp(r->word, "False")
               ? unlike(r, "True or False")
               : FRAG_OK;
}

static enum frag_err read_switch(const struct reading *r)
{
    *(bool *)value_of(r) = !strcmp(r->word, "True");
    return check_switch(r);
}

static bool is_ratio(const struct reading *r)
{
    double *value = value_of(r);
    char *end;

    *value = strtod(r->word, &end);
    return end != r->word && *value >= 0 && *value <= 1;
}

static enum frag_err read_fraction(const struct reading *r)
{
    return is_ratio(r) ? FRAG_OK : unlike(r, "a number from 0 to 1");
}

static enum frag_err read_threshold(const struct reading *r)
{
    const double *value = value_of(r);

    return is_ratio(r) && *value > 0 && *value < 1
               ? FRAG_OK
               : unlike(r, "a number above 0 and below 1");
}

/* ---- roundup_power2_divisions ---- */

/* Reads the list form, for example [256:1,512:2,>:8]. The first pair also sets
 * all entries below its own. Entries between two listed ones stay 0. The key
 * ">" sets all entries above the last listed one; before PyTorch 2.10 also that
 * one. Before 2.4 a list has no 0. */
static enum frag_err read_division_list(struct tokens *t,
                                        struct torch_conf *conf,
                                        struct frag_error *e)
{
    static const char key[] = "roundup_power2_divisions";
    const unsigned above =
        torch_has_earlier(conf->version, TORCH_FILL_AT_LAST) ? 0 : 1;
    const bool has_zero = conf->version >= TORCH_LIST_ZERO;
    uint64_t *divisions = conf->divisions;
    unsigned last = 0;
    bool first = true;

    memset(divisions, 0, TORCH_DIVISIONS * sizeof(*divisions));
    while (t->at < t->count && !next_is(t, "]")) {
        const char *word = next_token(t);
        const char *colon = next_token(t);
        const char *value = next_token(t);
        uint64_t interval, count;
        unsigned entry;

        if (strcmp(colon, ":") || !to_number(value, &count) ||
            (!is_power_of_two(count) && (count || !has_zero)))
            return bad(key, "size:divisions, divisions a power of two", word,
                       e);
        if (!strcmp(word, ">")) {
            for (entry = last + above; entry < TORCH_DIVISIONS; entry++)
                divisions[entry] = count;
        } else {
            if (!to_number(word, &interval) || !is_power_of_two(interval))
                return bad(key, "a power of two in MiB", word, e);
            entry = 63 - (unsigned)__builtin_clzll(interval);
            if (entry >= TORCH_DIVISIONS)
                entry = TORCH_DIVISIONS - 1;
            for (unsigned k = 0; first && k < entry; k++)
                divisions[k] = count;
            divisions[entry] = count;
            last = entry;
            first = false;
        }
        if (next_is(t, ","))
            next_token(t);
    }
    if (strcmp(next_token(t), "]"))
        return bad(key, "a closing ]", "", e);
    return FRAG_OK;
}

static enum frag_err read_divisions(const struct reading *r)
{
    uint64_t count;

    if (!strcmp(r->word, "["))
        return read_division_list(r->t, r->conf, r->e);
    if (!to_number(r->word, &count) || !is_power_of_two(count))
        return unlike(r, "a power of two or a list");
    for (int k = 0; k < TORCH_DIVISIONS; k++)
        r->conf->divisions[k] = count;
    return FRAG_OK;
}

/* ---- keys ---- */

/* Passes over all up to the next comma outside of brackets. */
static void skip_value(struct tokens *t)
{
    int depth = 0;

    for (; t->at < t->count && (depth > 0 || !next_is(t, ",")); t->at++)
        depth += next_is(t, "[") - next_is(t, "]");
}

/* Reports a setting such as "expandable_segments=True". */
static enum frag_err equals_sign(const char *text, struct frag_error *e)
{
    const size_t length = strcspn(text, "=");

    return frag_fail(e, FRAG_INVALID,
                     "\"%.80s\": expected a colon between a setting of PyTorch "
                     "and its value, found \"=\"; write %.*s:%.40s",
                     text, (int)(length < 40 ? length : 40), text,
                     text + length + 1);
}

static enum frag_err read_backend(const struct reading *r)
{
    if (!strcmp(r->word, "cudaMallocAsync"))
        return frag_fail(r->e, FRAG_UNSUPPORTED,
                         "backend:cudaMallocAsync is the driver's allocator, "
                         "not PyTorch's own; this policy models backend:native "
                         "only (policy cuda_async models the driver's)");
    if (strcmp(r->word, "native"))
        return unlike(r, "native or cudaMallocAsync");
    return FRAG_OK;
}

static enum frag_err read_version(const struct reading *r)
{
    unsigned *version = &r->conf->version;
    char want[64];

    snprintf(want, sizeof(want), "a release of PyTorch from 2.%d to 2.%d",
             TORCH_MODEL_OLDEST, TORCH_MODEL_NEWEST);
    if (torch_version_read(r->word, version, NULL) != FRAG_OK ||
        *version < TORCH_MODEL_OLDEST)
        return unlike(r, want);
    *version = torch_modelled_as(*version);
    return FRAG_OK;
}

static enum frag_err read_platform(const struct reading *r)
{
    r->conf->platform = torch_platform_find(r->word, strlen(r->word));
    return r->conf->platform < TORCH_PLATFORMS
               ? FRAG_OK
               : unlike(r, "cuda, rocm, xpu or npu");
}

static enum frag_err read_reserve(const struct reading *r)
{
    (void)torch_reserve_read(r->word, &r->conf->reserve);
    return FRAG_OK;
}

/* Reads a number from 0 to `most` of such units. */
static enum frag_err read_up_to(const struct reading *r, const char *units,
                                uint64_t most, uint64_t *number)
{
    char want[64];

    snprintf(want, sizeof(want), "a number of %s from 0 to %u", units,
             (unsigned)most);
    if (!isdigit((unsigned char)*r->word) || !to_number(r->word, number) ||
        *number > most)
        return unlike(r, want);
    return FRAG_OK;
}

static enum frag_err read_padding(const struct reading *r)
{
    return read_up_to(r, "bytes", TORCH_PADDING_MOST, &r->conf->padding);
}

static enum frag_err read_align(const struct reading *r)
{
    FRAG_TRY(
        read_up_to(r, "KiB", TORCH_ALIGN_ASCEND / FRAG_KIB, &r->conf->align));
    r->conf->align *= FRAG_KIB;
    return FRAG_OK;
}

static enum frag_err check_npu_page(const struct reading *r)
{
    return strcmp(r->word, "1g") ? unlike(r, "1g") : FRAG_OK;
}

static enum frag_err check_npu_segment(const struct reading *r)
{
    uint64_t number = 0;

    FRAG_TRY(read_up_to(r, "MiB", 512, &number));
    return number >= 20 ? FRAG_OK : unlike(r, "a number of MiB from 20 to 512");
}

static enum frag_err check_threads(const struct reading *r)
{
    uint64_t number;

    return to_number(r->word, &number) && is_power_of_two(number) &&
                   number <= TORCH_THREADS
               ? FRAG_OK
               : unlike(r, "a power of two, at most 128");
}

static const struct experiment {
    const char *name;
    unsigned bit; /* enum torch_experiment */
} experiments[] = {
    {"none", 0},
    {"pr191302", TORCH_PR_191302},
    {"pr193400", TORCH_PR_193400},
    {"pr186232", TORCH_PR_186232},
    {"pr179444", TORCH_PR_179444},
    {"small_pages", TORCH_SMALL_PAGES},
    {"mapped_limit", TORCH_MAPPED_LIMIT},
};

enum { EXPERIMENTS = sizeof(experiments) / sizeof(*experiments) };

static const struct experiment *find_experiment(const char *name, size_t length)
{
    for (size_t i = 0; i < EXPERIMENTS; i++)
        if (strlen(experiments[i].name) == length &&
            !strncmp(experiments[i].name, name, length))
            return &experiments[i];
    return NULL;
}

/* Reads names that are joined by "+". */
static enum frag_err read_experiments(const struct reading *r)
{
    const char *at = r->word;

    r->conf->experiments = 0;
    for (;;) {
        const size_t length = strcspn(at, "+");
        const struct experiment *x = find_experiment(at, length);

        if (!x)
            return unlike(
                r,
                "none, pr191302, pr193400, pr186232, pr179444, small_pages or "
                "mapped_limit, or several joined by +");
        r->conf->experiments |= x->bit;
        if (!at[length])
            return FRAG_OK;
        at += length + 1;
    }
}

/* Reads a list such as [a:0.5,b:4G]. PyTorch checks the form of the list, and
 * passes over values that are no reserve. */
static enum frag_err check_classes(const struct reading *r)
{
    struct tokens *t = r->t;
    bool is_list = !strcmp(r->word, "[");

    while (is_list && t->at < t->count && !next_is(t, "]")) {
        next_token(t);
        is_list = !strcmp(next_token(t), ":") && *next_token(t) &&
                  (next_is(t, ",") || next_is(t, "]"));
        if (next_is(t, ","))
            next_token(t);
    }
    if (!is_list || strcmp(next_token(t), "]"))
        return bad(r->key->name, "a list such as [small:1G,large:0.5]", "",
                   r->e);
    return FRAG_OK;
}

/* ---- keys ---- */

#define AT(member) offsetof(struct torch_conf, member)

static const struct key keys[] = {
    {"large_segment_size_mb", PLACING, read_megabytes, AT(large_segment), 11},
    {"max_split_size_mb", PLACING, read_split, AT(max_split), 0},
    {"max_non_split_rounding_mb", PLACING, read_split,
     AT(max_non_split_rounding), 0},
    {"garbage_collection_threshold", PLACING, read_threshold, AT(gc_threshold),
     0},
    {"roundup_power2_divisions", PLACING, read_divisions, 0, 0},
    {"expandable_segments", PLACING, read_switch, AT(expandable_segments), 0},
    {"per_process_memory_fraction", PLACING, read_fraction, AT(memory_fraction),
     0},
    {"backend", PLACING, read_backend, 0, 0},
    {"torch_version", OWN, read_version, 0, 0},
    {TORCH_PADDING_KEY, OWN, read_padding, 0, 0},
    {TORCH_FOLLOWS_KEY, OWN, read_switch, AT(follows), 0},
    {TORCH_ALIGN_KEY, FURTHER, read_align, 0, 0},
    {TORCH_PLATFORM_KEY, OWN, read_platform, 0, 0},
    {"experiment", OWN, read_experiments, 0, 0},
    {"graph_capture_record_stream_reuse", OTHER, check_switch, 0, 0},
    {"release_lock_on_cudamalloc", OTHER, check_switch, 0, 0},
    {"release_lock_on_hipmalloc", OTHER, check_switch, 0, 0},
    {"pinned_use_cuda_host_register", OTHER, check_switch, 0, 0},
    {"pinned_use_hip_host_register", OTHER, check_switch, 0, 0},
    {"pinned_use_background_threads", OTHER, check_switch, 0, 0},
    {"pinned_num_register_threads", OTHER, check_threads, 0, 0},
    {"pinned_reserve_segment_size_mb", FURTHER, read_megabytes,
     AT(pinned_reserve), 1},
    {"pinned_free_catch_all", OTHER, check_switch, 0, 0},
    {"pinned_max_cached_size_mb", FURTHER, read_megabytes, AT(pinned_cached),
     0},
    {"pinned_max_round_threshold_mb", FURTHER, read_megabytes, AT(pinned_round),
     0},
    {"throw_on_cudamalloc_oom", PLACING, read_switch, AT(throws), 0},
    {TORCH_RESERVE_KEY, PLACING, read_reserve, 0, 0},
    {"expandable_segments_reserve_by_class", LEFT_OUT, check_classes, 0, 0},
    {"throw_on_npumalloc_oom", PLACING, read_switch, AT(throws), 0},
    {"page_size", LEFT_OUT, check_npu_page, 0, 0},
    {"segment_size_mb", LEFT_OUT, check_npu_segment, 0, 0},
    {"multi_stream_lazy_reclaim", LEFT_OUT, check_switch, 0, 0},
    {"release_lock_on_npumalloc", OTHER, check_switch, 0, 0},
    {"pinned_mem_register", OTHER, check_switch, 0, 0},
    {"pin_memory_expandable_segments", OTHER, check_switch, 0, 0},
};

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (!strcmp(keys[i].name, name))
            return &keys[i];
    return NULL;
}

enum torch_owner torch_owner_of(const char *name)
{
    const struct key *key = find_key(name);

    if (torch_setting_find(name))
        return TORCH_OF_PYTORCH;
    if (!key)
        return TORCH_OF_NOBODY;
    return key->kind == OWN ? TORCH_OF_FRAGSIM : TORCH_OF_NPU;
}

static enum frag_err no_setting(const char *name, const char *meant,
                                struct frag_error *e)
{
    char known[400] = "";

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (keys[i].kind == PLACING)
            text_add(known, sizeof(known), ", ", "%s", keys[i].name);
    return frag_fail(e, FRAG_INVALID,
                     "\"%.40s\" is not an allocator setting of PyTorch up to "
                     "2.%d%s%s%she settings that affect placement are %s",
                     name, TORCH_NEWEST, meant ? "; did you mean \"" : "",
                     meant ? meant : "", meant ? "\"? T" : ". T", known);
}

/* Passes over a key that is not known, with its value: a release after
 * TORCH_NEWEST may have it. */
static enum frag_err skip_unknown(struct tokens *t, struct frag_error *e)
{
    const char *name = t->token[t->at];

    if (is_separator(*name) || t->at + 2 >= t->count ||
        strcmp(t->token[t->at + 1], ":") != 0)
        return no_setting(name, NULL, e);
    skip_value(t);
    return FRAG_OK;
}

/* Refuses a setting that the version does not know. */
static enum frag_err check_known(const struct torch_conf *conf,
                                 const struct key *key, struct frag_error *e)
{
    const struct torch_setting *s = torch_setting_find(key->name);

    if (s && conf->is_named && conf->platform == TORCH_CUDA &&
        s->since > conf->version)
        return frag_fail(e, FRAG_INVALID,
                         "%s: PyTorch 2.%u does not know this setting; 2.%u is "
                         "the first release that does",
                         key->name, conf->version, s->since);
    return FRAG_OK;
}

static enum frag_err read_value(const struct key *key, struct tokens *t,
                                struct torch_conf *conf, struct frag_error *e)
{
    return key->read(&(struct reading){key, next_token(t), t, conf, e});
}

/* Passes over the character behind a key or a value. Since TORCH_PARSER it may
 * be any; before, it is the wanted one. */
static bool pass(struct tokens *t, const struct torch_conf *conf,
                 const char *wanted)
{
    const bool is_passed = conf->version >= TORCH_PARSER || t->at == t->count ||
                           next_is(t, wanted);

    next_token(t);
    return is_passed;
}

static enum frag_err read_keys(struct tokens *t, struct torch_conf *conf,
                               struct frag_error *e)
{
    const unsigned version = conf->version; /* of several, the last one */

    for (t->at = 0; t->at < t->count;) {
        const struct key *key = find_key(t->token[t->at]);

        if (!key && strchr(t->token[t->at], '='))
            return equals_sign(t->token[t->at], e);
        if (!key) {
            FRAG_TRY(skip_unknown(t, e));
            next_token(t); /* the comma */
            continue;
        }
        FRAG_TRY(check_known(conf, key, e));
        next_token(t);
        if (!pass(t, conf, ":") || t->at >= t->count)
            return bad(key->name, "a colon and a value",
                       t->at < t->count ? t->token[t->at] : "", e);
        FRAG_TRY(read_value(key, t, conf, e));
        conf->version = version;
        if (!pass(t, conf, ","))
            return bad(key->name, "a comma after the value",
                       t->token[t->at - 1], e);
    }
    return FRAG_OK;
}

/* Before TORCH_PARSER numbers are read as C++ stoi does. */
static enum frag_err check_ints(const struct tokens *t,
                                const struct torch_conf *conf,
                                struct frag_error *e)
{
    for (size_t i = 0; conf->version < TORCH_PARSER && i < t->count; i++)
        if (isdigit((unsigned char)*t->token[i]) &&
            strtoull(t->token[i], NULL, 10) > INT_MAX)
            return bad("a number", "at most 2147483647", t->token[i], e);
    return FRAG_OK;
}

/* Reads all values of one key. */
static enum frag_err read_first(struct tokens *t, const char *name,
                                struct torch_conf *conf, struct frag_error *e)
{
    for (t->at = 0; t->at + 2 < t->count; t->at++) {
        if (strcmp(t->token[t->at], name))
            continue;
        t->at += 2;
        FRAG_TRY(read_value(find_key(name), t, conf, e));
        t->at--;
    }
    return FRAG_OK;
}

/* Sets PyTorch's defaults. */
static void torch_conf_default(struct torch_conf *conf)
{
    *conf = (struct torch_conf){
        .version = TORCH_MODEL,
        .large_segment = TORCH_LARGE_SEGMENT,
        .max_split = FRAG_UNLIMITED,
        .max_non_split_rounding = 20 * FRAG_MIB,
        .memory_fraction = 1,
        .pinned_cached = FRAG_UNLIMITED,
        .pinned_round = FRAG_UNLIMITED,
    };
}

/* Whether the divisions have an effect. */
static bool rounds(const struct torch_conf *conf)
{
    const uint64_t none =
        torch_has_earlier(conf->version, TORCH_ONE_DIVISION) ? 0 : 1;
    bool any = false;

    for (int k = 0; k < TORCH_DIVISIONS; k++)
        any |= conf->divisions[k] > none;
    return any;
}

/* Sets the version whose rules hold: `version`; 0: the one that the text names.
 */
static enum frag_err find_version(struct tokens *t, unsigned version,
                                  struct torch_conf *conf, struct frag_error *e)
{
    FRAG_TRY(read_first(t, TORCH_PLATFORM_KEY, conf, e));
    conf->version = 0;
    FRAG_TRY(read_first(t, "torch_version", conf, e));
    conf->is_named = version || conf->version;
    if (!conf->is_named) {
        const unsigned rules = torch_platforms[conf->platform].rules;

        conf->version = rules ? rules : TORCH_MODEL;
    }
    if (version)
        conf->version = version;
    return FRAG_OK;
}

/* The allocator of XPU uses expandable_segments and a memory limit only. */
static void drop_unused(struct torch_conf *conf)
{
    const struct torch_conf given = *conf;

    if (conf->platform != TORCH_XPU)
        return;
    torch_conf_default(conf);
    conf->platform = given.platform;
    conf->version = given.version;
    conf->is_named = given.is_named;
    conf->expandable_segments = given.expandable_segments;
    conf->memory_fraction = given.memory_fraction;
    conf->experiments = given.experiments;
    conf->follows = given.follows;
    conf->pinned_reserve = given.pinned_reserve;
    conf->pinned_cached = given.pinned_cached;
    conf->pinned_round = given.pinned_round;
}

static enum frag_err read_all(struct tokens *t, struct torch_conf *conf,
                              struct frag_error *e)
{
    /* It is the least value of others; PyTorch, too, reads it first. */
    FRAG_TRY(read_first(t, "large_segment_size_mb", conf, e));
    if (conf->version >= TORCH_PARSER)
        conf->max_non_split_rounding = conf->large_segment;
    FRAG_TRY(check_ints(t, conf, e));
    FRAG_TRY(read_keys(t, conf, e));
    drop_unused(conf);
    conf->rounds = rounds(conf);
    return FRAG_OK;
}

static enum frag_err parse_as(struct torch_conf *conf, const char *text,
                              unsigned version, struct frag_error *e)
{
    struct tokens t;
    enum frag_err err;

    torch_conf_default(conf);
    FRAG_TRY(split_text(&t, text, TORCH_PARSER, e));
    err = find_version(&t, version, conf, e);
    if (err == FRAG_OK && conf->version < TORCH_PARSER) {
        free(t.token);
        FRAG_TRY(split_text(&t, text, conf->version, e));
    }
    if (err == FRAG_OK)
        err = read_all(&t, conf, e);
    free(t.token);
    return err;
}

enum frag_err torch_conf_parse(struct torch_conf *conf, const char *text,
                               struct frag_error *e)
{
    return parse_as(conf, text, 0, e);
}

enum frag_err torch_conf_change(struct torch_conf *conf, const char *text,
                                struct frag_error *e)
{
    struct tokens t;
    enum frag_err err;

    conf->max_split = FRAG_UNLIMITED;
    conf->gc_threshold = 0;
    memset(conf->divisions, 0, sizeof(conf->divisions));
    conf->rounds = false;
    FRAG_TRY(split_text(&t, text, conf->version, e));
    err = read_all(&t, conf, e);
    conf->rounds = rounds(conf);
    free(t.token);
    return err;
}

enum frag_err torch_conf_follow(struct torch_conf *conf,
                                struct torch_conf **first,
                                const struct frag_setting *setting)
{
    if (!conf->follows)
        return FRAG_OK;
    if (!*first) {
        *first = malloc(sizeof(**first));
        if (!*first)
            return FRAG_NOMEM;
        **first = *conf;
    }
    if (!setting)
        *conf = **first;
    return setting && setting->text
               ? torch_conf_change(conf, setting->text, NULL)
               : FRAG_OK;
}

/* ---- settings without an effect ---- */

enum frag_err torch_check_names(const char *settings, struct frag_error *e)
{
    enum { SLIP = 2 }; /* letters that differ */
    enum frag_err err = FRAG_OK;
    struct tokens t;

    FRAG_TRY(split_text(&t, settings, TORCH_PARSER, e));
    while (err == FRAG_OK && t.at < t.count) {
        const char *name = next_token(&t);
        struct nearest near = nearest_to(name);

        for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
            nearest_try(&near, keys[i].name);
        if (!find_key(name) && near.found && near.least <= SLIP)
            err = no_setting(name, near.found, e);
        skip_value(&t);
        next_token(&t); /* the comma */
    }
    free(t.token);
    return err;
}

static void list_key(struct tokens *t, char *unknown, char *others)
{
    const char *name = next_token(t);
    const struct key *key = find_key(name);

    if (!key)
        text_add(unknown, TORCH_LEFT_OUT, ", ", "%.60s", name);
    else if (key->kind == LEFT_OUT && next_is(t, ":") &&
             (t->at + 1 == t->count || strcmp(t->token[t->at + 1], "False")))
        text_add(others, TORCH_LEFT_OUT, ", ", "%s", name);
    skip_value(t);
    next_token(t); /* the comma */
}

void torch_left_out(const char *settings, char unknown[TORCH_LEFT_OUT],
                    char others[TORCH_LEFT_OUT])
{
    struct tokens t;

    *unknown = *others = '\0';
    if (split_text(&t, settings, TORCH_PARSER, NULL) != FRAG_OK)
        return;
    while (t.at < t.count)
        list_key(&t, unknown, others);
    free(t.token);
}

/* ---- versions ---- */

unsigned torch_version_of(const char *settings)
{
    struct torch_conf conf;

    return torch_conf_parse(&conf, settings, NULL) == FRAG_OK ? conf.version
                                                              : TORCH_MODEL;
}

static bool has_one_division(const struct torch_conf *conf)
{
    for (int k = 0; k < TORCH_DIVISIONS; k++)
        if (conf->divisions[k] == 1)
            return true;
    return false;
}

/* Whether the settings make the change of a rule visible. */
static bool concerns(enum torch_rule rule, const struct torch_conf *x,
                     const struct torch_conf *y, bool has_pools)
{
    switch (rule) {
    case TORCH_ONE_DIVISION:
        return has_one_division(x) || has_one_division(y);
    case TORCH_POOL_SEGMENTS:
        return x->expandable_segments && has_pools;
    case TORCH_POOL_RELEASES:
        return has_pools;
    case TORCH_OVERSIZE_FAILS:
        return x->expandable_segments && x->max_split != FRAG_UNLIMITED;
    case TORCH_FILL_AT_LAST:
        return memcmp(x->divisions, y->divisions, sizeof(x->divisions)) != 0;
    case TORCH_TIE_ADDRESS:
    case TORCH_TIE_RECORD:
        return true;
    case TORCH_FRACTION_CUT:
        return x->memory_fraction < 1 && !(x->experiments & TORCH_PR_179444);
    case TORCH_RULES:
    default:
        return false;
    }
}

unsigned torch_differences(const char *settings, bool has_pools, unsigned a,
                           unsigned b)
{
    struct torch_conf x, y;
    unsigned found = 0;

    if (parse_as(&x, settings, a, NULL) != FRAG_OK ||
        parse_as(&y, settings, b, NULL) != FRAG_OK)
        return 0;
    for (unsigned rule = 0; rule < TORCH_RULES; rule++)
        if (torch_has_earlier(a, rule) != torch_has_earlier(b, rule) &&
            concerns(rule, &x, &y, has_pools))
            found |= 1u << rule;
    return found;
}

/* ---- settings to text ---- */

/* Before TORCH_LIST_ZERO a list has no 0, and none is needed: an interval that
 * is not named between two others, or after the last one, has no divisions. */
static void put_divisions(FILE *out, const struct torch_conf *conf)
{
    const uint64_t *divisions = conf->divisions;
    const bool has_zero = conf->version >= TORCH_LIST_ZERO;
    bool same = true, first = true;

    for (int k = 1; k < TORCH_DIVISIONS; k++)
        same = same && divisions[k] == divisions[0];
    fprintf(out, ",roundup_power2_divisions:");
    if (same) {
        fprintf(out, "%llu", (unsigned long long)divisions[0]);
        return;
    }
    for (int k = 0; k < TORCH_DIVISIONS; k++) {
        if (!divisions[k] && !has_zero)
            continue;
        fprintf(out, "%c%d:%llu", first ? '[' : ',', 1 << k,
                (unsigned long long)divisions[k]);
        first = false;
    }
    fprintf(out, "]");
}

/* Writes a size, unless the version does not take it: then it is the default.
 */
static void put_megabytes(FILE *out, const struct torch_conf *conf,
                          const char *key, frag_size size)
{
    const struct torch_setting *s = torch_setting_find(key);

    if (s->since > conf->version ||
        size / FRAG_MIB < torch_setting_least(s, conf->version))
        return;
    fprintf(out, ",%s:%llu", key, (unsigned long long)(size / FRAG_MIB));
}

static void put_experiments(FILE *out, unsigned set)
{
    const char *before = ",experiment:";

    for (size_t i = 0; i < EXPERIMENTS; i++)
        if (set & experiments[i].bit) {
            fprintf(out, "%s%s", before, experiments[i].name);
            before = "+";
        }
}

void torch_conf_describe(const struct torch_conf *conf, FILE *out)
{
    if (conf->version != TORCH_MODEL)
        fprintf(out, "torch_version:2.%u,", conf->version);
    if (conf->platform != TORCH_CUDA)
        fprintf(out, TORCH_PLATFORM_KEY ":%s,",
                torch_platforms[conf->platform].key);
    fprintf(out, "expandable_segments:%s",
            conf->expandable_segments ? "True" : "False");
    put_megabytes(out, conf, "large_segment_size_mb", conf->large_segment);
    put_megabytes(out, conf, "max_non_split_rounding_mb",
                  conf->max_non_split_rounding);
    if (conf->max_split != FRAG_UNLIMITED)
        put_megabytes(out, conf, "max_split_size_mb", conf->max_split);
    if (conf->gc_threshold > 0)
        fprintf(out, ",garbage_collection_threshold:%.17g", conf->gc_threshold);
    if (conf->rounds)
        put_divisions(out, conf);
    if (conf->memory_fraction < 1)
        fprintf(out, ",per_process_memory_fraction:%.17g",
                conf->memory_fraction);
    if (conf->throws)
        fprintf(out, ",throw_on_cudamalloc_oom:True");
    if (conf->reserve.value > 0)
        fprintf(out, "," TORCH_RESERVE_KEY ":%.17g%s", conf->reserve.value,
                conf->reserve.in_gib ? "G" : "");
    if (conf->padding)
        fprintf(out, "," TORCH_PADDING_KEY ":%llu",
                (unsigned long long)conf->padding);
    if (conf->align)
        fprintf(out, "," TORCH_ALIGN_KEY ":%llu",
                (unsigned long long)(conf->align / FRAG_KIB));
    put_experiments(out, conf->experiments);
    if (conf->follows)
        fprintf(out, "," TORCH_FOLLOWS_KEY ":True");
}
