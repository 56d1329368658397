/* members.c - reads all members of a dictionary at once, if they are plain
 * values, short texts or references, as in nearly all entries of a snapshot.
 * Such a dictionary usually has the keys of the one before it of its kind, as
 * the same bytes, so a key costs one comparison. Any other dictionary is left
 * to its opcodes, which also find all errors. */
#include "traces/pickle/reader.h"

enum {
    /* Upper bound on the bytes of one member, and on those behind it that are
     * looked at: a reference, a text of 255 bytes, and its MEMOIZE. */
    MEMBER_ROOM = 512,
    STACK_LOW = 1 << 16, /* values; far from the upper bound of the stack */
    KNOWN_TEXT = 8,      /* bytes of a text's opcode that are compared */
};

/* A dictionary that is being read. Nothing of the reader changes before all
 * members were read, except that the memo's texts may grow. */
struct reading {
    struct pickle *p;
    struct members *known;
    const unsigned char *at, *end; /* a member begins before `end` */
    bool dict_is_memoized;
    uint32_t codes[MEMBERS_MAX]; /* of the memoized texts */
    size_t code_count;
};

/* Whether the next bytes are those of an opcode that was read before. */
static inline bool is_same(const struct known_opcode *k,
                           const unsigned char *at)
{
    return (bytes_little8(at) & k->mask) == k->bytes;
}

static struct known_opcode known(const unsigned char *at, size_t size,
                                 uint32_t text)
{
    const uint64_t mask = UINT64_MAX >> (64 - 8 * size);

    return (struct known_opcode){bytes_little8(at) & mask, mask, text,
                                 (uint8_t)size};
}

/* Reads a reference to a value that is complete. */
static inline bool read_reference(struct reading *r, struct pickle_value *v)
{
    const bool is_long = *r->at == OPCODE_LONG_BINGET;
    const uint64_t number = is_long ? bytes_little4(r->at + 1) : r->at[1];

    r->at += is_long ? 5 : 2;
    return refs_find(r->p, number, v);
}

/* Reads a key that differs from the known one. */
static bool read_new_key(struct reading *r, size_t i)
{
    const unsigned char *at = r->at;
    struct pickle_value *key = &r->known->items[2 * i];

    if ((*at != OPCODE_BINGET && *at != OPCODE_LONG_BINGET) ||
        !read_reference(r, key) || key->tag != PICKLE_TEXT)
        return false;
    r->known->keys[i] = known(at, (size_t)(r->at - at), (uint32_t)key->n);
    r->known->count = i + 1;
    return true;
}

static bool read_text(struct reading *r, struct known_opcode *same,
                      struct pickle_value *v)
{
    const size_t size = 2u + r->at[1];

    if (!same->mask || !is_same(same, r->at)) {
        const uint32_t n = texts_add(&r->p->texts, r->at + 2, size - 2);

        if (n == TEXT_NONE)
            return false;
        *same = size > KNOWN_TEXT ? (struct known_opcode){.text = n}
                                  : known(r->at, size, n);
    }
    *v = (struct pickle_value){.tag = PICKLE_TEXT, .n = same->text};
    r->at += size;
    if (*r->at == OPCODE_MEMOIZE) {
        r->codes[r->code_count++] = memo_code_of_text(same->text);
        r->at++;
    }
    return true;
}

static inline bool read_int(struct reading *r, size_t head, size_t size,
                            bool is_signed, struct pickle_value *v)
{
    const unsigned unused = (unsigned)(64 - 8 * size);
    const uint64_t n = bytes_little8(r->at + head) << unused;

    *v = (struct pickle_value){.tag = PICKLE_INT};
    v->n = is_signed ? (uint64_t)((int64_t)n >> unused) : n >> unused;
    r->at += head + size;
    return true;
}

static inline bool read_constant(struct reading *r, uint8_t tag, uint64_t n,
                                 struct pickle_value *v)
{
    *v = (struct pickle_value){.tag = tag, .n = n};
    r->at++;
    return true;
}

static inline bool read_value(struct reading *r, size_t i)
{
    struct pickle_value *v = &r->known->items[2 * i + 1];

    switch (*r->at) {
    case OPCODE_BINGET:
    case OPCODE_LONG_BINGET:
        return read_reference(r, v);
    case OPCODE_BININT1:
        return read_int(r, 1, 1, false, v);
    case OPCODE_BININT2:
        return read_int(r, 1, 2, false, v);
    case OPCODE_BININT:
        return read_int(r, 1, 4, true, v);
    case OPCODE_LONG1:
        return r->at[1] && r->at[1] <= 8 && read_int(r, 2, r->at[1], true, v);
    case OPCODE_TEXT1:
        return read_text(r, &r->known->texts[i], v);
    case OPCODE_NONE:
        return read_constant(r, PICKLE_NONE, 0, v);
    case OPCODE_TRUE:
        return read_constant(r, PICKLE_BOOL, 1, v);
    case OPCODE_FALSE:
        return read_constant(r, PICKLE_BOOL, 0, v);
    default:
        return false;
    }
}

/* Reads the members up to SETITEMS and returns their number; 0 if one of them
 * needs its opcodes. */
static size_t read_all(struct reading *r)
{
    struct members *known = r->known;

    r->dict_is_memoized = *r->at == OPCODE_MEMOIZE;
    r->at += r->dict_is_memoized;
    if (*r->at++ != OPCODE_MARK)
        return 0;
    for (size_t i = 0; i < MEMBERS_MAX && r->at < r->end; i++) {
        if (i < known->count && is_same(&known->keys[i], r->at))
            r->at += known->keys[i].size;
        else if (*r->at == OPCODE_SETITEMS)
            return i;
        else if (!read_new_key(r, i))
            return 0;
        if (!read_value(r, i))
            return 0;
    }
    return 0;
}

static enum frag_err memoize_all(const struct reading *r)
{
    struct pickle *p = r->p;

    if (r->dict_is_memoized)
        FRAG_TRY(refs_memoize(p, p->memo.next++));
    for (size_t i = 0; i < r->code_count; i++)
        if (!memo_set(&p->memo, p->memo.next++, r->codes[i]))
            return pickle_no_memory(p);
    return FRAG_OK;
}

enum frag_err members_read(struct pickle *p)
{
    const uint8_t number = p->stack[p->count - 1].kind;
    const struct pickle_kind *kind = p->schema->kinds[number];
    struct reading r = {.p = p, .known = &p->members[number], .at = p->at};
    size_t count;

    if (bytes_left(p) < MEMBER_ROOM || p->count > STACK_LOW)
        return FRAG_OK;
    r.end = p->end - MEMBER_ROOM;
    if (r.known->text_changes != p->memo.text_changes)
        *r.known = (struct members){.text_changes = p->memo.text_changes};
    count = read_all(&r);
    if (!count)
        return FRAG_OK;
    FRAG_TRY(memoize_all(&r));
    p->where = p->base + (uint64_t)(r.at - p->start);
    p->at = r.at + 1;
    return kind->add ? kind->add(p->user, number, r.known->items, count, p->e)
                     : FRAG_OK;
}
