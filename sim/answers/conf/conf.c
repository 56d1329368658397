/* conf.c - splits settings of PyTorch's allocator, judges each, and asks the
 * torch policy which are in force.
 *
 * Source of what PyTorch accepts and ignores: c10/core/AllocatorConfig,
 * c10/cuda/CUDAAllocatorConfig and c10/cuda/CUDACachingAllocator of PyTorch
 * 2.11, as read, and issues #106660 (garbage_collection_threshold without a
 * limit) and #183387 (2.9 reads PYTORCH_ALLOC_CONF and ignores it).
 */
#include "sim/answers/conf/conf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policies.h"
#include "sim/version.h"
#include "traces/nearest.h"
#include "traces/text.h"
#include "traces/torch_sizes.h"

const char *const conf_status_names[CONF_STATUSES] = {"accepted", "ignored",
                                                      "unknown", "refused"};

/* ---- the settings of a text ---- */

/* The text without the white space that the version drops. */
static char *without_white_space(const char *text, unsigned version)
{
    const char *dropped = version < TORCH_PARSER ? " " : " \t\n\v\f\r";
    char *words = malloc(strlen(text) + 1), *to = words;

    if (!words)
        return NULL;
    for (; *text; text++)
        if (!strchr(dropped, *text))
            *to++ = *text;
    *to = '\0';
    return words;
}

/* Adds the setting at the start of the text. Returns what follows. */
static char *split_item(struct conf_answer *a, const struct conf_source *from,
                        char *text, size_t *place)
{
    const size_t length = torch_item_length(text), key = strcspn(text, ":");
    char *value = "", *next = text + length + (text[length] == ',');
    struct conf_item *it = &a->items[a->count++];

    *it = (struct conf_item){.source = from, .key = text, .place = (*place)++};
    if (key < length) {
        value = text + key + 1;
        text[key] = '\0';
    }
    text[length] = '\0';
    /* Since TORCH_PARSER a comma serves as the colon. */
    if (key >= length && a->version >= TORCH_PARSER && *next &&
        torch_owner_of(text) != TORCH_OF_NOBODY) {
        value = next;
        next += strcspn(next, ",");
        if (*next == ',')
            *next++ = '\0';
        ++*place;
    }
    it->value = value;
    return next;
}

static enum frag_err split(struct conf_answer *a, struct frag_error *e)
{
    size_t length = 0, place = 0;

    for (size_t i = 0; i < CONF_SOURCES; i++)
        length +=
            a->input->sources[i].text ? strlen(a->input->sources[i].text) : 0;
    if (length > CONF_MOST)
        return frag_fail(e, FRAG_INVALID,
                         "expected settings of at most %d characters, found "
                         "%zu",
                         CONF_MOST, length);
    a->items = calloc(length + 1, sizeof(*a->items));
    if (!a->items)
        return frag_no_memory(e, "the settings");
    for (size_t i = 0; i < CONF_SOURCES; i++) {
        const struct conf_source *from = &a->input->sources[i];
        char *text = NULL;

        if (from->text)
            text = a->words[i] = without_white_space(from->text, a->version);
        if (from->text && !text)
            return frag_no_memory(e, "the settings");
        while (text && *text)
            text = split_item(a, from, text, &place);
    }
    return FRAG_OK;
}

/* ---- one setting ---- */

/* Sets the status, with a reason that is formatted as by printf. */
static void FRAG_PRINTF(3, 4)
    say(struct conf_item *it, enum conf_status status, const char *format, ...)
{
    va_list args;

    it->status = status;
    va_start(args, format);
    vsnprintf(it->why, sizeof(it->why), format, args);
    va_end(args);
}

/* The index of the variable that PyTorch uses; CONF_SOURCES if it uses none.
 * Only PYTORCH_CUDA_ALLOC_CONF has an effect before TORCH_PARSER. */
static size_t source_used(const struct conf_answer *a)
{
    const struct conf_source *all = a->input->sources;
    size_t i = 0;

    while (i < CONF_SOURCES &&
           (!all[i].text || (i && a->version < TORCH_PARSER)))
        i++;
    return i;
}

/* What a build for CUDA ignores of a text because of the variable in which it
 * stands: in the one for ROCm it reads the general settings only, and its own
 * then in the last one. NULL: nothing. */
static const char *ignored_there(const struct conf_answer *a,
                                 const struct conf_item *it)
{
    const size_t used = source_used(a),
                 at = (size_t)(it->source - a->input->sources);
    const struct torch_setting *s = torch_setting_find(it->key);

    if (used != at && !(used == 1 && at == 2))
        return "PyTorch ignores this variable: it uses the first that is set "
               "of PYTORCH_CUDA_ALLOC_CONF and, since 2.10, "
               "PYTORCH_HIP_ALLOC_CONF and PYTORCH_ALLOC_CONF.";
    return used == 1 && s && s->is_general != (at == 1)
               ? "A build for CUDA does not read this setting in this variable."
               : NULL;
}

/* Reads settings by the torch policy, whose grammar is that of PyTorch, as of
 * the answer's version. */
static enum frag_err ask(const struct conf_answer *a, const char *settings,
                         struct frag_params **out, struct frag_error *e)
{
    char text[2 * CONF_MOST];

    snprintf(text, sizeof(text), "torch_version:2.%u,%s",
             torch_modelled_as(a->version), settings);
    return frag_params_read(&frag_policy_torch, text, out, e);
}

static void say_unknown(struct conf_item *it)
{
    struct nearest near = nearest_to(it->key);
    char hint[NEAREST_HINT];

    for (const struct torch_setting *s = torch_known_settings; s->name; s++)
        nearest_try(&near, s->name);
    nearest_hint(&near, hint);
    say(it, CONF_UNKNOWN,
        "This setting is not known to fragsim %s (knows PyTorch up to 2.%d), "
        "which leaves it out%s%s",
        frag_version, TORCH_NEWEST, hint, *hint ? "" : ".");
}

/* Asks for the value of a setting, behind those that were accepted. */
static enum frag_err judge_value(struct conf_answer *a, struct conf_item *it,
                                 struct frag_error *e)
{
    const size_t before = strlen(a->text);
    struct frag_params *params = NULL;
    struct frag_error why = {""};
    enum frag_err err;

    text_add(a->text, sizeof(a->text), ",", "%s:%s", it->key, it->value);
    err = ask(a, a->text, &params, &why);
    free(params);
    it->is_read = err == FRAG_OK || err == FRAG_UNSUPPORTED;
    a->is_driver |= err == FRAG_UNSUPPORTED; /* backend:cudaMallocAsync */
    if (err != FRAG_OK)
        a->text[before] = '\0';
    if (err == FRAG_NOMEM)
        return frag_no_memory(e, "the settings");
    if (!it->is_read)
        say(it, CONF_REFUSED, "%s.", why.text);
    else if (torch_owner_of(it->key) == TORCH_OF_NOBODY)
        say_unknown(it);
    return FRAG_OK;
}

/* Judges one setting: its place, its name, its version, its value. */
static enum frag_err judge_item(struct conf_answer *a, struct conf_item *it,
                                struct frag_error *e)
{
    const struct torch_setting *s = torch_setting_find(it->key);
    const enum torch_owner owner = torch_owner_of(it->key);
    const char *ignored = ignored_there(a, it);

    if (ignored)
        say(it, CONF_IGNORED, "%s", ignored);
    else if (owner == TORCH_OF_FRAGSIM)
        say(it, CONF_REFUSED, "Only fragsim has this setting.");
    else if (owner == TORCH_OF_NPU)
        say(it, CONF_REFUSED, "Only torch_npu for Ascend has this setting.");
    else if (s && s->since == TORCH_NEVER)
        say(it, CONF_REFUSED, "Only PyTorch 1.13 had this setting.");
    else if (s && s->since > a->version)
        say(it, CONF_REFUSED, "PyTorch knows this setting since 2.%u.",
            s->since);
    else
        return judge_value(a, it, e);
    return FRAG_OK;
}

static enum frag_err judge_items(struct conf_answer *a, struct frag_error *e)
{
    /* large_segment_size_mb first: the others depend on it. */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < a->count; i++)
            if (!strcmp(a->items[i].key, "large_segment_size_mb") == !pass)
                FRAG_TRY(judge_item(a, &a->items[i], e));
    return FRAG_OK;
}

/* ---- settings beside each other ---- */

/* The setting of that name that counts, the last one; NULL: there is none. */
static struct conf_item *find(const struct conf_answer *a, const char *key)
{
    struct conf_item *found = NULL;

    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].is_read && !strcmp(a->items[i].key, key))
            found = &a->items[i];
    return found;
}

/* Whether the value of a setting differs from the default, for the torch
 * policy.
 */
static bool is_in_force(const struct conf_answer *a, const char *key)
{
    const char *value = torch_value_of(a->used->text, key),
               *init = torch_value_of(a->defaults->text, key);
    const size_t length = value ? strcspn(value, ",") : 0;

    return value && !(init && strcspn(init, ",") == length &&
                      !strncmp(value, init, length));
}

/* A setting that has no effect by what else is set, or is not. */
static const struct rule {
    const char *key, *other;
    bool beside; /* if `other` is in force; else if it is not */
    const char *why;
} rules[] = {
    {"garbage_collection_threshold", "per_process_memory_fraction", false,
     "It has no effect without a memory limit: per_process_memory_fraction "
     "(since 2.10), or torch.cuda.set_per_process_memory_fraction with a value "
     "below 1."},
    {"garbage_collection_threshold", "expandable_segments", true,
     "The collection frees no memory of expandable segments."},
    {"max_non_split_rounding_mb", "max_split_size_mb", false,
     "It has an effect only together with max_split_size_mb."},
    {"roundup_power2_divisions", "roundup_power2_divisions", false,
     "One division is no division."},
    {TORCH_RESERVE_KEY, TORCH_RESERVE_KEY, false,
     "PyTorch warns of a value that is neither a share above 0 nor a number of "
     "GiB such as 4G, and uses its default."},
};

static void judge_rule(const struct conf_answer *a, const struct rule *r)
{
    struct conf_item *it = find(a, r->key);

    if (it && it->status == CONF_ACCEPTED &&
        is_in_force(a, r->other) == r->beside)
        say(it, CONF_IGNORED, "%s", r->why);
}

/* A list of reserves, of which one is none, as torch_reserve_read has it. */
static bool has_no_reserve(const char *list)
{
    struct torch_reserve reserve;

    while ((list = strchr(list, ':')))
        if (!torch_reserve_read(++list, &reserve))
            return true;
    return false;
}

/* Why an accepted setting has no effect for any program; NULL: it has one. */
static const char *useless(const struct conf_answer *a,
                           const struct conf_item *it)
{
    const struct torch_setting *s = torch_setting_find(it->key);

    if (find(a, it->key) != it)
        return "The same setting follows, and the last one counts.";
    if (a->input->uncached)
        return "PYTORCH_NO_CUDA_MEMORY_CACHING is set: every request is a call "
               "of cudaMalloc.";
    if (a->is_driver && s && !s->on_host && strcmp(it->key, "backend"))
        return "backend:cudaMallocAsync is the driver's allocator, which "
               "ignores it.";
    return !strcmp(it->key, "expandable_segments_reserve_by_class") &&
                   has_no_reserve(it->value)
               ? "PyTorch warns of a value that is no reserve, and uses its "
                 "default."
               : NULL;
}

static void judge_together(struct conf_answer *a)
{
    for (size_t i = 0; i < a->count; i++) {
        struct conf_item *it = &a->items[i];

        if (it->status == CONF_ACCEPTED && useless(a, it))
            say(it, CONF_IGNORED, "%s", useless(a, it));
    }
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
        judge_rule(a, &rules[i]);
}

/* ---- all of it ---- */

enum frag_err conf_read(const struct conf_input *input, unsigned version,
                        struct conf_answer *out, struct frag_error *e)
{
    *out = (struct conf_answer){
        .input = input,
        .version = version < TORCH_LATER ? version : TORCH_NEWEST,
    };
    FRAG_TRY(split(out, e));
    FRAG_TRY(judge_items(out, e));
    FRAG_TRY(ask(out, "", &out->defaults, e));
    FRAG_TRY(ask(out, out->text, &out->used, e));
    judge_together(out);
    return FRAG_OK;
}

void conf_close(struct conf_answer *a)
{
    for (size_t i = 0; i < CONF_SOURCES; i++)
        free(a->words[i]);
    free(a->items);
    free(a->used);
    free(a->defaults);
    *a = (struct conf_answer){0};
}

enum conf_status conf_verdict(const struct conf_answer *a)
{
    enum conf_status worst = CONF_ACCEPTED;

    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].status > worst)
            worst = a->items[i].status;
    return worst;
}

const struct conf_item *conf_item_at(const struct conf_answer *a, size_t place)
{
    size_t i = a->count;

    while (i && a->items[i - 1].place > place)
        i--;
    return i ? &a->items[i - 1] : NULL;
}
