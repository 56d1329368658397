/* conf.c - splits a value of PYTORCH_CUDA_ALLOC_CONF into settings, checks each
 * of them, and writes the settings that are in force. rules.c judges how the
 * settings act together.
 */
#include "sim/answers/conf/conf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policies.h"
#include "sim/answers/conf/conf_parts.h"
#include "sim/version.h"
#include "traces/nearest.h"
#include "traces/text.h"

/* ---- the settings of a text ---- */

/* The length of a setting, which ends at the next comma outside of brackets. */
static size_t item_length(const char *text)
{
    size_t i = 0;
    int depth = 0;

    for (; text[i] && (text[i] != ',' || depth > 0); i++)
        depth += (text[i] == '[') - (text[i] == ']');
    return i;
}

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

static bool add_item(struct conf_answer *a, char *text, char *value)
{
    struct conf_item *list =
        realloc(a->items, (a->item_count + 1) * sizeof(*list));

    if (!list)
        return false;
    a->items = list;
    a->items[a->item_count++] = (struct conf_item){
        .key = text,
        .value = value,
        .row = conf_key_find(text),
    };
    return true;
}

/* Adds the setting at the start of the text. Returns what follows; NULL if
 * there is no memory. */
static char *split_item(struct conf_answer *a, char *text)
{
    size_t length = item_length(text), key = strcspn(text, ":");
    char *value = "", *next;

    next = text + length + (text[length] == ',');
    if (key < length) {
        value = text + key + 1;
        text[key] = '\0';
    }
    text[length] = '\0';
    /* Since TORCH_PARSER a comma serves as the colon. */
    if (key >= length && a->version >= TORCH_PARSER && *next &&
        conf_key_find(text)) {
        value = next;
        next += strcspn(next, ",");
        next += *next == ',' ? (*next = '\0', 1) : 0;
    }
    return add_item(a, text, value) ? next : NULL;
}

static bool split(struct conf_answer *a)
{
    char *text = a->words = without_white_space(a->text, a->version);

    while (text && *text)
        text = split_item(a, text);
    return text;
}

static void mark_overwritten(struct conf_answer *a)
{
    for (size_t i = 0; i < a->item_count; i++)
        for (size_t k = i + 1; k < a->item_count; k++)
            if (!strcmp(a->items[i].key, a->items[k].key))
                a->items[i].overwritten = true;
}

/* ---- one setting ---- */

static bool say_unknown(struct conf_answer *a, size_t item)
{
    const char *key = a->items[item].key;
    struct nearest near = nearest_to(key);
    char hint[NEAREST_HINT];
    const size_t length = strcspn(key, "=");

    if (key[length])
        return conf_say(a, CONF_REFUSED, item,
                        "A colon separates a setting and its value, not \"=\". "
                        "Write %.*s:%.80s.",
                        (int)(length < 80 ? length : 80), key,
                        key + length + 1);
    if (!*key)
        return conf_say(a, CONF_REFUSED, item,
                        "There is no setting between two commas, or before the "
                        "first one. Remove the comma.");
    for (const struct conf_key *k = conf_keys; k->name; k++)
        nearest_try(&near, k->name);
    nearest_hint(&near, hint);
    return conf_say(a, CONF_UNKNOWN, item,
                    "This setting is not known to fragsim %s (knows PyTorch up "
                    "to 2.%d), which leaves it out%s%s",
                    frag_version, TORCH_NEWEST, hint, *hint ? "" : ".");
}

static bool say_not_known_yet(struct conf_answer *a, size_t item)
{
    char versions[CONF_VERSIONS];

    return conf_say(a, CONF_REFUSED, item,
                    "PyTorch 2.%u does not know this setting; it is a setting "
                    "of %s.",
                    a->version,
                    conf_key_versions(a->items[item].row, versions));
}

/* The value of large_segment_size_mb that is in force; NULL: the default. It is
 * the least value of other settings, so PyTorch reads it first. */
static const char *large_segment(const struct conf_answer *a)
{
    const char *found = NULL;

    for (size_t i = 0; i < a->item_count; i++)
        if (!strcmp(a->items[i].key, "large_segment_size_mb") &&
            !a->items[i].refused)
            found = a->items[i].value;
    return found;
}

/* Asks the torch policy, whose grammar is that of PyTorch. */
static enum frag_err check_value(struct conf_answer *a, size_t item,
                                 struct frag_error *e)
{
    const struct conf_item *it = &a->items[item];
    const char *large = large_segment(a);
    const bool is_large = !large || !strcmp(it->key, "large_segment_size_mb");
    struct frag_error why = {""};
    struct frag_params *params;
    enum frag_err err;
    char *text = text_make(
        "torch_version:2.%u,%s%s%s%s:%s", torch_modelled_as(a->version),
        is_large ? "" : "large_segment_size_mb:", is_large ? "" : large,
        is_large ? "" : ",", it->key, it->value);

    if (!text)
        return frag_no_memory(e, "the settings");
    err = frag_params_read(&frag_policy_torch, text, &params, &why);
    free(text);
    if (err == FRAG_OK)
        free(params);
    if (err == FRAG_NOMEM)
        return frag_no_memory(e, "the settings");
    /* backend:cudaMallocAsync is unsupported there. */
    return err != FRAG_INVALID ||
                   conf_say(a, CONF_REFUSED, item, "%s.", why.text)
               ? FRAG_OK
               : frag_no_memory(e, "the findings");
}

/* What the allocator of the platform makes of a setting of PyTorch; NULL: the
 * same as that of CUDA. The common parser of c10/core refuses a key that no
 * allocator of the build has announced; torch_npu: NPUAllocatorConfig.cpp. */
static const char *foreign(const struct conf_answer *a,
                           const struct conf_key *key, bool *is_refused)
{
    const bool in_npu = key->is_general || conf_key_is_of_npu(key) ||
                        !strcmp(key->name, "per_process_memory_fraction") ||
                        !strcmp(key->name, "pinned_reserve_segment_size_mb");

    *is_refused = true;
    if (a->platform == TORCH_NPU)
        return in_npu ? NULL : "torch_npu refuses this setting.";
    if (conf_key_is_of_npu(key))
        return "This is a setting of torch_npu for Ascend, and PyTorch does "
               "not know this setting on other devices.";
    if (a->platform != TORCH_XPU)
        return NULL;
    if (!key->is_general)
        return "PyTorch for XPU does not know this setting.";
    *is_refused = false;
    return key->on_host || !strcmp(key->name, "expandable_segments")
               ? NULL
               : "The allocator of PyTorch for XPU does not use this setting.";
}

static bool say_foreign(struct conf_answer *a, size_t item)
{
    bool is_refused;
    const char *why = foreign(a, a->items[item].row, &is_refused);

    return is_refused ? conf_say(a, CONF_REFUSED, item, "%s", why)
                      : conf_say_useless(a, item, why);
}

/* Checks one setting: its name, its version, its value. */
static enum frag_err check_item(struct conf_answer *a, size_t item,
                                struct frag_error *e)
{
    const struct conf_item *it = &a->items[item];
    bool said = true, is_refused;

    if (!it->row)
        said = say_unknown(a, item);
    else if (foreign(a, it->row, &is_refused))
        said = say_foreign(a, item);
    else if (!conf_key_is_of_npu(it->row) && a->platform != TORCH_NPU &&
             torch_setting_find(it->key)->since > a->version)
        said = say_not_known_yet(a, item);
    else if (a->part != CONF_WHOLE &&
             it->row->is_general != (a->part == CONF_GENERAL))
        said = conf_say_useless(a, item,
                                "A build for CUDA does not read this setting "
                                "in this variable.");
    else if (!*it->value)
        said = conf_say(a, CONF_REFUSED, item,
                        "The setting has no value. Write %s:VALUE, where VALUE "
                        "is %s.",
                        it->key, it->row->values);
    else
        return check_value(a, item, e);
    return said ? FRAG_OK : frag_no_memory(e, "the findings");
}

static enum frag_err check_items(struct conf_answer *a, struct frag_error *e)
{
    /* large_segment_size_mb first: the others depend on it. */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < a->item_count; i++)
            if (!strcmp(a->items[i].key, "large_segment_size_mb") == !pass)
                FRAG_TRY(check_item(a, i, e));
    return FRAG_OK;
}

/* ---- the settings in force ---- */

/* Whether the setting counts: of each the last one, if it is not refused. */
static bool is_kept(const struct conf_item *it)
{
    return it->row && !it->refused && !it->overwritten && !it->useless;
}

static enum frag_err resolve(struct conf_answer *a, struct frag_error *e)
{
    char text[CONF_MOST + 32] = "";

    text_add(text, sizeof(text), ",", "torch_version:2.%u",
             torch_modelled_as(a->version));
    for (size_t i = 0; i < a->item_count; i++) {
        const struct conf_item *it = &a->items[i];

        if (is_kept(it) && it->row->kind == CONF_PLACEMENT)
            text_add(text, sizeof(text), ",", "%s:%s", it->key, it->value);
    }
    return frag_params_read(&frag_policy_torch, text, &a->used, e);
}

/* Finds the value of a key in the text of the torch policy's settings; its
 * length in *length. NULL: the setting has no effect. */
static const char *find_value(const char *text, const char *key, size_t *length)
{
    const size_t n = strlen(key);

    for (; *text; text += text[*length] ? *length + 1 : *length) {
        *length = item_length(text);
        if (!strncmp(text, key, n) && text[n] == ':') {
            *length -= n + 1;
            return text + n + 1;
        }
    }
    return NULL;
}

/* Sets the values in force of the settings of placement: those that differ from
 * the default. */
static enum frag_err find_in_force(struct conf_answer *a, struct frag_error *e)
{
    struct frag_params *defaults;
    char text[32];

    snprintf(text, sizeof(text), "torch_version:2.%u",
             torch_modelled_as(a->version));
    FRAG_TRY(frag_params_read(&frag_policy_torch, text, &defaults, e));
    for (size_t i = 0; i < a->item_count; i++) {
        struct conf_item *it = &a->items[i];
        size_t now, before = 0;
        const char *value = find_value(a->used->text, it->key, &now);
        const char *init = find_value(defaults->text, it->key, &before);

        if (is_kept(it) && value &&
            !(init && now == before && !strncmp(value, init, now)))
            it->in_force = value;
    }
    free(defaults);
    return FRAG_OK;
}

/* Whether the setting has a place in the shortest text of the same effect. The
 * policy's names and defaults for settings of torch_npu are others. */
static bool is_canonical(const struct conf_item *it)
{
    if (!is_kept(it))
        return false;
    return it->row->kind == CONF_PLACEMENT && !conf_key_is_of_npu(it->row)
               ? it->in_force != NULL
               : strcmp(it->value, it->row->init);
}

/* Lists stay as they were written: resolved they have sixteen entries. */
static void put_canonical(FILE *out, const struct conf_item *it, bool first)
{
    const char *value =
        it->in_force && *it->value != '[' ? it->in_force : it->value;
    const size_t length = item_length(value);
    char text[FRAG_NUMBER_TEXT];

    fprintf(out, "%s%s:", first ? "" : ",", it->key);
    if (it->in_force && *value != '[' && memchr(value, '.', length) &&
        isdigit((unsigned char)value[length - 1]))
        fputs(frag_number_format(strtod(value, NULL), text), out);
    else
        fwrite(value, 1, length, out);
}

static enum frag_err write_canonical(struct conf_answer *a,
                                     struct frag_error *e)
{
    size_t size;
    FILE *out = open_memstream(&a->canonical, &size);
    bool first = true;

    if (!out)
        return frag_no_memory(e, "the settings");
    for (const struct conf_key *k = conf_keys; k->name; k++)
        for (size_t i = 0; i < a->item_count; i++)
            if (a->items[i].row == k && is_canonical(&a->items[i])) {
                put_canonical(out, &a->items[i], first);
                first = false;
            }
    return fclose(out) ? frag_no_memory(e, "the settings") : FRAG_OK;
}

/* ---- all of it ---- */

static enum frag_err check_length(struct conf_answer *a, struct frag_error *e)
{
    if (strlen(a->text) <= CONF_MOST)
        return FRAG_OK;
    return frag_fail(e, FRAG_INVALID,
                     "expected settings of at most %d characters, found %zu",
                     CONF_MOST, strlen(a->text));
}

/* What is said of the platform as a whole. */
static bool say_platform(struct conf_answer *a)
{
    const struct conf_item *it = NULL;
    bool splits = false, expands = false;

    for (size_t i = 0; i < a->item_count; i++) {
        it = &a->items[i];
        expands |= !strcmp(it->key, "expandable_segments") &&
                   !it->overwritten && !strcmp(it->value, "True");
        splits |= !strcmp(it->key, "max_split_size_mb") ||
                  !strcmp(it->key, "garbage_collection_threshold");
    }
    if (a->platform == TORCH_NPU && expands && splits)
        return conf_say(a, CONF_REFUSED, SIZE_MAX,
                        "torch_npu refuses max_split_size_mb and "
                        "garbage_collection_threshold together with "
                        "expandable_segments.");
    if (a->platform == TORCH_ROCM && expands)
        return conf_say(a, a->version < 11 ? CONF_IGNORED : CONF_NOTE, SIZE_MAX,
                        "PyTorch for ROCm ignores expandable_segments before "
                        "PyTorch 2.12 (AMD's own build of 2.11 has it) and "
                        "before ROCm 7.0; whether 2.15 does was not read.");
    return true;
}

enum frag_err conf_read(const char *text, unsigned version, enum conf_part part,
                        struct conf_answer *out, struct frag_error *e)
{
    return conf_read_for(TORCH_CUDA, text, version, part, out, e);
}

enum frag_err conf_read_for(enum torch_platform_id platform, const char *text,
                            unsigned version, enum conf_part part,
                            struct conf_answer *out, struct frag_error *e)
{
    *out = (struct conf_answer){
        .text = text,
        .version = version < TORCH_LATER ? version : TORCH_NEWEST,
        .part = part,
        .platform = platform,
        .native = true,
    };
    FRAG_TRY(check_length(out, e));
    if (!split(out))
        return frag_no_memory(e, "the settings");
    mark_overwritten(out);
    if (version >= TORCH_LATER &&
        !conf_say(out, CONF_NOTE, SIZE_MAX,
                  "This release of PyTorch is not known to fragsim %s (knows "
                  "PyTorch up to 2.%d): the answer is that of 2.%d.",
                  frag_version, TORCH_NEWEST, TORCH_NEWEST))
        return frag_no_memory(e, "the findings");
    FRAG_TRY(check_items(out, e));
    if (!say_platform(out))
        return frag_no_memory(e, "the findings");
    FRAG_TRY(resolve(out, e));
    FRAG_TRY(find_in_force(out, e));
    FRAG_TRY(conf_judge(out, e));
    return write_canonical(out, e);
}

void conf_close(struct conf_answer *a)
{
    free(a->items);
    free(a->findings);
    free(a->canonical);
    free(a->words);
    free(a->used);
    *a = (struct conf_answer){0};
}
