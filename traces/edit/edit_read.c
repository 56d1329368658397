/* edit_read.c - reads the text of an edit by the tables of kinds.c. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "traces/edit/edit_parts.h"
#include "traces/nearest.h"
#include "traces/text.h"

/* The state of one edit's reading. */
struct reading {
    struct edit *edit;
    struct frag_error *error;
};

/* ---- values ---- */

/* Each reader returns what it expected, NULL if the text is a value. */
typedef const char *read_value(const char *text, struct edit_value *v);

static bool take_count(const char **text, uint64_t *out)
{
    char *end;

    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *out = strtoull(*text, &end, 0);
    *text = end;
    return !errno;
}

static bool take_real(const char **text, double *out)
{
    const char *dots = strstr(*text, "..");
    char copy[32], *end;
    size_t length = dots ? (size_t)(dots - *text) : strlen(*text);

    if (!isdigit((unsigned char)**text) || length >= sizeof(copy))
        return false;
    memcpy(copy, *text, length);
    copy[length] = '\0';
    *out = strtod(copy, &end);
    *text += end - copy;
    return isfinite(*out) && !*end;
}

static const char *read_count(const char *text, struct edit_value *v)
{
    return take_count(&text, &v->first) && v->first && !*text
               ? NULL
               : "a whole number above 0";
}

static const char *read_size(const char *text, struct edit_value *v)
{
    return frag_size_parse(text, &v->first) == FRAG_OK && v->first &&
                   v->first < (frag_size)1 << 63
               ? NULL
               : "a size above 0, such as 512 or 20MiB";
}

static const char *read_factor(const char *text, struct edit_value *v)
{
    return take_real(&text, &v->low) && v->low > 0 && !*text
               ? NULL
               : "a number above 0, such as 1.5";
}

static const char *read_range(const char *text, struct edit_value *v)
{
    const bool one = !strstr(text, "..");
    bool fine;

    v->first = 0;
    v->last = UINT64_MAX;
    fine = *text == '.' || take_count(&text, &v->first);
    if (one)
        v->last = v->first;
    else if (fine && !strncmp(text, "..", 2)) {
        text += 2;
        fine = !*text || take_count(&text, &v->last);
    }
    return fine && !*text && v->first <= v->last
               ? NULL
               : "a range such as 3..5, 3.. or ..5";
}

static const char *read_seconds(const char *text, struct edit_value *v)
{
    bool fine = true;

    v->low = 0;
    v->high = INFINITY;
    if (*text != '.')
        fine = take_real(&text, &v->low);
    if (fine && !strncmp(text, "..", 2)) {
        text += 2;
        fine = !*text || take_real(&text, &v->high);
    } else {
        fine = false;
    }
    return fine && !*text && v->low < v->high
               ? NULL
               : "a range of seconds such as 1.5..3, 3.. or ..5";
}

/* Reads members that are separated by +; each is NUMBER, or OWNER:NUMBER. */
static bool take_list(const char *text, bool has_owner, struct edit_value *v)
{
    for (;; text++) {
        if (v->count == EDIT_LIST)
            return false;
        if (has_owner &&
            (!take_count(&text, &v->owners[v->count]) || *text++ != ':'))
            return false;
        if (!take_count(&text, &v->list[v->count++]))
            return false;
        if (*text != '+')
            return !*text;
    }
}

static const char *read_list(const char *text, struct edit_value *v)
{
    return take_list(text, false, v) ? NULL
                                     : "numbers separated by +, at most 16";
}

static const char *read_pools(const char *text, struct edit_value *v)
{
    return take_list(text, true, v)
               ? NULL
               : "pools such as 0:1, separated by +, at most 16";
}

static const char *read_pool(const char *text, struct edit_value *v)
{
    return take_list(text, true, v) && v->count == 1 ? NULL
                                                     : "a pool such as 0:1";
}

static const char *read_text(const char *text, struct edit_value *v)
{
    v->text = text;
    return *text ? NULL : "a text";
}

static read_value *const readers[] = {
    [FORM_COUNT] = read_count,     [FORM_SIZE] = read_size,
    [FORM_FACTOR] = read_factor,   [FORM_RANGE] = read_range,
    [FORM_SECONDS] = read_seconds, [FORM_LIST] = read_list,
    [FORM_POOL] = read_pool,       [FORM_POOLS] = read_pools,
    [FORM_TEXT] = read_text,
};

/* ---- keys ---- */

static uint32_t all_keys(const struct edit_kind *kind)
{
    return kind->keys | kind->needs | kind->choice;
}

static enum frag_err no_such_key(const struct reading *r, const char *name)
{
    struct nearest near = nearest_to(name);
    const struct edit_kind *kind = r->edit->kind;
    char hint[NEAREST_HINT];

    for (unsigned k = 0; k < KEY_COUNT; k++)
        if (all_keys(kind) & EDIT_HAS(k))
            nearest_try(&near, edit_keys[k].name);
    return frag_fail(r->error, FRAG_INVALID,
                     "edit \"%.120s\": expected %s%s, found \"%.60s\"%s",
                     r->edit->text, *near.known ? "one of the keys " : "no key",
                     near.known, name, nearest_hint(&near, hint));
}

static enum frag_err read_pair(const struct reading *r, const char *name,
                               char *value)
{
    struct edit *edit = r->edit;

    for (unsigned k = 0; k < KEY_COUNT; k++) {
        const struct edit_key_row *row = &edit_keys[k];
        const char *expected;

        if (strcmp(row->name, name) != 0 ||
            !(all_keys(edit->kind) & EDIT_HAS(k)))
            continue;
        if (edit_has(edit, k))
            return frag_fail(
                r->error, FRAG_INVALID,
                "edit \"%.120s\": expected %s once, found it twice", edit->text,
                name);
        edit->given |= EDIT_HAS(k);
        if (row->form == FORM_CHOICE)
            expected = text_choice(row->choices, value, &edit->values[k].first)
                           ? NULL
                           : row->choices;
        else
            expected = readers[row->form](value, &edit->values[k]);
        return expected ? frag_fail(r->error, FRAG_INVALID,
                                    "edit \"%.120s\": %s: expected %s, found "
                                    "\"%.60s\"",
                                    edit->text, name, expected, value)
                        : FRAG_OK;
    }
    return no_such_key(r, name);
}

/* Reads KEY=VALUE,...; the text of site= and set= extends to the end. */
static enum frag_err read_pairs(const struct reading *r, char *at)
{
    while (at && *at) {
        char *equals = strchr(at, '='), *end = strchr(at, ',');

        if (!equals || (end && end < equals))
            return frag_fail(r->error, FRAG_INVALID,
                             "edit \"%.120s\": expected KEY=VALUE, found "
                             "\"%.60s\"",
                             r->edit->text, at);
        *equals = '\0';
        if (!strcmp(at, edit_keys[KEY_SITE].name) ||
            !strcmp(at, edit_keys[KEY_SET].name))
            end = NULL;
        if (end)
            *end++ = '\0';
        FRAG_TRY(read_pair(r, at, equals + 1));
        at = end;
    }
    return FRAG_OK;
}

/* ---- the edit ---- */

/* Writes the names of the keys to `text`, with `word` before the last. */
static const char *names_of(uint32_t keys, const char *word, char text[128])
{
    *text = '\0';
    for (unsigned k = 0; k < KEY_COUNT; k++)
        if (keys & EDIT_HAS(k)) {
            keys &= ~EDIT_HAS(k);
            text_add(text, 128, keys ? ", " : word, "%s=%s", edit_keys[k].name,
                     edit_keys[k].value);
        }
    return text;
}

static enum frag_err check_keys(const struct reading *r)
{
    const struct edit *edit = r->edit;
    const uint32_t lacks = edit->kind->needs & ~edit->given;
    const uint32_t chosen = edit->kind->choice & edit->given;
    char names[128];

    if (lacks)
        return frag_fail(r->error, FRAG_INVALID,
                         "edit \"%.120s\": expected %s; for example %s",
                         edit->text, names_of(lacks, " and ", names),
                         edit->kind->example);
    if (edit->kind->choice && (!chosen || (chosen & (chosen - 1))))
        return frag_fail(
            r->error, FRAG_INVALID,
            "edit \"%.120s\": expected one of %s; for example %s", edit->text,
            names_of(edit->kind->choice, " or ", names), edit->kind->example);
    return FRAG_OK;
}

static enum frag_err find_kind(const struct reading *r, const char *name)
{
    struct nearest near = nearest_among("edit", name);
    char hint[NEAREST_HINT];

    for (const struct edit_kind *k = edit_kinds; k->name; k++) {
        nearest_try(&near, k->name);
        if (!strcmp(k->name, name)) {
            r->edit->kind = k;
            return FRAG_OK;
        }
    }
    return frag_fail(r->error, FRAG_INVALID,
                     "there is no edit \"%.60s\" in `fragsim help edits'%s",
                     name, nearest_hint(&near, hint));
}

enum frag_err edit_read(const char *text, size_t length, struct edit *out,
                        struct frag_error *e)
{
    struct reading r = {out, e};
    char *storage = strndup(text, length), *copy = strndup(text, length);
    char *colon;
    enum frag_err err;

    *out = (struct edit){.text = storage, .storage = copy};
    if (!storage || !copy)
        return frag_no_memory(e, "an edit");
    colon = strchr(copy, ':');
    if (colon)
        *colon++ = '\0';
    err = find_kind(&r, copy);
    if (err == FRAG_OK)
        err = read_pairs(&r, colon);
    return err == FRAG_OK ? check_keys(&r) : err;
}
