/* members.c - reads the members of a dictionary without the stack, as far as
 * they are plain values, short texts or references; in nearly all entries of a
 * snapshot all of them are. A dictionary usually has the keys of the one before
 * it of its kind, as the same bytes, so a key costs one comparison. From the
 * first other opcode on, the opcodes read the dictionary, and find all errors.
 */
#include "traces/pickle/reader.h"

enum {
    /* Upper bound on the bytes of one member, and on those behind it that are
     * looked at: a reference, a text of 255 bytes, and its MEMOIZE. */
    MEMBER_ROOM = 512,
    STACK_LOW = 1 << 16, /* values; far from the upper bound of the stack */
    KNOWN_TEXT = 8,      /* bytes of a text's opcode that are compared */
};

/* A dictionary that is being read. The reader only learns texts before the end
 * of members_read. */
struct reading {
    struct pickle *p;
    struct members *known;
    bool dict_is_memoized;
    uint32_t *codes; /* [MEMBERS_MAX], of the memoized values */
    size_t code_count;
    size_t count;               /* members that are complete */
    const unsigned char *after; /* the opcode after them */
};

/* Whether the next bytes are those of an opcode that was read before. */
static inline bool is_same(const struct known_opcode *k,
                           const unsigned char *at)
{
    return k->size && (bytes_little8(at) & k->mask) == k->bytes;
}

static struct known_opcode known(const unsigned char *at, size_t size,
                                 uint32_t text)
{
    const uint64_t mask = UINT64_MAX >> (64 - 8 * size);

    return (struct known_opcode){bytes_little8(at) & mask, mask, text,
                                 (uint8_t)size};
}

/* Each of the following functions reads what begins at `at`, and returns what
 * follows it; NULL if that must be left to the opcodes. */
typedef const unsigned char *place;

/* A reference to a value that is complete. */
static inline place read_reference(struct pickle *p, place at,
                                   struct pickle_value *v)
{
    const bool is_long = *at == OPCODE_LONG_BINGET;
    const uint64_t number = is_long ? bytes_little4(at + 1) : at[1];

    return refs_find(p, number, v) ? at + (is_long ? 5 : 2) : NULL;
}

/* The key of member i, which is a reference to a text. */
static inline place read_key(struct reading *r, place at, size_t i)
{
    struct known_opcode *same = &r->known->keys[i];
    struct pickle_value key;
    place after;

    if (is_same(same, at))
        return at + same->size;
    if (*at != OPCODE_BINGET && *at != OPCODE_LONG_BINGET)
        return NULL;
    after = read_reference(r->p, at, &key);
    if (!after || key.tag != PICKLE_TEXT)
        return NULL;
    *same = known(at, (size_t)(after - at), (uint32_t)key.n);
    r->known->items[2 * i] = key;
    return after;
}

/* The MEMOIZE after a value, if there is one. */
static inline place read_memoize(struct reading *r, place at, uint32_t code)
{
    if (*at != OPCODE_MEMOIZE)
        return at;
    r->codes[r->code_count++] = code;
    return at + 1;
}

static place read_text(struct reading *r, place at, struct known_opcode *same,
                       struct pickle_value *v)
{
    const size_t size = 2u + at[1];

    if (!is_same(same, at)) {
        const uint32_t n = texts_add(&r->p->texts, at + 2, size - 2);

        if (n == TEXT_NONE)
            return NULL;
        *same = size > KNOWN_TEXT ? (struct known_opcode){.text = n}
                                  : known(at, size, n);
    }
    *v = (struct pickle_value){.tag = PICKLE_TEXT, .n = same->text};
    return read_memoize(r, at + size, memo_code(CODE_TEXT, same->text));
}

/* An integer of `size` bytes, at most 8. */
static inline place read_int(place at, size_t size, bool is_signed,
                             struct pickle_value *v)
{
    const unsigned unused = (unsigned)(64 - 8 * size);
    const uint64_t n = bytes_little8(at) << unused;

    *v = (struct pickle_value){.tag = PICKLE_INT};
    v->n = is_signed ? (uint64_t)((int64_t)n >> unused) : n >> unused;
    return at + size;
}

static inline place read_constant(place at, uint8_t tag, uint64_t n,
                                  struct pickle_value *v)
{
    *v = (struct pickle_value){.tag = tag, .n = n};
    return at + 1;
}

/* A value of member i. */
static inline place read_value(struct reading *r, place at, size_t i,
                               struct pickle_value *v)
{
    switch (*at) {
    case OPCODE_BINGET:
    case OPCODE_LONG_BINGET:
        return read_reference(r->p, at, v);
    case OPCODE_BININT1:
        return read_int(at + 1, 1, false, v);
    case OPCODE_BININT2:
        return read_int(at + 1, 2, false, v);
    case OPCODE_BININT:
        return read_int(at + 1, 4, true, v);
    case OPCODE_LONG1:
        return at[1] && at[1] <= 8 ? read_int(at + 2, at[1], true, v) : NULL;
    case OPCODE_TEXT1:
        return read_text(r, at, &r->known->texts[i], v);
    case OPCODE_NONE:
        return read_constant(at, PICKLE_NONE, 0, v);
    case OPCODE_TRUE:
        return read_constant(at, PICKLE_BOOL, 1, v);
    case OPCODE_FALSE:
        return read_constant(at, PICKLE_BOOL, 0, v);
    default:
        return NULL;
    }
}

static inline place read_member(struct reading *r, place at, size_t i)
{
    at = read_key(r, at, i);
    return at ? read_value(r, at, i, &r->known->items[2 * i + 1]) : NULL;
}

static bool is_whole(unsigned char opcode)
{
    return opcode == OPCODE_BININT1 || opcode == OPCODE_BININT2 ||
           opcode == OPCODE_BININT || opcode == OPCODE_LONG1;
}

/* The second integer of a pair and its TUPLE2. The value of member i is the
 * first integer. */
static place read_pair(struct reading *r, place at, size_t i)
{
    struct pickle_value *v = &r->known->items[2 * i + 1], second;
    uint32_t n;

    if (v->tag != PICKLE_INT || !is_whole(*at))
        return NULL;
    at = read_value(r, at, i, &second);
    if (!at || *at != OPCODE_TUPLE2)
        return NULL;
    n = texts_add(&r->p->texts, (uint64_t[2]){v->n, second.n}, 16);
    if (n == TEXT_NONE)
        return NULL;
    *v = (struct pickle_value){.tag = PICKLE_PAIR, .n = n};
    return read_memoize(r, at + 1, memo_code(CODE_PAIR, n));
}

/* Reads as many members as possible; each begins before `end`. */
static void read_members(struct reading *r, place at, place end)
{
    size_t i = 0;

    while (at < end && i < MEMBERS_MAX) {
        place next = read_member(r, at, i);

        if (next)
            i++;
        else if (i)
            next = read_pair(r, at, i - 1);
        if (!next)
            break;
        at = next;
    }
    r->count = i;
    r->after = at;
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

/* Pushes what was read, as the opcodes would. */
static enum frag_err push_members(const struct reading *r)
{
    FRAG_TRY(stack_mark(r->p));
    for (size_t i = 0; i < 2 * r->count; i++)
        FRAG_TRY(stack_push(r->p, r->known->items[i]));
    r->p->at = r->after;
    return FRAG_OK;
}

/* Adds what was read to the dictionary, as the SETITEMS at `after` would. */
static enum frag_err add_members(const struct reading *r, uint8_t number)
{
    struct pickle *p = r->p;
    const struct pickle_kind *kind = p->schema->kinds[number];

    p->where = p->base + (uint64_t)(r->after - p->start);
    p->at = r->after + 1;
    return kind->add
               ? kind->add(p->user, number, r->known->items, r->count, p->e)
               : FRAG_OK;
}

enum frag_err members_read(struct pickle *p)
{
    const uint8_t number = p->stack[p->count - 1].kind;
    uint32_t codes[MEMBERS_MAX];
    struct reading r = {.p = p, .known = &p->members[number], .codes = codes};
    place at = p->at;

    if (bytes_left(p) < MEMBER_ROOM || p->count > STACK_LOW)
        return FRAG_OK;
    r.dict_is_memoized = *at == OPCODE_MEMOIZE;
    at += r.dict_is_memoized;
    if (*at != OPCODE_MARK)
        return FRAG_OK;
    if (r.known->text_changes != p->memo.text_changes)
        *r.known = (struct members){.text_changes = p->memo.text_changes};
    read_members(&r, at + 1, p->end - MEMBER_ROOM);
    FRAG_TRY(memoize_all(&r));
    return *r.after == OPCODE_SETITEMS ? add_members(&r, number)
                                       : push_members(&r);
}
