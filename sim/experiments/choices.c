/* choices.c - reads policies and capacities from their texts. */
#include "sim/experiments/choices.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policies.h"
#include "policies/torch/platform.h"
#include "policies/torch/versions.h"
#include "sim/experiments/plugin.h"
#include "sim/replay/place.h"
#include "traces/bytes/sha256.h"
#include "traces/grow.h"
#include "traces/nearest.h"
#include "traces/text.h"
#include "traces/torch_sizes.h"

static const char recorded_mark[] = "@recorded";

static enum frag_err unknown(const char *name, struct frag_error *e)
{
    struct nearest near = nearest_among("policy", name);
    char names[NEAREST_NAMES];

    for (size_t i = 0; frag_policies[i]; i++)
        nearest_try(&near, frag_policies[i]->name);
    return frag_fail(e, FRAG_INVALID, "there is no policy \"%.80s\"%s", name,
                     nearest_names(&near, "policies", names));
}

enum frag_err policy_named(const char *name, const struct frag_policy **out,
                           struct frag_error *e)
{
    const struct frag_policy *policy;

    if (plugin_is_meant(name))
        return plugin_load(name, out, e);
    policy = frag_policy_find(name);
    if (!policy)
        return unknown(name, e);
    *out = policy;
    return FRAG_OK;
}

/* The length of a policy's name if the name has a colon between its two words,
 * as in plan:online for plan_online; sets *out to the policy. 0 if the text
 * does not begin with such a name. */
static size_t kind_read(const char *text, const struct frag_policy **out)
{
    const size_t length = strcspn(text, ":,=");
    char name[64];
    size_t whole;

    if (text[length] != ':')
        return 0;
    whole = length + 1 + strcspn(text + length + 1, ",=");
    if (whole >= sizeof(name) || text[whole] == '=')
        return 0;
    memcpy(name, text, whole);
    name[length] = '_';
    name[whole] = '\0';
    *out = frag_policy_find(name);
    return *out ? whole : 0;
}

/* Writes the parameters of "torch@2.6:MORE": torch_version:2.6, then MORE. */
static enum frag_err add_version(struct policy_choice *p, struct frag_error *e)
{
    const size_t length = strcspn(p->version, ":");

    p->owned = text_make("torch_version:%.*s%s%s", (int)length, p->version,
                         *p->given ? "," : "", p->given);
    return p->owned ? FRAG_OK : frag_no_memory(e, "settings");
}

/* Reads what follows the name of a policy from an @ on: "@recorded" or a
 * release of PyTorch. Returns the text after it, NULL if it is neither. */
static const char *read_at(const char *at, struct policy_choice *p)
{
    const size_t n = strlen(recorded_mark);

    if (!p->policy->configure)
        return NULL;
    if (at[1] >= '0' && at[1] <= '9') {
        p->version = at + 1;
        return at + strcspn(at, ":");
    }
    if (strncmp(at, recorded_mark, n) != 0 || (at[n] && at[n] != ':'))
        return NULL;
    p->recorded = true;
    return at + n;
}

static enum frag_err choose(struct policy_choice *p, const char *params,
                            struct policy_choice *out, struct frag_error *e)
{
    struct place *place;
    enum frag_err err;

    p->given = *params ? params + 1 : "";
    if (p->policy == &frag_policy_torch)
        FRAG_TRY(torch_check_names(p->given, e));
    if (p->version) {
        FRAG_TRY(add_version(p, e));
        p->given = p->owned;
    }
    place = place_of_run(p->policy, 0, 0);
    place_part(place, "while its parameters were read");
    err = frag_params_read(p->policy, p->given, &p->params, e);
    place_leave(place);
    if (err == FRAG_OK)
        *out = *p;
    else
        free(p->owned);
    return err;
}

/* "NAME=" of an environment variable of PyTorch at the start of the text, or
 * NULL. */
static const char *variable_of(const char *text)
{
    static const char *const names[] = {
        "PYTORCH_CUDA_ALLOC_CONF=", "PYTORCH_ALLOC_CONF=",
        "PYTORCH_HIP_ALLOC_CONF="};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strncmp(text, names[i], strlen(names[i])))
            return names[i];
    return NULL;
}

/* A part after a comma that begins with the name of a policy; NULL if there is
 * none. */
static const char *second_policy(const char *text)
{
    const char *at = text + strcspn(text, ",");
    char name[64];

    for (; *at; at += strcspn(at, ",")) {
        const size_t length = strcspn(++at, ",:@=");

        if (length >= sizeof(name) || at[length] == '=')
            continue;
        memcpy(name, at, length);
        name[length] = '\0';
        if (frag_policy_find(name))
            return at;
    }
    return NULL;
}

/* INVALID for texts that mean something else than one policy, with the text
 * that the user may have meant. */
static enum frag_err check_meaning(const char *text, struct frag_error *e)
{
    const char *variable = variable_of(text), *second = second_policy(text);
    char name[64];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, ":"), text);
    if (torch_setting_find(name) && !frag_policy_find(name))
        return frag_fail(e, FRAG_INVALID,
                         "\"%s\": expected a policy, found a setting of "
                         "PyTorch; did you mean torch:%s?",
                         text, text);
    if (variable)
        return frag_fail(e, FRAG_INVALID,
                         "\"%s\": expected a policy; write torch: before the "
                         "value of the variable: -p torch:%s",
                         text, text + strlen(variable));
    if (second)
        return frag_fail(e, FRAG_INVALID,
                         "\"%s\": expected one policy for each -p: -p %.*s "
                         "-p %s",
                         text, (int)(second - 1 - text), text, second);
    return FRAG_OK;
}

enum frag_err policy_choice_read(const char *text, struct policy_choice *out,
                                 struct frag_error *e)
{
    const size_t to_colon = strcspn(text, ":");
    struct policy_choice p = {.text = text};
    char name[PATH_MAX];
    const char *rest;
    size_t length = kind_read(text, &p.policy);

    if (!plugin_is_meant(text))
        FRAG_TRY(check_meaning(text, e));
    if (length)
        return choose(&p, text + length, out, e);
    snprintf(name, sizeof(name), "%.*s", (int)to_colon, text);
    length = plugin_is_meant(name) ? to_colon : strcspn(text, ":@");
    name[length < PATH_MAX ? length : PATH_MAX - 1] = '\0';
    FRAG_TRY(policy_named(name, &p.policy, e));
    rest = text + length;
    if (*rest == '@') {
        rest = read_at(rest, &p);
        if (!rest)
            return frag_fail(e, FRAG_INVALID,
                             "\"%s\": expected \"torch@recorded\", or "
                             "\"torch@\" and a release of PyTorch such as "
                             "2.6; no other policy text has an @",
                             text);
    }
    if (plugin_is_meant(name))
        FRAG_TRY(sha256_file(name, p.digest, e));
    return choose(&p, rest, out, e);
}

void policy_choice_free(struct policy_choice *p)
{
    free(p->params);
    free(p->owned);
    *p = (struct policy_choice){0};
}

enum frag_err policy_choices_read(const struct texts *given,
                                  struct policy_choice **list, size_t *count,
                                  struct frag_error *e)
{
    static const char *const usual[] = {"torch"};
    const char *const *items = given->count ? given->items : usual;
    const size_t n = given->count ? given->count : 1;

    *count = 0;
    *list = calloc(n, sizeof(**list));
    if (!*list)
        return frag_no_memory(e, "policies");
    for (; *count < n; ++*count)
        FRAG_TRY(policy_choice_read(items[*count], &(*list)[*count], e));
    return FRAG_OK;
}

frag_size policy_choices_quantum(const struct policy_choice *list, size_t count)
{
    frag_size quantum = FRAG_QUANTUM;

    for (size_t i = 0; i < count; i++)
        if (list[i].params->quantum < quantum)
            quantum = list[i].params->quantum;
    return quantum;
}

void policy_choices_free(struct policy_choice *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        policy_choice_free(&list[i]);
    free(list);
}

char *policy_choice_settings(const struct policy_choice *p,
                             const char *settings)
{
    const char *recorded = p->recorded && settings ? settings : "";

    return text_make("%s%s%s", recorded, *recorded && *p->given ? "," : "",
                     p->given);
}

/* The settings that another user chooses change neither what the device library
 * adds to each request nor the release. */
static enum frag_err read_torch(const struct policy_choice *p,
                                const char *settings, const char *releases,
                                struct frag_params **out, struct frag_error *e)
{
    char *chosen = policy_choice_settings(p, settings);
    char *text = chosen ? torch_settings_for(settings, releases, chosen) : NULL;
    enum frag_err err = FRAG_NOMEM;

    if (text)
        err = frag_params_read(p->policy, text, out, e);
    else
        frag_no_memory(e, "settings");
    free(text);
    free(chosen);
    return err;
}

enum frag_err policy_choice_params(const struct policy_choice *p,
                                   const char *settings, const char *releases,
                                   const char *path, uint32_t device,
                                   struct frag_params **out,
                                   struct frag_error *e)
{
    const struct policy_choice host = {.text = p->text,
                                       .policy = &frag_policy_torch_host,
                                       .recorded = p->recorded,
                                       .given = p->given};

    if (device == FRAG_HOST_DEVICE && p->policy == &frag_policy_torch)
        p = &host;
    if (p->recorded && !settings)
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a trace with recorded settings, but %s "
                         "has none; write the settings after \"torch:\"",
                         p->text, path);
    if (p->policy == &frag_policy_torch || p == &host)
        return read_torch(p, settings, releases, out, e);
    *out = frag_params_copy(p->params);
    return *out ? FRAG_OK : frag_no_memory(e, "settings");
}

enum frag_err policy_choice_params_of(const struct policy_choice *p,
                                      const struct frag_trace *t,
                                      const struct frag_device_trace *d,
                                      struct frag_params **out,
                                      struct frag_error *e)
{
    return policy_choice_params(p, t->settings, t->releases, t->path, d->device,
                                out, e);
}

/* A number without a unit below 1 MiB, such as the 24 of a user who means 24
 * GiB: names the two texts that may have been meant. */
static enum frag_err no_unit(const char *option, const char *text, int length,
                             bool may_be_share, frag_size size,
                             struct frag_error *e)
{
    const bool is_large = size >= 1024; /* a number of MiB, as in nvidia-smi */
    char other[96];

    if (is_large || !may_be_share)
        snprintf(other, sizeof(other), " or %.*s%s", length, text,
                 is_large ? "KiB" : "MiB");
    else
        snprintf(other, sizeof(other),
                 ", or %.*sx, i.e. %.*s times the trace's peak requested",
                 length, text, length, text);
    return frag_fail(e, FRAG_INVALID,
                     "--%s: %.*s is %" PRIu64 " byte%s; did you mean "
                     "%.*s%s%s? A size in bytes ends with B",
                     option, length, text, size, size == 1 ? "" : "s", length,
                     text, is_large ? "MiB" : "GiB", other);
}

enum frag_err size_choice_read(const char *option, const char *text,
                               bool may_be_share, frag_size *out,
                               struct frag_error *e)
{
    char *end;
    const double number = strtod(text, &end);
    const bool has_unit = end[strspn(end, " ")] != '\0';
    frag_size size;

    if (frag_size_parse(text, &size) != FRAG_OK ||
        (!size && (has_unit || !(number > 0))))
        return frag_fail(
            e, FRAG_INVALID,
            "--%s: expected a size such as 24GiB,%s or inf, found \"%s\"",
            option,
            may_be_share ? " a share of peak requested such as 0.9x," : "",
            text);
    if (!has_unit && size < FRAG_MIB)
        return no_unit(option, text, (int)(end - text), may_be_share, size, e);
    *out = size;
    return FRAG_OK;
}

static enum frag_err bound_read(const char *text, enum frag_bound_kind kind,
                                struct bound_choice *out, struct frag_error *e)
{
    static const char *const options[FRAG_BOUND_KINDS] = {
        [FRAG_BOUND_CAPACITY] = "capacity",
        [FRAG_BOUND_LIMIT] = "process-limit",
    };
    struct bound_choice c = {.kind = BOUND_FIXED, .fixed.kind = kind};
    char *end;

    c.share = strtod(text, &end);
    if (!strcmp(text, "recorded"))
        c.kind = BOUND_RECORDED;
    else if (end != text && !strcmp(end, "x") && c.share > 0 &&
             c.share < 0x1p20)
        c.kind = BOUND_SHARE;
    else
        FRAG_TRY(
            size_choice_read(options[kind], text, true, &c.fixed.bytes, e));
    snprintf(c.text, sizeof(c.text), "%s", text);
    *out = c;
    return FRAG_OK;
}

struct bound_list {
    struct bound_choice **list;
    size_t *count, room;
};

/* Adds the bounds of a text such as "24GiB,0.9x,inf" to the list. */
static enum frag_err bounds_add(struct bound_list *l, const char *text,
                                enum frag_bound_kind kind, struct frag_error *e)
{
    char one[BOUND_TEXT];

    for (;;) {
        size_t n = strcspn(text, ",");

        if (!GROW(*l->list, l->room, *l->count + 1))
            return frag_no_memory(e, "the bounds");
        snprintf(one, sizeof(one), "%.*s",
                 (int)(n < BOUND_TEXT - 1 ? n : BOUND_TEXT - 1), text);
        FRAG_TRY(bound_read(one, kind, &(*l->list)[*l->count], e));
        ++*l->count;
        if (!text[n])
            return FRAG_OK;
        text += n + 1;
    }
}

enum frag_err bound_choices_read(const struct texts given[FRAG_BOUND_KINDS],
                                 struct bound_choice **list, size_t *count,
                                 struct frag_error *e)
{
    struct bound_list l = {list, count, 0};

    *count = 0;
    for (enum frag_bound_kind k = 0; k < FRAG_BOUND_KINDS; k++)
        for (size_t i = 0; i < given[k].count; i++)
            FRAG_TRY(bounds_add(&l, given[k].items[i], k, e));
    if (*count)
        return FRAG_OK;
    FRAG_TRY(bounds_add(&l, "inf", FRAG_BOUND_CAPACITY, e));
    (*list)->kind = BOUND_DEFAULT;
    *(*list)->text = '\0';
    return FRAG_OK;
}

const char *bound_choice_capacity(const struct bound_choice *c)
{
    return c->fixed.kind == FRAG_BOUND_CAPACITY ? c->text : "";
}

struct frag_bound bound_choice_of(const struct bound_choice *c,
                                  const struct policy_choice *policy,
                                  const struct bound_facts *facts)
{
    struct frag_bound b = c->fixed;

    if (c->kind == BOUND_RECORDED ||
        (c->kind == BOUND_DEFAULT && policy->recorded))
        return facts->recorded;
    if (c->kind == BOUND_SHARE)
        b.bytes = (frag_size)llround(c->share * (double)facts->peak_requested);
    return b;
}

bool bound_repeats(const struct policy_choice *policy, struct frag_bound bound,
                   struct frag_bound recorded)
{
    return policy->recorded && !*policy->given &&
           !frag_bound_order(bound, recorded);
}
