/* snapshot_object.c - a dictionary of a snapshot while it is read: stores its
 * values by the table of its keys, checks their types, and reports errors. */
#include <inttypes.h>
#include <stdio.h>

#include "traces/import/torch/import_torch.h"

enum frag_err import_no_memory(const struct import *in, struct frag_error *e)
{
    return frag_no_memory(e, "%s", frag_source_name(in->source));
}

enum frag_err object_bad(const struct import *in, enum kind kind,
                         const char *expected, enum word key, const char *found,
                         struct frag_error *e)
{
    const struct object *o = &in->objects[kind];

    return frag_fail(
        e, FRAG_CORRUPT,
        "%s:%" PRIu64 ": %s, number %" PRIu64 ": expected %s '%s', found %s",
        frag_source_name(in->source), o->where, in->kinds[kind]->name,
        o->number, expected, in->words[key], found);
}

enum frag_err object_begin(void *user, uint8_t kind, struct frag_error *e)
{
    struct import *in = user;
    struct object *o = &in->objects[kind];

    (void)e;
    o->seen |= o->set;
    o->set = 0;
    o->where = pickle_where(in->pickle);
    return FRAG_OK;
}

enum frag_err list_begin_once(void *user, uint8_t kind, struct frag_error *e)
{
    struct import *in = user;

    if (in->objects[kind].number++)
        return frag_fail(e, FRAG_CORRUPT,
                         "%s:%" PRIu64 ": expected %s once, found a second one",
                         frag_source_name(in->source), pickle_where(in->pickle),
                         in->kinds[kind]->name);
    return FRAG_OK;
}

/* The type of the values of a key, for messages. */
static const char *type_of(const struct import *in, const struct field *f)
{
    if (f->kind)
        return in->kinds[f->kind]->name;
    if (f->tags & WHOLE)
        return "an integer";
    if (f->tags & TEXT)
        return "a text";
    if (f->tags & PAIR)
        return "a tuple of two integers";
    return f->tags & TRUTH ? "a bool" : "a float";
}

/* The words for whatever was found in place of the value of a key. */
static const char *found_of(const struct import *in, const struct field *f,
                            const struct pickle_value *v)
{
    return f->tags & PAIR && v->tag == PICKLE_OTHER
               ? "a value of another type; JSON turns tuples into lists, so "
                 "pass the snapshot as PyTorch wrote it"
               : pickle_describe(in->pickle, v);
}

static enum frag_err check_value(const struct import *in, enum kind kind,
                                 const struct field *f, enum word key,
                                 const struct pickle_value *v,
                                 struct frag_error *e)
{
    char expected[80];

    if (!(f->tags >> v->tag & 1) || v->kind != f->kind) {
        snprintf(expected, sizeof(expected), "%s for the key", type_of(in, f));
        return object_bad(in, kind, expected, key, found_of(in, f, v), e);
    }
    if (v->tag == PICKLE_INT && v->n >> 63 && !f->may_be_negative)
        return object_bad(in, kind, "at least 0 for the key", key,
                          "a negative integer", e);
    return FRAG_OK;
}

enum frag_err object_add(void *user, uint8_t kind,
                         const struct pickle_value *items, size_t count,
                         struct frag_error *e)
{
    struct import *in = user;
    struct object *o = &in->objects[kind];

    for (const struct pickle_value *key = items; count--; key += 2) {
        const struct pickle_value *value = key + 1;
        const struct field *f;

        if (key->tag != PICKLE_TEXT || key->n >= WORD_COUNT)
            continue;
        f = &in->fields[kind][key->n];
        if (!f->tags)
            continue;
        FRAG_TRY(check_value(in, kind, f, (enum word)key->n, value, e));
        o->value[f->slot] =
            f->tags == ANY && value->tag != PICKLE_TEXT ? NO_TEXT : value->n;
        o->set |= 1u << f->slot;
    }
    return FRAG_OK;
}

enum frag_err object_check(const struct import *in, enum kind kind,
                           struct frag_error *e)
{
    const struct object *o = &in->objects[kind];

    for (unsigned key = 0; key < WORD_COUNT; key++) {
        const struct field *f = &in->fields[kind][key];

        if (f->needed && !object_has(o, f->slot))
            return object_bad(in, kind, "the key", (enum word)key, "none", e);
    }
    return FRAG_OK;
}

enum frag_err object_time(const struct import *in, enum kind kind,
                          unsigned slot, frag_time *time, struct frag_error *e)
{
    const struct object *o = &in->objects[kind];
    const uint64_t us = object_has(o, slot) ? o->value[slot] : 0;

    if (us > UINT64_MAX / 1000)
        return object_bad(in, kind, "less than 2^64 / 1000 for the key",
                          W_time_us, "a larger integer", e);
    *time = us * 1000;
    return FRAG_OK;
}

struct frag_pool_id object_pool(const struct import *in, enum kind kind,
                                unsigned slot)
{
    const struct object *o = &in->objects[kind];
    uint64_t pair[2] = {0, 0};

    if (object_has(o, slot))
        pickle_pair(in->pickle, o->value[slot], pair);
    return (struct frag_pool_id){pair[0], pair[1]};
}
