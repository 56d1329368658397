/* ops.c - the opcodes of a pickle: those that build plain values are run, all
 * others are refused with a message. Python's module pickletools documents the
 * opcodes. */
#include "traces/importer.h"
#include "traces/pickle/reader.h"

enum { TEXT_MAX = 1 << 24 }; /* bytes of one text */

#define RUN(name) \
    static enum frag_err run_##name(struct pickle *p, const unsigned char *arg)

/* Reads a text of `size` bytes and pushes it. */
static enum frag_err text(struct pickle *p, uint64_t size)
{
    const unsigned char *bytes = NULL;
    uint32_t n;

    if (size > TEXT_MAX)
        return pickle_bad(p,
                          "expected a text of at most %d bytes, found a longer "
                          "one",
                          TEXT_MAX);
    FRAG_TRY(bytes_read(p, (size_t)size, &bytes));
    n = texts_add(&p->texts, bytes, (size_t)size);
    if (n == TEXT_NONE)
        return pickle_no_memory(p);
    return stack_push(p, (struct pickle_value){.tag = PICKLE_TEXT, .n = n});
}

/* Skips a byte string, which no schema uses. */
static enum frag_err bytes_unused(struct pickle *p, uint64_t size)
{
    FRAG_TRY(bytes_skip(p, size));
    return stack_push_other(p);
}

/* Returns the lowest `size` bytes of n, 1 to 8, with the sign of their highest
 * bit. */
static uint64_t sign_extended(uint64_t n, unsigned size)
{
    const uint64_t sign = (uint64_t)1 << (8 * size - 1);

    n &= sign | (sign - 1);
    return (n ^ sign) - sign;
}

/* Reads a two's complement integer of `size` bytes, little-endian, and pushes
 * it. An integer of more than 64 bits is pushed as HUGE, without its value. */
static enum frag_err whole(struct pickle *p, uint64_t size)
{
    struct pickle_value v = {.tag = PICKLE_INT};
    const unsigned char *b = NULL;

    if (size > 9) {
        FRAG_TRY(bytes_skip(p, size));
        return stack_push(p, (struct pickle_value){.tag = PICKLE_HUGE});
    }
    FRAG_TRY(bytes_read(p, (size_t)size, &b));
    if (size == 9) {
        v.tag = b[8] ? PICKLE_HUGE : PICKLE_UINT;
        v.n = bytes_little8(b);
        if (!b[8] && v.n <= INT64_MAX)
            v.tag = PICKLE_INT;
    } else if (size) {
        /* One load of 8 bytes is faster than a loop over `size` bytes. */
        const uint64_t n = bytes_left(p) + size >= 8
                               ? bytes_little8(b)
                               : bytes_little(b, (size_t)size);

        v.n = sign_extended(n, (unsigned)size);
    }
    return stack_push(p, v);
}

static enum frag_err truth(struct pickle *p, bool is_true)
{
    return stack_push(p,
                      (struct pickle_value){.tag = PICKLE_BOOL, .n = is_true});
}

#define IGNORE (void)arg

/* An opcode that does nothing but return `result`. */
#define RUN_IS(name, result) \
    RUN(name)                \
    {                        \
        IGNORE;              \
        return result;       \
    }

RUN(proto)
{
    if (*arg < 2 || *arg > 5)
        return pickle_bad(p, "expected a pickle of protocol 2 to 5, found %d",
                          *arg);
    return FRAG_OK;
}

/* FRAME only tells a reader how many bytes to read ahead. */
RUN(frame)
{
    (void)p, IGNORE;
    return FRAG_OK;
}

RUN_IS(stop, stack_stop(p))
RUN_IS(mark, stack_mark(p))
RUN_IS(pop, stack_pop(p))
RUN_IS(pop_mark, stack_pop_marked(p))
RUN_IS(dup, stack_dup(p))
RUN_IS(none, stack_push(p, (struct pickle_value){.tag = PICKLE_NONE}))
RUN_IS(yes, truth(p, true))
RUN_IS(no, truth(p, false))
RUN_IS(int1, stack_push_int(p, arg[0]))
RUN_IS(int2, stack_push_int(p, arg[0] | arg[1] << 8))
RUN_IS(int4, stack_push_int(p, (int32_t)bytes_little4(arg)))
RUN_IS(long1, whole(p, arg[0]))

RUN(long4)
{
    const uint32_t size = bytes_little4(arg);

    if (size > INT32_MAX)
        return pickle_bad(p, "expected a LONG4 of at least 0 bytes, found a "
                             "negative size");
    return whole(p, size);
}

RUN(float)
{
    struct pickle_value v = {.tag = PICKLE_FLOAT};

    for (int i = 0; i < 8; i++)
        v.n = v.n << 8 | arg[i];
    return stack_push(p, v);
}

RUN_IS(text1, text(p, arg[0]))
RUN_IS(text4, text(p, bytes_little4(arg)))
RUN_IS(text8, text(p, bytes_little8(arg)))
RUN_IS(bytes1, bytes_unused(p, arg[0]))
RUN_IS(bytes4, bytes_unused(p, bytes_little4(arg)))
RUN_IS(bytes8, bytes_unused(p, bytes_little8(arg)))

RUN(empty_dict)
{
    IGNORE;
    FRAG_TRY(stack_begin(p, PICKLE_IS_DICT));
    return members_read(p);
}

/* EMPTY_SET also runs this: no schema names a set, so it may be a list. */
RUN_IS(empty_list, stack_begin(p, PICKLE_IS_LIST))
RUN_IS(set_items, stack_put_marked(p, PICKLE_IS_DICT))
RUN_IS(set_item, stack_put_top(p, PICKLE_IS_DICT))
RUN_IS(appends, stack_put_marked(p, PICKLE_IS_LIST))
RUN_IS(append, stack_put_top(p, PICKLE_IS_LIST))
RUN_IS(tuple, stack_wrap_marked(p, true))

/* LIST, DICT and FROZENSET create a container from the values above the MARK.
 * The reader cannot know the kind of such a container while its members are
 * read, so an OTHER replaces it. Picklers write lists and dictionaries with
 * EMPTY_LIST and EMPTY_DICT. */
RUN_IS(wrap, stack_wrap_marked(p, false))
RUN_IS(wrap0, stack_push_other(p))
RUN_IS(wrap1, stack_wrap_top(p, 1))
RUN_IS(wrap2, stack_wrap_top(p, 2))
RUN_IS(wrap3, stack_wrap_top(p, 3))
RUN_IS(memoize, refs_memoize(p, p->memo.next++))
RUN_IS(put1, refs_memoize(p, arg[0]))
RUN_IS(put4, refs_memoize(p, bytes_little4(arg)))
RUN_IS(get1, refs_recall(p, arg[0]))
RUN_IS(get4, refs_recall(p, bytes_little4(arg)))

/* Opcodes that are refused */

/* The name of the current opcode, which has no fixed argument. */
static const char *name_of(const struct pickle *p)
{
    return opcodes[p->at[-1]].name;
}

RUN(call)
{
    IGNORE;
    return pickle_bad(p,
                      "expected the plain values of a snapshot, found the "
                      "opcode %s, which calls a function, as in a checkpoint "
                      "or a state dict; " FRAG_RECORD_SNAPSHOT,
                      name_of(p));
}

RUN(outside)
{
    IGNORE;
    return pickle_bad(p,
                      "expected plain values, found the opcode %s, which "
                      "refers to data outside of the pickle; a snapshot has "
                      "none",
                      name_of(p));
}

RUN(old)
{
    IGNORE;
    return pickle_bad(
        p, "expected an opcode of protocols 2 to 5, found %s of 0 or 1",
        name_of(p));
}

const struct opcode opcodes[256] = {
    /* clang-format off */
    [0x80] = {"PROTO", 1, run_proto},
    [0x95] = {"FRAME", 8, run_frame},
    ['.']  = {"STOP", 0, run_stop},
    [OPCODE_MARK]  = {"MARK", 0, run_mark},
    ['0']  = {"POP", 0, run_pop},
    ['1']  = {"POP_MARK", 0, run_pop_mark},
    ['2']  = {"DUP", 0, run_dup},
    [OPCODE_NONE]  = {"NONE", 0, run_none},
    [OPCODE_TRUE] = {"NEWTRUE", 0, run_yes},
    [OPCODE_FALSE] = {"NEWFALSE", 0, run_no},
    [OPCODE_BININT1]  = {"BININT1", 1, run_int1},
    [OPCODE_BININT2]  = {"BININT2", 2, run_int2},
    [OPCODE_BININT]  = {"BININT", 4, run_int4},
    [OPCODE_LONG1] = {"LONG1", 1, run_long1},
    [0x8b] = {"LONG4", 4, run_long4},
    ['G']  = {"BINFLOAT", 8, run_float},
    [OPCODE_TEXT1] = {"SHORT_BINUNICODE", 1, run_text1},
    ['X']  = {"BINUNICODE", 4, run_text4},
    [0x8d] = {"BINUNICODE8", 8, run_text8},
    ['U']  = {"SHORT_BINSTRING", 1, run_text1},
    ['T']  = {"BINSTRING", 4, run_text4},
    ['C']  = {"SHORT_BINBYTES", 1, run_bytes1},
    ['B']  = {"BINBYTES", 4, run_bytes4},
    [0x8e] = {"BINBYTES8", 8, run_bytes8},
    [0x96] = {"BYTEARRAY8", 8, run_bytes8},
    ['}']  = {"EMPTY_DICT", 0, run_empty_dict},
    [OPCODE_SETITEMS]  = {"SETITEMS", 0, run_set_items},
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
    [OPCODE_TUPLE2] = {"TUPLE2", 0, run_wrap2},
    [0x87] = {"TUPLE3", 0, run_wrap3},
    ['t']  = {"TUPLE", 0, run_tuple},
    [OPCODE_MEMOIZE] = {"MEMOIZE", 0, run_memoize},
    ['q']  = {"BINPUT", 1, run_put1},
    ['r']  = {"LONG_BINPUT", 4, run_put4},
    [OPCODE_BINGET] = {"BINGET", 1, run_get1},
    [OPCODE_LONG_BINGET] = {"LONG_BINGET", 4, run_get4},

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
