/* pickle.c - the opcodes. */
#include "traces/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "traces/pickle_stack.h"

enum {
    LONGEST = 9,       /* an opcode with its argument of known size */
    STEP = 1 << 20,    /* bytes between two ticks */
    TEXT_MAX = 1 << 24 /* bytes of one text */
};

/* Bytes */

static uint64_t little(const unsigned char *bytes, size_t count)
{
    uint64_t n = 0;

    while (count--)
        n = n << 8 | bytes[count];
    return n;
}

static uint64_t little8(const unsigned char *b)
{
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 |
           (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 |
           (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

static uint32_t little4(const unsigned char *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
           (uint32_t)b[3] << 24;
}

static size_t left(const struct pickle *p)
{
    return (size_t)(p->end - p->at);
}

/* Moves the window on to where the reader is. */
static enum frag_err refill(struct pickle *p)
{
    const size_t used = (size_t)(p->at - p->start);
    enum frag_err err = FRAG_OK;
    size_t count;

    if (p->schema->tick)
        FRAG_TRY(p->schema->tick(p->user, p->e));
    frag_source_skip(p->source, used);
    p->base += used;
    count =
        frag_source_peek(p->source, FRAG_SOURCE_WINDOW, &p->start, &err, p->e);
    p->at = p->end = p->start;
    FRAG_TRY(err);
    p->last = count < FRAG_SOURCE_WINDOW;
    p->end = p->start + (count < STEP ? count : STEP);
    return FRAG_OK;
}

static enum frag_err cut_short(const struct pickle *p)
{
    return pickle_bad(p, "the file ends inside the pickle");
}

/* The next `size` bytes, more than fit a window, in a buffer that grows as they
 * come: their number is only what the file claims. */
static enum frag_err take_long(struct pickle *p, size_t size,
                               const unsigned char **bytes)
{
    size_t have = 0;

    while (have < size) {
        size_t step = left(p) < size - have ? left(p) : size - have;

        if (!step) {
            FRAG_TRY(refill(p));
            if (!left(p))
                return cut_short(p);
            continue;
        }
        if (have + step > p->long_room) {
            unsigned char *more = realloc(p->long_bytes, 2 * (have + step));

            if (!more)
                return pickle_no_memory(p);
            p->long_bytes = more;
            p->long_room = 2 * (have + step);
        }
        memcpy(p->long_bytes + have, p->at, step);
        p->at += step;
        have += step;
    }
    *bytes = p->long_bytes;
    return FRAG_OK;
}

static enum frag_err take(struct pickle *p, size_t size,
                          const unsigned char **bytes)
{
    if (size > left(p) && size <= FRAG_SOURCE_WINDOW)
        FRAG_TRY(refill(p));
    if (size > left(p))
        return size <= FRAG_SOURCE_WINDOW ? cut_short(p)
                                          : take_long(p, size, bytes);
    *bytes = p->at;
    p->at += size;
    return FRAG_OK;
}

static enum frag_err pass_over(struct pickle *p, uint64_t size)
{
    while (size > left(p)) {
        size -= left(p);
        p->at = p->end;
        FRAG_TRY(refill(p));
        if (!left(p))
            return cut_short(p);
    }
    p->at += size;
    return FRAG_OK;
}

/* Opcodes: each gets its argument of known size. */

struct opcode {
    const char *name; /* NULL: no such opcode */
    uint8_t size;     /* bytes of the argument */
    enum frag_err (*run)(struct pickle *p, const unsigned char *arg);
};

#define RUN(name) \
    static enum frag_err run_##name(struct pickle *p, const unsigned char *arg)

static enum frag_err text(struct pickle *p, uint64_t size)
{
    const unsigned char *bytes = NULL;
    uint32_t n;

    if (size > TEXT_MAX)
        return pickle_bad(p, "expected a text of at most %d bytes", TEXT_MAX);
    FRAG_TRY(take(p, (size_t)size, &bytes));
    n = texts_add(&p->texts, bytes, (size_t)size);
    if (n == TEXT_NONE)
        return pickle_no_memory(p);
    return stack_push(p, (struct pickle_value){.tag = PICKLE_TEXT, .n = n});
}

static enum frag_err bytes_unused(struct pickle *p, uint64_t size)
{
    FRAG_TRY(pass_over(p, size));
    return stack_push_other(p);
}

/* A two's complement integer of any size, of which 64 bits are kept. */
static enum frag_err whole(struct pickle *p, uint64_t size)
{
    struct pickle_value v = {.tag = PICKLE_INT};
    const unsigned char *b = NULL;

    if (size > 9) {
        FRAG_TRY(pass_over(p, size));
        return stack_push(p, (struct pickle_value){.tag = PICKLE_HUGE});
    }
    FRAG_TRY(take(p, (size_t)size, &b));
    if (size == 9) {
        v.tag = b[8] ? PICKLE_HUGE : PICKLE_UINT;
        v.n = little8(b);
        if (!b[8] && v.n <= INT64_MAX)
            v.tag = PICKLE_INT;
    } else if (size) {
        v.n = little(b, (size_t)size);
        if (size < 8 && b[size - 1] >> 7)
            v.n |= UINT64_MAX << 8 * size;
    }
    return stack_push(p, v);
}

static enum frag_err truth(struct pickle *p, bool is_true)
{
    return stack_push(p,
                      (struct pickle_value){.tag = PICKLE_BOOL, .n = is_true});
}

#define IGNORE (void)arg

RUN(proto)
{
    if (*arg < 2 || *arg > 5)
        return pickle_bad(p, "expected a pickle of protocol 2 to 5, found %d",
                          *arg);
    return FRAG_OK;
}

/* How the file is cut into frames says nothing about its values. */
RUN(frame)
{
    (void)p, IGNORE;
    return FRAG_OK;
}

RUN(stop)
{
    IGNORE;
    return stack_stop(p);
}

RUN(mark)
{
    IGNORE;
    return stack_mark(p);
}

RUN(pop)
{
    IGNORE;
    return stack_pop(p);
}

RUN(pop_mark)
{
    IGNORE;
    return stack_pop_marked(p);
}

RUN(dup)
{
    IGNORE;
    return stack_dup(p);
}

RUN(none)
{
    IGNORE;
    return stack_push(p, (struct pickle_value){.tag = PICKLE_NONE});
}

RUN(true)
{
    IGNORE;
    return truth(p, true);
}

RUN(false)
{
    IGNORE;
    return truth(p, false);
}

RUN(int1)
{
    return stack_push_int(p, arg[0]);
}

RUN(int2)
{
    return stack_push_int(p, arg[0] | arg[1] << 8);
}

RUN(int4)
{
    return stack_push_int(p, (int32_t)little4(arg));
}

RUN(long1)
{
    return whole(p, arg[0]);
}

RUN(long4)
{
    const uint32_t size = little4(arg);

    if (size > INT32_MAX)
        return pickle_bad(p, "a LONG4 of negative size");
    return whole(p, size);
}

RUN(float)
{
    struct pickle_value v = {.tag = PICKLE_FLOAT};

    for (int i = 0; i < 8; i++)
        v.n = v.n << 8 | arg[i];
    return stack_push(p, v);
}

RUN(text1)
{
    return text(p, arg[0]);
}

RUN(text4)
{
    return text(p, little4(arg));
}

RUN(text8)
{
    return text(p, little8(arg));
}

RUN(bytes1)
{
    return bytes_unused(p, arg[0]);
}

RUN(bytes4)
{
    return bytes_unused(p, little4(arg));
}

RUN(bytes8)
{
    return bytes_unused(p, little8(arg));
}

RUN(empty_dict)
{
    IGNORE;
    return stack_begin(p, PICKLE_IS_DICT);
}

/* A set is a list as far as anyone here looks. */
RUN(empty_list)
{
    IGNORE;
    return stack_begin(p, PICKLE_IS_LIST);
}

RUN(set_items)
{
    IGNORE;
    return stack_put_marked(p, PICKLE_IS_DICT);
}

RUN(set_item)
{
    IGNORE;
    return stack_put_top(p, PICKLE_IS_DICT);
}

RUN(appends)
{
    IGNORE;
    return stack_put_marked(p, PICKLE_IS_LIST);
}

RUN(append)
{
    IGNORE;
    return stack_put_top(p, PICKLE_IS_LIST);
}

RUN(wrap)
{
    IGNORE;
    return stack_wrap_marked(p);
}

RUN(wrap0)
{
    IGNORE;
    return stack_push_other(p);
}

RUN(wrap1)
{
    IGNORE;
    return stack_wrap_top(p, 1);
}

RUN(wrap2)
{
    IGNORE;
    return stack_wrap_top(p, 2);
}

RUN(wrap3)
{
    IGNORE;
    return stack_wrap_top(p, 3);
}

RUN(memoize)
{
    IGNORE;
    return stack_memoize(p, p->memo.next++);
}

RUN(put1)
{
    return stack_memoize(p, arg[0]);
}

RUN(put4)
{
    return stack_memoize(p, little4(arg));
}

RUN(get1)
{
    return stack_recall(p, arg[0]);
}

RUN(get4)
{
    return stack_recall(p, little4(arg));
}

/* Refusals */

static const char *name_of(const struct pickle *p);

RUN(call)
{
    IGNORE;
    return pickle_bad(p,
                      "the pickle wants to call a function (%s); a snapshot "
                      "never does",
                      name_of(p));
}

RUN(outside)
{
    IGNORE;
    return pickle_bad(p,
                      "the pickle wants something from outside of it (%s); a "
                      "snapshot never does",
                      name_of(p));
}

RUN(old)
{
    IGNORE;
    return pickle_bad(
        p, "%s is an opcode of protocols 0 and 1, expected 2 to 5", name_of(p));
}

static const struct opcode opcodes[256] = {
    /* clang-format off */
    [0x80] = {"PROTO", 1, run_proto},
    [0x95] = {"FRAME", 8, run_frame},
    ['.']  = {"STOP", 0, run_stop},
    ['(']  = {"MARK", 0, run_mark},
    ['0']  = {"POP", 0, run_pop},
    ['1']  = {"POP_MARK", 0, run_pop_mark},
    ['2']  = {"DUP", 0, run_dup},
    ['N']  = {"NONE", 0, run_none},
    [0x88] = {"NEWTRUE", 0, run_true},
    [0x89] = {"NEWFALSE", 0, run_false},
    ['K']  = {"BININT1", 1, run_int1},
    ['M']  = {"BININT2", 2, run_int2},
    ['J']  = {"BININT", 4, run_int4},
    [0x8a] = {"LONG1", 1, run_long1},
    [0x8b] = {"LONG4", 4, run_long4},
    ['G']  = {"BINFLOAT", 8, run_float},
    [0x8c] = {"SHORT_BINUNICODE", 1, run_text1},
    ['X']  = {"BINUNICODE", 4, run_text4},
    [0x8d] = {"BINUNICODE8", 8, run_text8},
    ['U']  = {"SHORT_BINSTRING", 1, run_text1},
    ['T']  = {"BINSTRING", 4, run_text4},
    ['C']  = {"SHORT_BINBYTES", 1, run_bytes1},
    ['B']  = {"BINBYTES", 4, run_bytes4},
    [0x8e] = {"BINBYTES8", 8, run_bytes8},
    [0x96] = {"BYTEARRAY8", 8, run_bytes8},
    ['}']  = {"EMPTY_DICT", 0, run_empty_dict},
    ['u']  = {"SETITEMS", 0, run_set_items},
    ['s']  = {"SETITEM", 0, run_set_item},
    ['d']  = {"DICT", 0, run_wrap},
    [']']  = {"EMPTY_LIST", 0, run_empty_list},
    ['e']  = {"APPENDS", 0, run_appends},
    ['a']  = {"APPEND", 0, run_append},
    ['l']  = {"LIST", 0, run_wrap},
    [0x8f] = {"EMPTY_SET", 0, run_empty_list},
    [0x90] = {"ADDITEMS", 0, run_appends},
    [0x91] = {"FROZENSET", 0, run_wrap},
    [')']  = {"EMPTY_TUPLE", 0, run_wrap0},
    [0x85] = {"TUPLE1", 0, run_wrap1},
    [0x86] = {"TUPLE2", 0, run_wrap2},
    [0x87] = {"TUPLE3", 0, run_wrap3},
    ['t']  = {"TUPLE", 0, run_wrap},
    [0x94] = {"MEMOIZE", 0, run_memoize},
    ['q']  = {"BINPUT", 1, run_put1},
    ['r']  = {"LONG_BINPUT", 4, run_put4},
    ['h']  = {"BINGET", 1, run_get1},
    ['j']  = {"LONG_BINGET", 4, run_get4},

    ['c']  = {"GLOBAL", 0, run_call},
    [0x93] = {"STACK_GLOBAL", 0, run_call},
    ['R']  = {"REDUCE", 0, run_call},
    ['b']  = {"BUILD", 0, run_call},
    ['i']  = {"INST", 0, run_call},
    ['o']  = {"OBJ", 0, run_call},
    [0x81] = {"NEWOBJ", 0, run_call},
    [0x92] = {"NEWOBJ_EX", 0, run_call},
    [0x82] = {"EXT1", 0, run_call},
    [0x83] = {"EXT2", 0, run_call},
    [0x84] = {"EXT4", 0, run_call},
    ['P']  = {"PERSID", 0, run_outside},
    ['Q']  = {"BINPERSID", 0, run_outside},
    [0x97] = {"NEXT_BUFFER", 0, run_outside},
    [0x98] = {"READONLY_BUFFER", 0, run_outside},
    ['I']  = {"INT", 0, run_old},
    ['L']  = {"LONG", 0, run_old},
    ['F']  = {"FLOAT", 0, run_old},
    ['S']  = {"STRING", 0, run_old},
    ['V']  = {"UNICODE", 0, run_old},
    ['g']  = {"GET", 0, run_old},
    ['p']  = {"PUT", 0, run_old},
    /* clang-format on */
};

/* Of an opcode without argument that is being run. */
static const char *name_of(const struct pickle *p)
{
    return opcodes[p->at[-1]].name;
}

static enum frag_err step(struct pickle *p)
{
    const struct opcode *op;
    const unsigned char *arg;

    if (left(p) < LONGEST && !p->last)
        FRAG_TRY(refill(p));
    p->where = p->base + (uint64_t)(p->at - p->start);
    if (!left(p))
        return cut_short(p);
    op = &opcodes[*p->at];
    if (!op->name)
        return pickle_bad(p, "0x%02x is no opcode of a pickle", *p->at);
    arg = p->at + 1;
    if (left(p) < 1u + op->size)
        return cut_short(p);
    p->at = arg + op->size;
    return op->run(p, arg);
}

/* The reader */

static bool add_words(struct pickle *p)
{
    const struct pickle_schema *s = p->schema;

    for (size_t i = 0; i < s->word_count; i++)
        if (texts_add(&p->texts, s->words[i], strlen(s->words[i])) != i)
            return false;
    return true;
}

struct pickle *pickle_open(struct frag_source *source,
                           const struct pickle_schema *schema, void *user)
{
    struct pickle *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->source = source;
    p->schema = schema;
    p->user = user;
    p->base = frag_source_offset(source);
    if (!add_words(p)) {
        pickle_close(p);
        return NULL;
    }
    return p;
}

void pickle_close(struct pickle *p)
{
    if (!p)
        return;
    free(p->stack);
    free(p->marks);
    free(p->long_bytes);
    memo_fini(&p->memo);
    texts_fini(&p->texts);
    free(p);
}

enum frag_err pickle_read(struct pickle *p, struct frag_error *e)
{
    p->e = e;
    FRAG_TRY(refill(p));
    if (!left(p) || *p->at != 0x80)
        return pickle_bad(p, "expected a pickle (PROTO)");
    while (!p->stopped)
        FRAG_TRY(step(p));
    frag_source_skip(p->source, (size_t)(p->at - p->start));
    p->start = p->at;
    return FRAG_OK;
}

const char *pickle_text(const struct pickle *p, uint64_t number, size_t *length)
{
    *length = p->texts.rows[number].length;
    return p->texts.rows[number].at;
}

void pickle_pair(const struct pickle *p, uint64_t number, uint64_t pair[2])
{
    memcpy(pair, p->texts.rows[number].at, 2 * sizeof(*pair));
}

uint64_t pickle_text_count(const struct pickle *p)
{
    return p->texts.count;
}

uint64_t pickle_where(const struct pickle *p)
{
    return p->where;
}
