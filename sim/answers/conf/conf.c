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

static char *without_white_space(const char *text)
{
    char *words = malloc(strlen(text) + 1), *to = words;

    if (!words)
        return NULL;
    for (; *text; text++)
        if (!isspace((unsigned char)*text))
            *to++ = *text;
    *to = '\0';
    return words;
}

static bool add_item(struct conf_answer *a, char *text)
{
    char *colon = strchr(text, ':');
    struct conf_item *list =
        realloc(a->items, (a->item_count + 1) * sizeof(*list));

    if (!list)
        return false;
    if (colon)
        *colon = '\0';
    a->items = list;
    a->items[a->item_count++] = (struct conf_item){
        .key = text,
        .value = colon ? colon + 1 : "",
        .row = conf_key_find(text),
    };
    return true;
}

static bool split(struct conf_answer *a)
{
    char *text = a->words = without_white_space(a->text);

    while (text && *text) {
        const size_t length = item_length(text);
        const bool more = text[length] == ',';

        text[length] = '\0';
        if (!add_item(a, text))
            return false;
        text += length + more;
    }
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
    if (torch_setting_meant(key))
        return conf_say(a, CONF_REFUSED, item,
                        "PyTorch has no setting of this name%s", hint);
    return conf_say(a, CONF_UNKNOWN, item,
                    "fragsim %s does not know this setting and leaves it out; "
                    "it knows the settings of PyTorch 2.%d to 2.%d%s%s",
                    frag_version, TORCH_OLDEST, TORCH_NEWEST, hint,
                    *hint ? "" : ".");
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

static bool is_number(const char *text, uint64_t *n)
{
    char *end;

    *n = strtoull(text, &end, 10);
    return end != text;
}

/* Whether a value has the form of its kind, which is not CONF_PLACEMENT. */
static bool has_form(enum conf_kind kind, const char *value)
{
    uint64_t n;

    switch (kind) {
    case CONF_BACKEND:
        return !strcmp(value, "native") || !strcmp(value, "cudaMallocAsync");
    case CONF_SWITCH:
        return !strcmp(value, "True") || !strcmp(value, "False");
    case CONF_POSITIVE:
        return is_number(value, &n) && n;
    case CONF_THREADS:
        return is_number(value, &n) && n && n <= 128 && !(n & (n - 1));
    case CONF_ANY:
        return true;
    case CONF_NUMBER:
    case CONF_PLACEMENT:
    default:
        return is_number(value, &n);
    }
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

/* The least value that the version accepts, if it is not that of 2.11. */
static unsigned least_of(const struct conf_answer *a,
                         const struct conf_item *it)
{
    return torch_setting_least(torch_setting_find(it->key), a->version);
}

static bool say_least(struct conf_answer *a, size_t item)
{
    return conf_say(a, CONF_REFUSED, item,
                    "PyTorch 2.%u wants a number of MiB of at least %u.",
                    a->version, least_of(a, &a->items[item]));
}

/* Asks the torch policy for a setting of placement. */
static enum frag_err check_placement(struct conf_answer *a, size_t item,
                                     struct frag_error *e)
{
    const struct conf_item *it = &a->items[item];
    const char *large = large_segment(a);
    const unsigned version = torch_modelled_as(a->version);
    struct frag_error why = {""};
    struct frag_params *params;
    char text[CONF_MOST + 96];
    enum frag_err err;

    if (strtoull(it->value, NULL, 10) < least_of(a, it))
        return say_least(a, item) ? FRAG_OK : frag_no_memory(e, "the findings");
    if (large && strcmp(it->key, "large_segment_size_mb") != 0)
        snprintf(text, sizeof(text),
                 "torch_version:2.%u,large_segment_size_mb:%s,%s:%s", version,
                 large, it->key, it->value);
    else
        snprintf(text, sizeof(text), "torch_version:2.%u,%s:%s", version,
                 it->key, it->value);
    err = frag_params_read(&frag_policy_torch, text, &params, &why);
    if (err == FRAG_OK)
        free(params);
    if (err == FRAG_NOMEM)
        return frag_no_memory(e, "the settings");
    return err == FRAG_OK || conf_say(a, CONF_REFUSED, item, "%s.", why.text)
               ? FRAG_OK
               : frag_no_memory(e, "the findings");
}

/* Checks one setting: its name, its version, its value. */
static enum frag_err check_item(struct conf_answer *a, size_t item,
                                struct frag_error *e)
{
    const struct conf_item *it = &a->items[item];
    bool said = true;

    if (!it->row)
        said = say_unknown(a, item);
    else if (torch_setting_find(it->key)->since > a->version)
        said = say_not_known_yet(a, item);
    else if (!*it->value)
        said = conf_say(a, CONF_REFUSED, item,
                        "The setting has no value. Write %s:VALUE, where VALUE "
                        "is %s.",
                        it->key, it->row->values);
    else if (it->row->kind == CONF_PLACEMENT)
        return check_placement(a, item, e);
    else if (!has_form(it->row->kind, it->value))
        said = conf_say(a, CONF_REFUSED, item,
                        "The value must be %s; found \"%.80s\".",
                        it->row->values, it->value);
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
    return it->row && !it->refused && !it->overwritten;
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

/* Whether the setting has a place in the shortest text of the same effect. */
static bool is_canonical(const struct conf_item *it)
{
    if (!is_kept(it) || it->useless)
        return false;
    return it->row->kind == CONF_PLACEMENT ? it->in_force != NULL
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
    if (it->in_force && *value != '[' && memchr(value, '.', length))
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

enum frag_err conf_read(const char *text, unsigned version,
                        struct conf_answer *out, struct frag_error *e)
{
    *out =
        (struct conf_answer){.text = text, .version = version, .native = true};
    FRAG_TRY(check_length(out, e));
    if (!split(out))
        return frag_no_memory(e, "the settings");
    mark_overwritten(out);
    FRAG_TRY(check_items(out, e));
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
