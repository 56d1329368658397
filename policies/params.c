/* params.c - the parameters of a policy: reads them into a state, checks them,
 * and writes them as text.
 */
#include "policies/params.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/nearest.h"
#include "traces/text.h"

enum { VALUE_TEXT = 64 }; /* room for a value as text */

/* A value of any kind; the kind of the parameter selects the member. */
union value {
    frag_size size;
    uint64_t number;
    double ratio;
    bool on;
    uint32_t choice;
};

/* How values of one kind are read and written. read returns true if the text is
 * a value of the kind, in any range. write makes the shortest text that reads
 * back as the same value. */
struct kind {
    const char *what; /* the words after "expected" in an error */
    size_t size;      /* bytes of the value in the state */
    bool (*read)(const struct frag_param *param, const char *text,
                 union value *value);
    void (*write)(const struct frag_param *param, const union value *value,
                  char text[VALUE_TEXT]);
    double (*measure)(const union value *value); /* for the range; NULL: the
                                                    kind has no range */
};

static bool read_size(const struct frag_param *param, const char *text,
                      union value *value)
{
    (void)param;
    return frag_size_parse(text, &value->size) == FRAG_OK;
}

static void write_size(const struct frag_param *param, const union value *value,
                       char text[VALUE_TEXT])
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    frag_size size = value->size;
    size_t unit = 0;

    (void)param;
    if (size == FRAG_UNLIMITED) {
        snprintf(text, VALUE_TEXT, "inf");
        return;
    }
    for (; size && size % 1024 == 0 && unit < 4; unit++)
        size /= 1024;
    snprintf(text, VALUE_TEXT, "%" PRIu64 "%s", size, units[unit]);
}

static double measure_size(const union value *value)
{
    return (double)value->size;
}

static bool read_number(const struct frag_param *param, const char *text,
                        union value *value)
{
    const size_t digits = strspn(text, "0123456789");

    (void)param;
    if (!digits || digits > 19 || text[digits])
        return false;
    value->number = strtoull(text, NULL, 10);
    return true;
}

static void write_number(const struct frag_param *param,
                         const union value *value, char text[VALUE_TEXT])
{
    (void)param;
    snprintf(text, VALUE_TEXT, "%" PRIu64, value->number);
}

static double measure_number(const union value *value)
{
    return (double)value->number;
}

static bool read_ratio(const struct frag_param *param, const char *text,
                       union value *value)
{
    char *end;

    (void)param;
    if (!isdigit((unsigned char)*text) && *text != '.' && *text != '-')
        return false;
    value->ratio = strtod(text, &end);
    return end != text && !*end;
}

static void write_ratio(const struct frag_param *param,
                        const union value *value, char text[VALUE_TEXT])
{
    (void)param;
    frag_number_format(value->ratio, text);
}

static double measure_ratio(const union value *value)
{
    return value->ratio;
}

static bool read_switch(const struct frag_param *param, const char *text,
                        union value *value)
{
    (void)param;
    value->on = !strcmp(text, "yes");
    return value->on || !strcmp(text, "no");
}

static void write_switch(const struct frag_param *param,
                         const union value *value, char text[VALUE_TEXT])
{
    (void)param;
    snprintf(text, VALUE_TEXT, "%s", value->on ? "yes" : "no");
}

static bool read_choice(const struct frag_param *param, const char *text,
                        union value *value)
{
    const size_t length = strlen(text);
    const char *word = param->choices;

    for (value->choice = 0; *word; value->choice++) {
        const size_t letters = strcspn(word, "|");

        if (letters == length && !memcmp(word, text, length))
            return true;
        word += letters + (word[letters] == '|');
    }
    return false;
}

static void write_choice(const struct frag_param *param,
                         const union value *value, char text[VALUE_TEXT])
{
    const char *word = param->choices;

    for (uint32_t i = 0; i < value->choice; i++)
        word = strchr(word, '|') + 1;
    snprintf(text, VALUE_TEXT, "%.*s", (int)strcspn(word, "|"), word);
}

static const struct kind kinds[] = {
    [FRAG_PARAM_SIZE] = {"a size such as 20MiB", sizeof(frag_size), read_size,
                         write_size, measure_size},
    [FRAG_PARAM_NUMBER] = {"a whole number", sizeof(uint64_t), read_number,
                           write_number, measure_number},
    [FRAG_PARAM_RATIO] = {"a number", sizeof(double), read_ratio, write_ratio,
                          measure_ratio},
    [FRAG_PARAM_SWITCH] = {"yes or no", sizeof(bool), read_switch, write_switch,
                           NULL},
    [FRAG_PARAM_CHOICE] = {"one of", sizeof(uint32_t), read_choice,
                           write_choice, NULL},
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

/* The bound of a range as the user would write it. */
static const char *bound_text(const struct frag_param *param, double bound,
                              char text[VALUE_TEXT])
{
    union value value;

    if (param->kind == FRAG_PARAM_RATIO)
        value.ratio = bound;
    else
        value.number = bound < 0x1p64 ? (uint64_t)bound : UINT64_MAX;
    kinds[param->kind].write(param, &value, text);
    return text;
}

static enum frag_err in_range(const struct frag_policy *policy,
                              const struct frag_param *param, const char *text,
                              const union value *value, struct frag_error *e)
{
    const struct kind *kind = &kinds[param->kind];
    char low[VALUE_TEXT], high[VALUE_TEXT];
    double measure;

    if (!kind->measure)
        return FRAG_OK;
    measure = kind->measure(value);
    if (measure >= param->min && measure <= param->max)
        return FRAG_OK;
    return frag_fail(
        e, FRAG_INVALID, "%s: %s=%s is out of range; expected %s to %s",
        policy->name, param->name, text, bound_text(param, param->min, low),
        bound_text(param, param->max, high));
}

/* state may be NULL: the text is checked only. */
static enum frag_err set_value(const struct frag_policy *policy, void *state,
                               const struct frag_param *param, const char *text,
                               struct frag_error *e)
{
    const struct kind *kind = &kinds[param->kind];
    union value value;

    if (!kind->read(param, text, &value))
        return frag_fail(e, FRAG_INVALID, "%s: %s=%s: expected %s%s%s",
                         policy->name, param->name, text, kind->what,
                         param->choices ? " " : "",
                         param->choices ? param->choices : "");
    FRAG_TRY(in_range(policy, param, text, &value, e));
    if (state)
        memcpy((char *)state + param->offset, &value, kind->size);
    return FRAG_OK;
}

/* -------------------------------------------------- the table of a policy ---
 */

enum { PARAMS_MOST = 256, NAME_MOST = 63 };

/* A word that can be written in a policy's text. */
static bool is_word(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQR"
                                  "STUVWXYZ0123456789_-.";
    const size_t length = strnlen(name, NAME_MOST + 1);

    return length && length <= NAME_MOST && strspn(name, letters) == length;
}

static enum frag_err check_members(const struct frag_policy *p,
                                   struct frag_error *e)
{
    const struct {
        const char *name;
        bool is_set;
    } members[] = {
        {"name", p->name && *p->name},
        {"summary", p->summary},
        {"source", p->source},
        {"alloc", p->alloc},
        {"free", p->free},
    };

    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        if (!members[i].is_set)
            return frag_fail(e, FRAG_INVALID,
                             "expected a policy with a name, summary, source, "
                             "alloc and free, found no %s: set it",
                             members[i].name);
    if (!p->configure != !p->describe)
        return frag_fail(e, FRAG_INVALID,
                         "expected both configure and describe or none of "
                         "them, found only %s: set the other",
                         p->configure ? "configure" : "describe");
    return FRAG_OK;
}

static enum frag_err check_numbers(const struct frag_policy *p,
                                   struct frag_error *e)
{
    const unsigned hears = FRAG_HEARS_POOLS | FRAG_HEARS_FREES;
    const unsigned needs = FRAG_NEEDS_VMM | FRAG_NEEDS_FUTURE |
                           FRAG_OWNS_LIMIT | FRAG_NEEDS_MOVES | hears;

    if (!frag_quantum_is_valid(p->quantum))
        return frag_fail(e, FRAG_INVALID,
                         "expected a policy whose `quantum' is a power of two "
                         "up to %d bytes, the unit to which it rounds "
                         "requests, found %" PRIu64,
                         FRAG_QUANTUM, p->quantum);
    if (p->state_size > FRAG_STATE_MOST)
        return frag_fail(e, FRAG_INVALID,
                         "expected a policy whose `state_size' is at most %d "
                         "bytes, found %zu: allocate the rest in init",
                         FRAG_STATE_MOST, p->state_size);
    if (p->needs & ~needs)
        return frag_fail(e, FRAG_INVALID,
                         "expected a policy whose `needs' are FRAG_NEEDS_*, "
                         "FRAG_HEARS_* and FRAG_OWNS_LIMIT, found 0x%x: clear "
                         "the other bits",
                         p->needs);
    if (!p->hear != !(p->needs & hears))
        return frag_fail(e, FRAG_INVALID,
                         "expected `hear' together with FRAG_HEARS_POOLS or "
                         "FRAG_HEARS_FREES in `needs', found only %s",
                         p->hear ? "`hear'" : "a bit");
    return FRAG_OK;
}

static bool has_empty_word(const char *choices)
{
    const size_t length = strlen(choices);

    return !length || *choices == '|' || choices[length - 1] == '|' ||
           strstr(choices, "||");
}

static const struct frag_param *param_named(const struct frag_policy *policy,
                                            const char *name)
{
    for (const struct frag_param *p = policy->params; p && p->name; p++)
        if (!strcmp(p->name, name))
            return p;
    return NULL;
}

static bool is_measured(const struct frag_param *p)
{
    return p && kinds[p->kind].measure;
}

/* The fault of the row: the words after "expected"; NULL: none. For a
 * policy with configure, the row is documentation only. */
static const char *flaw(const struct frag_policy *policy,
                        const struct frag_param *p)
{
    const size_t size = kinds[p->kind].size;

    if (!p->help)
        return "a help text, found none: set `help'";
    if (policy->configure)
        return NULL;
    if (!p->init)
        return "a default, found none: set `init', or configure and describe";
    if ((p->kind == FRAG_PARAM_CHOICE) != (p->choices != NULL))
        return "choices for FRAG_PARAM_CHOICE and for no other kind: set "
               "`choices' or another `kind'";
    if (p->choices && has_empty_word(p->choices))
        return "choices such as \"a|b|c\", found an empty word: remove it";
    if (p->offset > policy->state_size || size > policy->state_size - p->offset)
        return "an offset inside of the state: use offsetof, and sizeof for "
               "`state_size'";
    if (kinds[p->kind].measure && !(p->min <= p->max))
        return "a range with min <= max: set `min' and `max'";
    if (p->at_most &&
        !(is_measured(p) && is_measured(param_named(policy, p->at_most))))
        return "in `at_most' another SIZE, NUMBER or RATIO parameter, and one "
               "of these kinds here: name it, or NULL";
    return NULL;
}

static enum frag_err check_row(const struct frag_policy *policy,
                               const struct frag_param *p, struct frag_error *e)
{
    const char *words;

    if (!is_word(p->name) || param_named(policy, p->name) != p)
        return frag_fail(e, FRAG_INVALID,
                         "parameter %zu: expected a name of its own, of 1 to "
                         "%d letters, digits, `_', `-' and `.', found "
                         "\"%.80s\": rename it",
                         (size_t)(p - policy->params) + 1, NAME_MOST, p->name);
    words = flaw(policy, p);
    if (words)
        return frag_fail(e, FRAG_INVALID,
                         "parameter %s (offset %zu, state of %zu bytes): "
                         "expected %s",
                         p->name, p->offset, policy->state_size, words);
    return policy->configure ? FRAG_OK : set_value(policy, NULL, p, p->init, e);
}

/* All kinds are known before a row is read: rows name each other. */
static enum frag_err check_kinds(const struct frag_policy *policy,
                                 struct frag_error *e)
{
    const struct frag_param *p = policy->params;

    for (; p && p->name; p++) {
        if (p - policy->params == PARAMS_MOST)
            return frag_fail(e, FRAG_INVALID,
                             "expected at most %d parameters, found more: end "
                             "them with a row without a name",
                             PARAMS_MOST);
        if ((unsigned)p->kind >= KINDS)
            return frag_fail(e, FRAG_INVALID,
                             "parameter %.*s: expected a kind of enum "
                             "frag_param_kind, 0 to %d, found %d: set `kind'",
                             NAME_MOST, p->name, KINDS - 1, (int)p->kind);
    }
    return FRAG_OK;
}

enum frag_err frag_policy_check(const struct frag_policy *policy,
                                struct frag_error *e)
{
    FRAG_TRY(check_members(policy, e));
    FRAG_TRY(check_numbers(policy, e));
    FRAG_TRY(check_kinds(policy, e));
    for (const struct frag_param *p = policy->params; p && p->name; p++)
        FRAG_TRY(check_row(policy, p, e));
    return FRAG_OK;
}

/* --------------------------------------------------------- the parameters ---
 */

/* The error for an unknown parameter: it lists the known ones. */
static enum frag_err unknown(const struct frag_policy *policy, const char *key,
                             struct frag_error *e)
{
    struct nearest near = nearest_among(policy->name, key);
    char names[NEAREST_NAMES];

    if (!policy->params)
        return frag_fail(
            e, FRAG_INVALID,
            "%s: unknown parameter %s; the policy has no parameters",
            policy->name, key);
    for (const struct frag_param *p = policy->params; p->name; p++)
        nearest_try(&near, p->name);
    return frag_fail(e, FRAG_INVALID, "%s: unknown parameter %s%s",
                     policy->name, key,
                     nearest_names(&near, "parameters", names));
}

/* Reads one "key=value"; overwrites the '=' in the text. `given` has the
 * parameters before it. */
static enum frag_err set_pair(const struct frag_policy *policy, void *state,
                              char *pair, bool given[PARAMS_MOST],
                              struct frag_error *e)
{
    char *equals = strchr(pair, '=');
    const struct frag_param *param;

    if (!equals)
        return frag_fail(e, FRAG_INVALID, "%s: expected key=value in \"%s\"",
                         policy->name, pair);
    *equals = '\0';
    param = param_named(policy, pair);
    if (!param)
        return unknown(policy, pair, e);
    if (given[param - policy->params])
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected %s once, found it twice", policy->name,
                         pair);
    given[param - policy->params] = true;
    return set_value(policy, state, param, equals + 1, e);
}

static enum frag_err set_pairs(const struct frag_policy *policy, void *state,
                               const char *params, struct frag_error *e)
{
    char pair[2 * VALUE_TEXT];
    bool given[PARAMS_MOST] = {false};

    while (*params) {
        const size_t length = strcspn(params, ",");

        if (length >= sizeof(pair))
            return frag_fail(
                e, FRAG_INVALID,
                "%s: the parameter \"%.*s...\" is too long; expected "
                "at most %d bytes",
                policy->name, 40, params, (int)sizeof(pair) - 1);
        memcpy(pair, params, length);
        pair[length] = '\0';
        FRAG_TRY(set_pair(policy, state, pair, given, e));
        params += length + (params[length] == ',');
    }
    return FRAG_OK;
}

enum frag_err frag_policy_answer(const struct frag_policy *policy,
                                 const char *function, enum frag_err err,
                                 struct frag_error *e)
{
    if ((unsigned)err < FRAG_ERROR_COUNT)
        return err;
    return frag_fail(e, FRAG_CONTRACT,
                     "%s: %s returns %d: expected a code of enum frag_err, 0 "
                     "to %d",
                     policy->name, function, (int)err, FRAG_ERROR_COUNT - 1);
}

static enum frag_err set_params(const struct frag_policy *policy, void *state,
                                const char *params, struct frag_error *e)
{
    if (!params)
        params = "";
    if (policy->configure)
        return frag_policy_answer(policy, "configure",
                                  policy->configure(state, params, e), e);
    for (const struct frag_param *p = policy->params; p && p->name; p++)
        FRAG_TRY(set_value(policy, state, p, p->init, e));
    return set_pairs(policy, state, params, e);
}

/* Writes the present value of a parameter as a user would write it, and returns
 * it as a number. */
static double present(const struct frag_param *param, const void *state,
                      char text[VALUE_TEXT])
{
    const struct kind *kind = &kinds[param->kind];
    union value value;

    memcpy(&value, (const char *)state + param->offset, kind->size);
    kind->write(param, &value, text);
    return kind->measure ? kind->measure(&value) : 0;
}

static void put_values(const struct frag_param *first, const void *state,
                       FILE *out)
{
    char value[VALUE_TEXT];

    for (const struct frag_param *p = first; p && p->name; p++) {
        present(p, state, value);
        fprintf(out, "%s%s=%s", p == first ? "" : ",", p->name, value);
    }
}

/* All parameters as text, which the caller frees. NULL if the host has no
 * memory. */
static char *describe(const struct frag_policy *policy, const void *state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    if (policy->describe)
        policy->describe(state, out);
    else
        put_values(policy->params, state, out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static enum frag_err no_memory(const struct frag_policy *policy,
                               struct frag_error *e)
{
    return frag_no_memory(e, "%s", policy->name);
}

/* Allocates a zeroed state and sets its parameters. */
static enum frag_err make_state(const struct frag_policy *policy,
                                const char *params, void **state,
                                struct frag_error *e)
{
    void *fresh = calloc(1, policy->state_size ? policy->state_size : 1);
    enum frag_err err;

    if (!fresh)
        return no_memory(policy, e);
    err = set_params(policy, fresh, params, e);
    if (err != FRAG_OK) {
        free(fresh);
        return err;
    }
    *state = fresh;
    return FRAG_OK;
}

/* The number of bytes of a state up to the last one that is not 0. */
static size_t used_bytes(const struct frag_policy *policy, const char *state)
{
    size_t used = policy->state_size;

    while (used && !state[used - 1])
        used--;
    return used;
}

static frag_size quantum_of(const struct frag_policy *policy, const void *state)
{
    return policy->quantum_of ? policy->quantum_of(state) : policy->quantum;
}

static struct frag_params *pack(const struct frag_policy *policy,
                                const char *state)
{
    const size_t used = used_bytes(policy, state);
    char *text = describe(policy, state);
    const size_t length = text ? strlen(text) + 1 : 0;
    struct frag_params *p = text ? malloc(sizeof(*p) + length + used) : NULL;

    if (p) {
        *p = (struct frag_params){.policy = policy,
                                  .quantum = quantum_of(policy, state),
                                  .state = length,
                                  .size = length + used};
        memcpy(p->text, text, length);
        memcpy(p->text + length, state, used);
    }
    free(text);
    return p;
}

enum frag_err frag_params_read(const struct frag_policy *policy,
                               const char *text, struct frag_params **out,
                               struct frag_error *e)
{
    struct frag_params *p;
    void *state = NULL;

    FRAG_TRY(make_state(policy, text, &state, e));
    p = pack(policy, state);
    free(state);
    if (!p)
        return no_memory(policy, e);
    if (!frag_quantum_is_valid(p->quantum)) {
        frag_fail(e, FRAG_INVALID,
                  "%s: expected a quantum that is a power of two up to %d, "
                  "found %" PRIu64,
                  policy->name, FRAG_QUANTUM, p->quantum);
        free(p);
        return FRAG_INVALID;
    }
    *out = p;
    return FRAG_OK;
}

struct frag_params *frag_params_copy(const struct frag_params *p)
{
    struct frag_params *copy = malloc(sizeof(*p) + p->size);

    return copy ? memcpy(copy, p, sizeof(*p) + p->size) : NULL;
}

void *params_state(const struct frag_params *p)
{
    void *state = calloc(1, p->policy->state_size ? p->policy->state_size : 1);

    return state ? memcpy(state, p->text + p->state, p->size - p->state) : NULL;
}

enum frag_err params_agree(const struct frag_policy *policy, const void *state,
                           struct frag_error *e)
{
    char text[VALUE_TEXT], bound[VALUE_TEXT];

    for (const struct frag_param *p = policy->params; p && p->name; p++)
        for (const struct frag_param *q = policy->params; q->name; q++)
            if (p->at_most && !strcmp(p->at_most, q->name) &&
                present(p, state, text) > present(q, state, bound))
                return frag_fail(e, FRAG_INVALID,
                                 "%s: %s=%s is more than %s=%s: lower %s or "
                                 "raise %s",
                                 policy->name, p->name, text, q->name, bound,
                                 p->name, q->name);
    return FRAG_OK;
}
