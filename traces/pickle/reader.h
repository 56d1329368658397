/* reader.h - the parts of a pickle reader, each of which calls those before it
 * only: its window and words (reader.c), its stack (stack.c), its references
 * (refs.c), its opcodes (ops.c). Private to traces/pickle/.
 *
 * A container is open from the opcode that makes it until something shows that
 * nothing more will be put in: it is put into another one, or the next one of
 * its kind begins. Then it is sealed: its record becomes one DONE (neighbours
 * are counted, not stacked, so a list of a million entries under one MARK needs
 * one value), or a RESULT.
 */
#ifndef FRAG_TRACES_PICKLE_READER_H
#define FRAG_TRACES_PICKLE_READER_H

#include "traces/pickle/memo.h"
#include "traces/pickle/pickle.h"
#include "traces/pickle/text.h"

struct pickle {
    struct frag_source *source;
    const struct pickle_schema *schema;
    void *user;
    struct frag_error *e;

    struct pickle_value *stack;
    size_t count, room;
    size_t *marks; /* where the MARKs are on the stack */
    size_t mark_count, mark_room;
    size_t open_at[PICKLE_KINDS]; /* 1 + where the open one is; 0: none */

    struct memo memo;
    struct texts texts;

    const unsigned char *start, *at, *end; /* the window; at is read next */
    uint64_t base;                         /* offset of start */
    uint64_t where;                        /* offset of the opcode */
    bool last;                             /* the input ends with the window */
    bool stopped;
    unsigned char *long_bytes; /* a text longer than a window */
    size_t long_room;
};

enum frag_err pickle_bad(const struct pickle *p, const char *format, ...)
    FRAG_PRINTF(2, 3);
enum frag_err pickle_no_memory(const struct pickle *p);

/* The window: bytes that are there, the next `size` in a row (*bytes is valid
 * until the next call), and past the next `size`. */
static inline size_t bytes_left(const struct pickle *p)
{
    return (size_t)(p->end - p->at);
}

/* Moves the window on to where the reader is. */
enum frag_err bytes_refill(struct pickle *p);

enum frag_err bytes_take(struct pickle *p, size_t size,
                         const unsigned char **bytes);
enum frag_err bytes_skip(struct pickle *p, uint64_t size);

/* CORRUPT: the input ends too early. */
enum frag_err bytes_cut_short(const struct pickle *p);

uint64_t bytes_little(const unsigned char *bytes, size_t count);

/* An opcode; run gets its argument of known size. */
struct opcode {
    const char *name; /* NULL: there is none */
    uint8_t size;     /* bytes of the argument */
    enum frag_err (*run)(struct pickle *p, const unsigned char *arg);
};

enum { OPCODE_MAX = 9, OPCODE_PROTO = 0x80 }; /* bytes with the argument */

extern const struct opcode opcodes[256];

enum frag_err stack_grow(struct pickle *p); /* CORRUPT: too deep */

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

enum frag_err stack_mark(struct pickle *p);

/* Begins a container at the top. */
enum frag_err stack_begin(struct pickle *p, enum pickle_shape shape);

/* Puts what is above the last MARK, or the top one or two values, into the
 * container below it. */
enum frag_err stack_put_marked(struct pickle *p, enum pickle_shape shape);
enum frag_err stack_put_top(struct pickle *p, enum pickle_shape shape);

/* Makes a value of what is above the last MARK, or a tuple of the top count
 * values: a pair, or something of no use. */
enum frag_err stack_wrap_marked(struct pickle *p, bool is_tuple);
enum frag_err stack_wrap_top(struct pickle *p, size_t count);

enum frag_err stack_pop(struct pickle *p);
enum frag_err stack_pop_marked(struct pickle *p);
enum frag_err stack_dup(struct pickle *p);

/* Completes an open container, *v on the stack. */
enum frag_err stack_seal(struct pickle *p, struct pickle_value *v);

/* The pickle's end: one complete value of a kind that the schema has. */
enum frag_err stack_stop(struct pickle *p);

/* The memo: the top value gets a number; a number's value is pushed. */
enum frag_err refs_memoize(struct pickle *p, uint64_t number);
enum frag_err refs_recall(struct pickle *p, uint64_t number);

#endif
