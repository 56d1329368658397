/* record.c - a dict of a snapshot while it is read. */
#include <inttypes.h>

#include "traces/import/torch/torch.h"

enum frag_err import_no_memory(const struct import *in, struct frag_error *e)
{
    return frag_no_memory(e, "%s", frag_source_name(in->source));
}

enum frag_err record_bad(const struct import *in, enum kind kind,
                         const char *wrong, enum word key, const char *found,
                         struct frag_error *e)
{
    const struct record *r = &in->records[kind];

    return frag_fail(
        e, FRAG_CORRUPT, "%s:%" PRIu64 ": %s, number %" PRIu64 ": %s '%s'%s%s",
        frag_source_name(in->source), r->where, in->kinds[kind]->name,
        r->number, wrong, in->words[key], *found ? ", found " : "", found);
}

enum frag_err record_begin(void *user, uint8_t kind, struct frag_error *e)
{
    struct import *in = user;
    struct record *r = &in->records[kind];

    (void)e;
    r->set = 0;
    r->where = pickle_where(in->pickle);
    return FRAG_OK;
}

enum frag_err record_once(void *user, uint8_t kind, struct frag_error *e)
{
    struct import *in = user;

    if (in->records[kind].number++)
        return frag_fail(e, FRAG_CORRUPT, "%s:%" PRIu64 ": %s a second time",
                         frag_source_name(in->source), pickle_where(in->pickle),
                         in->kinds[kind]->name);
    return FRAG_OK;
}

static enum frag_err check_value(const struct import *in, enum kind kind,
                                 const struct field *f, enum word key,
                                 const struct pickle_value *v,
                                 struct frag_error *e)
{
    if (!(f->tags >> v->tag & 1) || v->kind != f->kind)
        return record_bad(in, kind, "wrong type of", key,
                          pickle_describe(in->pickle, v), e);
    if (v->tag == PICKLE_INT && v->n >> 63 && !f->may_be_negative)
        return record_bad(in, kind, "a negative", key, "", e);
    return FRAG_OK;
}

enum frag_err record_take(void *user, uint8_t kind,
                          const struct pickle_value *items, size_t count,
                          struct frag_error *e)
{
    struct import *in = user;
    struct record *r = &in->records[kind];

    for (const struct pickle_value *key = items; count--; key += 2) {
        const struct pickle_value *value = key + 1;
        const struct field *f;

        if (key->tag != PICKLE_TEXT || key->n >= WORD_COUNT)
            continue;
        f = &in->fields[kind][key->n];
        if (!f->tags)
            continue;
        FRAG_TRY(check_value(in, kind, f, (enum word)key->n, value, e));
        r->value[f->slot] = value->n;
        r->set |= 1u << f->slot;
    }
    return FRAG_OK;
}

enum frag_err record_check(const struct import *in, enum kind kind,
                           struct frag_error *e)
{
    const struct record *r = &in->records[kind];

    for (unsigned key = 0; key < WORD_COUNT; key++) {
        const struct field *f = &in->fields[kind][key];

        if (f->needed && !record_has(r, f->slot))
            return record_bad(in, kind, "expected the key", (enum word)key,
                              "none", e);
    }
    return FRAG_OK;
}

enum frag_err record_time(const struct import *in, enum kind kind,
                          unsigned slot, frag_time *time, struct frag_error *e)
{
    const struct record *r = &in->records[kind];
    const uint64_t us = record_has(r, slot) ? r->value[slot] : 0;

    if (us > UINT64_MAX / 1000)
        return record_bad(in, kind, "too large a", W_time_us, "", e);
    *time = us * 1000;
    return FRAG_OK;
}

struct frag_pool_id record_pool(const struct import *in, enum kind kind,
                                unsigned slot)
{
    const struct record *r = &in->records[kind];
    uint64_t pair[2] = {0, 0};

    if (record_has(r, slot))
        pickle_pair(in->pickle, r->value[slot], pair);
    return (struct frag_pool_id){pair[0], pair[1]};
}
