/* reader.h - the inside of a pickle reader. Private to traces/pickle/.
 *
 * The reader has five layers, and each layer calls only those before it: input
 * bytes and error messages (reader.c), stack (pickle_stack.c), memo references
 * (refs.c), members of a dictionary (members.c), opcodes (ops.c).
 *
 * A container is open from the opcode that creates it until the reader knows
 * that nothing more is added to it: the pickle adds the container to another
 * one, or the next container of its kind begins. Then the reader seals the
 * container: on the stack, a DONE or a RESULT replaces it. Neighbouring DONE
 * values are one value with a count, so a list of a million entries under one
 * MARK needs one value of the stack.
 */
#ifndef FRAG_TRACES_PICKLE_READER_H
#define FRAG_TRACES_PICKLE_READER_H

#include "traces/pickle/memo.h"
#include "traces/pickle/pickle.h"
#include "traces/pickle/pickle_text.h"

enum { MEMBERS_MAX = 24 };

/* The bytes of an opcode, and the text that it pushes. */
struct known_opcode {
    uint64_t bytes, mask;
    uint32_t text;
    uint8_t size; /* bytes, at most 8; 0: none is known */
};

/* The members of the last dictionary of a kind that members_read has seen. */
struct members {
    struct pickle_value items[2 * MEMBERS_MAX]; /* key, value, key, value... */
    struct known_opcode keys[MEMBERS_MAX], texts[MEMBERS_MAX];
    uint64_t text_changes; /* of the memo, when the keys were read */
};

struct pickle {
    struct frag_source *source;
    const struct pickle_schema *schema;
    void *user;
    struct frag_error *e;

    struct pickle_value *stack;
    size_t count, room;
    size_t *marks; /* indices of the MARKs on the stack */
    size_t mark_count, mark_room;
    size_t open_at[PICKLE_KINDS]; /* by kind: 1 + index on the stack of the open
                                     container; 0: none */

    struct memo memo;
    struct members members[PICKLE_KINDS];
    struct pickle_texts texts;

    const unsigned char *start, *at, *end; /* the window; *at is read next */
    uint64_t base;                         /* offset of start in the input */
    uint64_t where;                        /* offset of the current opcode */
    bool last;                             /* the input ends with the window */
    bool stopped;                          /* STOP was read */
    unsigned char *long_bytes; /* buffer of a text longer than the window */
    size_t long_room;
};

/* Fails with CORRUPT: file, offset of the current opcode, and the message. */
enum frag_err pickle_bad(const struct pickle *p, const char *format, ...)
    FRAG_PRINTF(2, 3);
enum frag_err pickle_no_memory(const struct pickle *p);

/* The number of unread bytes in the window. */
static inline size_t bytes_left(const struct pickle *p)
{
    return (size_t)(p->end - p->at);
}

/* Moves the window so that it begins at the next unread byte, and fills it. */
enum frag_err bytes_refill(struct pickle *p);

/* Reads the next `size` bytes; *bytes is valid until the next call. */
enum frag_err bytes_read(struct pickle *p, size_t size,
                         const unsigned char **bytes);

/* Skips the next `size` bytes. */
enum frag_err bytes_skip(struct pickle *p, uint64_t size);

/* Fails with CORRUPT because the input ends too early. */
enum frag_err bytes_cut_short(const struct pickle *p);

/* A little-endian number of `count` bytes, at most 8. */
uint64_t bytes_little(const unsigned char *bytes, size_t count);

/* The same for 4 bytes. */
static inline uint32_t bytes_little4(const unsigned char *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
           (uint32_t)b[3] << 24;
}

/* The same for 8 bytes. */
static inline uint64_t bytes_little8(const unsigned char *b)
{
    return bytes_little4(b) | (uint64_t)bytes_little4(b + 4) << 32;
}

/* An opcode. run() receives the argument of fixed size; an opcode with an
 * argument of variable size reads the rest itself. */
struct opcode {
    const char *name; /* NULL: no opcode has this byte */
    uint8_t size;     /* bytes of the fixed argument */
    enum frag_err (*run)(struct pickle *p, const unsigned char *arg);
};

enum {
    OPCODE_MAX = 9, /* bytes of the longest opcode with its fixed argument */
    OPCODE_PROTO = 0x80,
    OPCODE_MARK = '(',
    OPCODE_SETITEMS = 'u',
    OPCODE_NONE = 'N',
    OPCODE_TRUE = 0x88,
    OPCODE_FALSE = 0x89,
    OPCODE_BININT1 = 'K',
    OPCODE_BININT2 = 'M',
    OPCODE_BININT = 'J',
    OPCODE_LONG1 = 0x8a,
    OPCODE_TEXT1 = 0x8c,
    OPCODE_MEMOIZE = 0x94,
    OPCODE_TUPLE2 = 0x86,
    OPCODE_BINGET = 'h',
    OPCODE_LONG_BINGET = 'j'
};

extern const struct opcode opcodes[256];

/* Makes room for one more value. CORRUPT if the stack is too deep, NOMEM. */
enum frag_err stack_grow(struct pickle *p);

static inline enum frag_err stack_push(struct pickle *p,
                                       struct pickle_value value)
{
    if (p->count == p->room)
        FRAG_TRY(stack_grow(p));
    p->stack[p->count++] = value;
    return FRAG_OK;
}

static inline enum frag_err stack_push_int(struct pickle *p, int64_t n)
{
    return stack_push(
        p, (struct pickle_value){.tag = PICKLE_INT, .n = (uint64_t)n});
}

static inline enum frag_err stack_push_other(struct pickle *p)
{
    return stack_push(p, (struct pickle_value){.tag = PICKLE_OTHER, .n = 1});
}

/* Pushes a MARK. */
enum frag_err stack_mark(struct pickle *p);

/* Pushes a new open container. */
enum frag_err stack_begin(struct pickle *p, enum pickle_shape shape);

/* Moves values from the stack into the container below them: all values above
 * the last MARK, or only the top element (the top key and value). */
enum frag_err stack_put_marked(struct pickle *p, enum pickle_shape shape);
enum frag_err stack_put_top(struct pickle *p, enum pickle_shape shape);

/* Replaces the values above the last MARK, or the top `count` values, with one
 * value. A tuple of two integers is replaced with PAIR, all else with OTHER. */
enum frag_err stack_wrap_marked(struct pickle *p, bool is_tuple);
enum frag_err stack_wrap_top(struct pickle *p, size_t count);

enum frag_err stack_pop(struct pickle *p);
enum frag_err stack_pop_marked(struct pickle *p);
enum frag_err stack_dup(struct pickle *p);

/* Seals the open container *v, which is on the stack. */
enum frag_err stack_seal(struct pickle *p, struct pickle_value *v);

/* The end of the pickle. CORRUPT unless the stack holds one value, which is a
 * container of a root kind. */
enum frag_err stack_stop(struct pickle *p);

/* Stores the top value in the memo under a number. */
enum frag_err refs_memoize(struct pickle *p, uint64_t number);

/* Sets *v to the value that the memo holds under a number. False if it holds
 * none or a container that is not complete; then *v is not defined. */
bool refs_find(struct pickle *p, uint64_t number, struct pickle_value *v);

/* Pushes the value that the memo holds under a number. */
enum frag_err refs_recall(struct pickle *p, uint64_t number);

/* Reads the first members of the dictionary that has just begun, or all of
 * them: those that the window holds and that are plain values. */
enum frag_err members_read(struct pickle *p);

#endif
