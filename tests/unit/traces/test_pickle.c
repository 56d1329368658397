/* test_pickle.c - tests the pickle reader: every opcode by hand, every refusal,
 * and the properties of containers in any order in which a pickler may write
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/pickle/pickle.h"

/* A schema in small: a list of anything, or a dict with "rows", a list of dicts
 * that are read once, and "names", a list of dicts that may be shared. */
enum { W_rows, W_names, W_size, W_frames, WORD_COUNT };
enum { K_OTHER, K_ROOT, K_ANY, K_ROWS, K_ROW, K_NAMES, K_NAME, KIND_COUNT };

static const char *const words[] = {"rows", "names", "size", "frames"};

/* The values that a reader received, as text. */
struct heard {
    struct pickle *p;
    char text[4000];
    size_t length;
    uint32_t names;
    uint64_t places; /* sum of the offsets at which values were received */
};

static void say(struct heard *h, const char *format, ...) FRAG_PRINTF(2, 3);
static void say(struct heard *h, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    h->length += (size_t)vsnprintf(h->text + h->length,
                                   sizeof(h->text) - h->length, format, args);
    va_end(args);
    assert_true(h->length < sizeof(h->text));
}

static void say_value(struct heard *h, const struct pickle_value *v)
{
    uint64_t pair[2];
    size_t length;
    const char *text;

    switch ((enum pickle_tag)v->tag) {
    case PICKLE_INT:
        say(h, "%" PRId64 " ", (int64_t)v->n);
        break;
    case PICKLE_UINT:
        say(h, "%" PRIu64 "u ", v->n);
        break;
    case PICKLE_FLOAT:
        say(h, "%g ", v->f);
        break;
    case PICKLE_BOOL:
        say(h, "%s ", v->n ? "True" : "False");
        break;
    case PICKLE_TEXT:
        text = pickle_text(h->p, v->n, &length);
        say(h, "'%.*s' ", length > 20 ? 20 : (int)length, text);
        break;
    case PICKLE_PAIR:
        pickle_pair(h->p, v->n, pair);
        say(h, "(%" PRIu64 " %" PRIu64 ") ", pair[0], pair[1]);
        break;
    case PICKLE_RESULT:
        say(h, "=%" PRIu64 " ", v->n);
        break;
    case PICKLE_DONE:
        say(h, "%" PRIu64 "x%d ", v->n, v->kind);
        break;
    default:
        say(h, "%s ", pickle_describe(h->p, v));
    }
}

static enum frag_err on_begin(void *user, uint8_t kind, struct frag_error *e)
{
    (void)e;
    say(user, "%c", "?{a[r[n"[kind]);
    return FRAG_OK;
}

static enum frag_err on_elements(void *user, uint8_t kind,
                                 const struct pickle_value *items, size_t count,
                                 struct frag_error *e)
{
    struct heard *h = user;

    (void)kind, (void)e;
    h->places += pickle_where(h->p);
    while (count--)
        say_value(h, items++);
    return FRAG_OK;
}

static enum frag_err on_pairs(void *user, uint8_t kind,
                              const struct pickle_value *items, size_t count,
                              struct frag_error *e)
{
    return on_elements(user, kind, items, 2 * count, e);
}

static enum frag_err on_seal(void *user, uint8_t kind, uint32_t *result,
                             struct frag_error *e)
{
    struct heard *h = user;

    (void)e;
    if (kind == K_NAME)
        *result = ++h->names;
    say(h, "%c", " }a]R]N"[kind]);
    return FRAG_OK;
}

static const struct pickle_member root_members[] = {
    {W_rows, K_ROWS}, {W_names, K_NAMES}, {0, 0}};

#define LIST_KIND(text, of)                                                 \
    &(const struct pickle_kind)                                             \
    {                                                                       \
        .name = text, .element = of, .begin = on_begin, .add = on_elements, \
        .seal = on_seal                                                     \
    }
#define DICT_KIND(text, keep, has)                                            \
    &(const struct pickle_kind)                                               \
    {                                                                         \
        .name = text, .shape = PICKLE_IS_DICT, .keeps = keep, .members = has, \
        .begin = on_begin, .add = on_pairs, .seal = on_seal                   \
    }

static const struct pickle_kind *const kinds[] = {
    [K_OTHER] = &(const struct pickle_kind){.name = "something else"},
    [K_ROOT] = DICT_KIND("the root", false, root_members),
    [K_ANY] = LIST_KIND("the list", K_OTHER),
    [K_ROWS] = LIST_KIND("a list of rows", K_ROW),
    [K_ROW] = DICT_KIND("a row", false, NULL),
    [K_NAMES] = LIST_KIND("a list of names", K_NAME),
    [K_NAME] = DICT_KIND("a name", true, NULL),
};

static const struct pickle_schema schema = {
    .words = words,
    .word_count = WORD_COUNT,
    .kinds = kinds,
    .kind_count = KIND_COUNT,
    .root_dict = K_ROOT,
    .root_list = K_ANY,
    .anywhere = {W_names, K_NAMES},
};

static enum frag_err read_once(const void *bytes, size_t size, struct heard *h,
                               struct frag_error *e)
{
    struct frag_source *s;
    enum frag_err err;

    *h = (struct heard){0};
    *e = (struct frag_error){""};
    FRAG_TRY(frag_source_open_memory("it", bytes, size, &s, e));
    h->p = pickle_open(s, &schema, h);
    assert_non_null(h->p);
    err = pickle_read(h->p, e);
    pickle_close(h->p);
    frag_source_close(s);
    return err;
}

/* Reads a copy of a pickle with `behind` zeros behind it. */
static enum frag_err read_copy(const void *bytes, size_t size, size_t behind,
                               struct heard *h, struct frag_error *e)
{
    unsigned char *copy = calloc(1, size + behind + 1);
    enum frag_err err;

    if (size)
        memcpy(copy + 1, bytes, size);
    err = read_once(copy + 1, size + behind, h, e);
    free(copy);
    return err;
}

/* Reads a pickle, and reads it again with other bytes behind it. Only then does
 * the reader read the members of a short dictionary at once; nothing else may
 * differ. */
static enum frag_err read_bytes(const void *bytes, size_t size, struct heard *h,
                                struct frag_error *e)
{
    const enum frag_err err = read_copy(bytes, size, 0, h, e);
    struct heard h2;
    struct frag_error e2;

    if (strstr(e->text, "the input ends"))
        return err;
    assert_int_equal(read_copy(bytes, size, 1000, &h2, &e2), err);
    assert_string_equal(h2.text, h->text);
    assert_int_equal(h2.places, h->places);
    assert_string_equal(e2.text, e->text);
    return err;
}

struct row {
    const char *name, *bytes;
    size_t size;
    const char *expected;
};
#define ROW(name, bytes, expected)               \
    {                                            \
        name, bytes, sizeof(bytes) - 1, expected \
    }

/* Each is put between PROTO EMPTY_LIST and APPEND STOP. */
static const struct row values[] = {
    ROW("NONE", "N", "None "),
    ROW("NEWTRUE", "\x88", "True "),
    ROW("NEWFALSE", "\x89", "False "),
    ROW("BININT1", "K\xff", "255 "),
    ROW("BININT2", "M\xfe\xff", "65534 "),
    ROW("BININT", "J\xfe\xff\xff\xff", "-2 "),
    ROW("BININT of 4 bytes", "J\x01\x02\x03\x04", "67305985 "),
    ROW("LONG1 of none", "\x8a\0", "0 "),
    ROW("LONG1 of one", "\x8a\1\x80", "-128 "),
    ROW("LONG1 of six", "\x8a\6\0\0\0\0\xff\x7f", "140733193388032 "),
    ROW("LONG1 of eight", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
        "9223372036854775807 "),
    ROW("LONG1 below zero", "\x8a\x08\0\0\0\0\0\0\0\x80",
        "-9223372036854775808 "),
    ROW("LONG1 of nine", "\x8a\x09\0\0\0\0\0\0\0\x80\0",
        "9223372036854775808u "),
    ROW("LONG1 of 2^64", "\x8a\x09\0\0\0\0\0\0\0\0\1",
        "an integer of more than 64 bits "),
    ROW("LONG1 of ten", "\x8a\x0a\0\0\0\0\0\0\0\0\0\1",
        "an integer of more than 64 bits "),
    ROW("LONG4", "\x8b\2\0\0\0\x34\x12", "4660 "),
    ROW("BINFLOAT", "G?\xe3\x33\x33\x33\x33\x33\x33", "0.6 "),
    ROW("SHORT_BINUNICODE", "\x8c\3N/A", "'N/A' "),
    ROW("an empty text", "\x8c\0", "'' "),
    ROW("BINUNICODE", "X\2\0\0\0hi", "'hi' "),
    ROW("BINUNICODE8", "\x8d\2\0\0\0\0\0\0\0hi", "'hi' "),
    ROW("SHORT_BINSTRING", "U\2hi", "'hi' "),
    ROW("BINSTRING", "T\2\0\0\0hi", "'hi' "),
    ROW("SHORT_BINBYTES", "C\2hi", "a value of another type "),
    ROW("BINBYTES", "B\2\0\0\0hi", "a value of another type "),
    ROW("BINBYTES8", "\x8e\2\0\0\0\0\0\0\0hi", "a value of another type "),
    ROW("BYTEARRAY8", "\x96\2\0\0\0\0\0\0\0hi", "a value of another type "),
    ROW("EMPTY_TUPLE", ")", "a value of another type "),
    ROW("TUPLE1", "K\1\x85", "a value of another type "),
    ROW("TUPLE2", "K\1K\2\x86", "(1 2) "),
    ROW("TUPLE2 of texts", "\x8c\1aK\2\x86", "a value of another type "),
    ROW("TUPLE3", "K\1K\2K\3\x87", "a value of another type "),
    ROW("TUPLE of two", "(K\1K\2t", "(1 2) "),
    ROW("TUPLE of none", "(t", "a value of another type "),
    ROW("TUPLE of lists", "(]](K\1et", "a value of another type "),
    ROW("EMPTY_LIST", "]", "a value of another type "),
    ROW("LIST", "(K\1l", "a value of another type "),
    ROW("DICT", "(K\1K\2d", "a value of another type "),
    ROW("EMPTY_DICT, SETITEM", "}K\1K\2s", "a value of another type "),
    ROW("SETITEMS", "}(K\1K\2K\3K\4u", "a value of another type "),
    ROW("EMPTY_SET, ADDITEMS", "\x8f(K\1K\2\x90", "a value of another type "),
    ROW("FROZENSET", "(K\1\x91", "a value of another type "),
    ROW("FRAME", "\x95\2\0\0\0\0\0\0\0K\1", "1 "),
    ROW("POP",
        "K\1K\2"
        "0",
        "1 "),
    ROW("POP of a MARK", "K\1(0", "1 "),
    ROW("POP_MARK",
        "K\1(K\2K\3"
        "1",
        "1 "),
    ROW("DUP",
        "K\1"
        "2\x86",
        "(1 1) "),
    ROW("MEMOIZE, BINGET",
        "\x8c\1a\x94"
        "0h\0",
        "'a' "),
    ROW("BINPUT",
        "K\7q\1"
        "0h\1",
        "7 "),
    ROW("LONG_BINPUT, LONG_BINGET",
        "K\7r\2\0\0\0"
        "0j\2\0\0\0",
        "7 "),
    ROW("a memoized float",
        "G\x40\0\0\0\0\0\0\0\x94"
        "0h\0",
        "2 "),
    ROW("a memoized pair",
        "K\1K\2\x86\x94"
        "0h\0",
        "(1 2) "),
    ROW("a memoized None",
        "N\x94"
        "0h\0",
        "None "),
    ROW("a memoized list",
        "]\x94"
        "0h\0",
        "a value of another type "),
    ROW("a memo number set twice",
        "K\1q\1"
        "0K\2q\1"
        "0h\1",
        "2 "),
};

static void each_opcode_builds_its_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        const struct row *r = &values[i];
        unsigned char bytes[200];
        struct heard h;
        struct frag_error e;
        char expected[100];

        memcpy(bytes, "\x80\4]", 3);
        memcpy(bytes + 3, r->bytes, r->size);
        memcpy(bytes + 3 + r->size, "a.", 2);
        snprintf(expected, sizeof(expected), "a%sa", r->expected);
        if (read_bytes(bytes, r->size + 5, &h, &e) != FRAG_OK)
            fail_msg("%s: %s", r->name, e.text);
        if (strcmp(h.text, expected))
            fail_msg("%s: %s", r->name, h.text);
    }
}

static void what_could_call_a_function_is_refused(void **state)
{
    static const struct row rows[] = {
        ROW("GLOBAL", "cos\nsystem\n", ""),
        ROW("STACK_GLOBAL", "\x93", ""),
        ROW("REDUCE", "R", ""),
        ROW("BUILD", "b", ""),
        ROW("INST", "ios\nsystem\n", ""),
        ROW("OBJ", "o", ""),
        ROW("NEWOBJ", "\x81", ""),
        ROW("NEWOBJ_EX", "\x92", ""),
        ROW("EXT1", "\x82\1", ""),
        ROW("EXT2", "\x83\1\1", ""),
        ROW("EXT4", "\x84\1\1\1\1", ""),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char bytes[40] = "\x80\4]", words_of_it[120];
        struct heard h;
        struct frag_error e;

        memcpy(bytes + 3, rows[i].bytes, rows[i].size);
        assert_int_equal(read_bytes(bytes, rows[i].size + 3, &h, &e),
                         FRAG_CORRUPT);
        snprintf(
            words_of_it, sizeof(words_of_it),
            "it:3: expected the plain values of a snapshot, found the opcode "
            "%s, which calls a function",
            rows[i].name);
        assert_memory_equal(e.text, words_of_it, strlen(words_of_it));
    }
}

static void what_is_no_pickle_is_named_with_its_offset(void **state)
{
    static const struct row rows[] = {
        ROW("protocol", "\x80\6.",
            "it:0: expected a pickle of protocol 2 to 5"),
        ROW("protocol 1", "\x80\1.", "it:0: expected a pickle of protocol"),
        ROW("no PROTO", "].", "it:0: expected a pickle"),
        ROW("nothing", "", "it:0: expected a pickle"),
        ROW("PERSID", "\x80\4P1\n", "it:2: expected plain values"),
        ROW("BINPERSID", "\x80\4Q", "it:2: expected plain values"),
        ROW("NEXT_BUFFER", "\x80\5\x97", "it:2: expected plain values"),
        ROW("READONLY_BUFFER", "\x80\5\x98", "it:2: expected plain values"),
        ROW("INT", "\x80\2I1\n",
            "it:2: expected an opcode of protocols 2 to 5, found INT of"),
        ROW("LONG", "\x80\2L1L\n",
            "it:2: expected an opcode of protocols 2 to 5, found LONG of"),
        ROW("FLOAT", "\x80\2F1\n",
            "it:2: expected an opcode of protocols 2 to 5, found FLOAT of"),
        ROW("STRING", "\x80\2S''\n",
            "it:2: expected an opcode of protocols 2 to 5, found STRING of"),
        ROW("UNICODE", "\x80\2Va\n",
            "it:2: expected an opcode of protocols 2 to 5, found UNICODE of"),
        ROW("GET", "\x80\2g0\n",
            "it:2: expected an opcode of protocols 2 to 5, found GET of"),
        ROW("PUT", "\x80\2p0\n",
            "it:2: expected an opcode of protocols 2 to 5, found PUT of"),
        ROW("no opcode", "\x80\2\xff",
            "it:2: expected an opcode of a pickle, found 0xff"),
        ROW("an end too early", "\x80\2]", "it:3: the input ends at"),
        ROW("a cut dict", "\x80\2}", "it:3: the input ends at"),
        ROW("a cut argument", "\x80\2J\1\2", "it:2: the input ends at"),
        ROW("a cut text", "\x80\2\x8c\5ab", "it:2: the input ends at"),
        ROW("a long cut text", "\x80\2X\xff\xff\xff\0ab",
            "it:2: the input ends at"),
        ROW("a text too long", "\x80\2X\1\0\0\1ab",
            "it:2: expected a text of at most 16777216 bytes"),
        ROW("a cut LONG4", "\x80\2\x8b\xff\xff\xff\x7f",
            "it:2: the input ends at"),
        ROW("a LONG4 below zero", "\x80\2\x8b\xff\xff\xff\xff",
            "it:2: expected a LONG4 of at least 0 bytes"),
        ROW("bytes past the end", "\x80\4\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",
            "it:2: the input ends at"),
        ROW("STOP of nothing", "\x80\2.",
            "it:2: expected one value at the end"),
        ROW("STOP of two", "\x80\2]].", "it:4: expected one value at the end"),
        ROW("STOP under a MARK", "\x80\2](.", "it:4: expected one value"),
        ROW("a number", "\x80\2K\1.",
            "it:4: expected the root or the list, found an integer"),
        ROW("POP of nothing",
            "\x80\2"
            "0",
            "it:2: expected 1 values"),
        ROW("POP_MARK without",
            "\x80\2"
            "1",
            "it:2: expected a MARK"),
        ROW("DUP of nothing",
            "\x80\2"
            "2",
            "it:2: expected 1 values"),
        ROW("TUPLE without a MARK", "\x80\2]t", "it:3: expected a MARK"),
        ROW("TUPLE2 of one", "\x80\2K\1\x86", "it:4: expected 2 values"),
        ROW("TUPLE2 past a MARK", "\x80\2K\1(K\2\x86",
            "it:7: expected 2 values"),
        ROW("APPENDS without a MARK", "\x80\2]e", "it:3: expected a MARK"),
        ROW("APPENDS to nothing", "\x80\2(e",
            "it:3: expected a container below the MARK"),
        ROW("APPEND to nothing", "\x80\2]a", "it:3: expected 2 values"),
        ROW("APPEND to a number", "\x80\2K\1K\2a",
            "it:6: expected a list to put values in, found an integer"),
        ROW("APPEND to a dict", "\x80\2}K\2a", "it:5: expected a list"),
        ROW("SETITEMS to a list", "\x80\2](K\1K\2u", "it:8: expected a dict"),
        ROW("SETITEMS to a tuple", "\x80\2)(K\1K\2u", "it:8: expected a dict"),
        ROW("a key alone", "\x80\2}(K\1u",
            "it:6: expected a value after each key"),
        ROW("MEMOIZE of nothing", "\x80\4\x94", "it:2: expected a value to"),
        ROW("MEMOIZE of a MARK", "\x80\4(\x94", "it:3: expected a value to"),
        ROW("BINGET of nothing", "\x80\4h\5", "it:2: memo number 5 was never"),
        ROW("LONG_BINGET far away", "\x80\4j\xff\xff\xff\xff",
            "it:2: memo number 4294967295 was never set"),
        ROW("LONG_BINPUT far away", "\x80\4Nr\xff\xff\xff\x7f",
            "it:3: expected a memo number of at most 3, the offset in bytes, "
            "found 2147483647"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *r = &rows[i];
        struct heard h;
        struct frag_error e;
        enum frag_err err = read_bytes(r->bytes, r->size, &h, &e);

        if (err != FRAG_CORRUPT ||
            strncmp(e.text, r->expected, strlen(r->expected)))
            fail_msg("%s: %s", r->name, e.text);
    }
}

/* Texts of the schema, as SHORT_BINUNICODE. */
#define ROWS  "\x8c\4rows"
#define NAMES "\x8c\5names"
#define SIZE  "\x8c\4size"

static void containers_come_complete_in_every_pickler_s_order(void **state)
{
    static const struct row rows[] = {
        ROW("Python: memoized before it is filled, batches",
            "\x80\4}\x94(" ROWS "\x94]\x94(}\x94(" SIZE "\x94K\1u}\x94(h\4K\2u"
            "e(}\x94(h\4K\3ueu.",
            "{[r'size' 1 Rr'size' 2 R1x4 1x4 r'size' 3 R1x4 ]'rows' 1x3 }"),
        ROW("C++: memoized when it is full, one MARK for all",
            "\x80\2}(" ROWS "q\0](}(" SIZE "q\1K\1uq\2}(h\1K\2uq\3}(h\1K\3ueu"
            "q\4.",
            "{[r'size' 1 Rr'size' 2 Rr'size' 3 R2x4 1x4 ]'rows' 1x3 }"),
        ROW("one at a time", "\x80\4}" ROWS "]}" SIZE "K\1sa}" SIZE "K\2sas.",
            "{[r'size' 1 R1x4 r'size' 2 R1x4 ]'rows' 1x3 }"),
        ROW("a dict in two parts",
            "\x80\4}(" ROWS "](}(" SIZE "K\1u(" SIZE "K\2u}eu.",
            "{[r'size' 1 'size' 2 RrR1x4 1x4 ]'rows' 1x3 }"),
        ROW("what is shared stands for itself each time",
            "\x80\4}(" NAMES "](}\x94(" SIZE "K\1uh\0}(" SIZE "K\2uh\0eu.",
            "{[n'size' 1 Nn'size' 2 N=1 =1 =2 =1 ]'names' 1x5 }"),
        ROW("memoized when full and shared",
            "\x80\2}(" NAMES "](}(" SIZE "K\1uq\1h\1}q\2h\2h\1eu.",
            "{[n'size' 1 NnN=1 =1 =2 =2 =1 ]'names' 1x5 }"),
        ROW("lists of no interest are read over",
            "\x80\4}(\x8c\1x](}(\x8c\1y](}}}eu}}eu.",
            "{'x' a value of another type }"),
        ROW("a member with a kind in any dict",
            "\x80\4}(\x8c\1x}" NAMES "](}esu.",
            "{[nN=1 ]'x' a value of another type }"),
        ROW("a key of rows in the wrong dict",
            "\x80\4}(\x8c\1x}" ROWS "](}esu.",
            "{[rR1x4 ]'x' a value of another type }"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *r = &rows[i];
        struct heard h;
        struct frag_error e;

        if (read_bytes(r->bytes, r->size, &h, &e) != FRAG_OK)
            fail_msg("%s: %s", r->name, e.text);
        if (strcmp(h.text, r->expected))
            fail_msg("%s: %s", r->name, h.text);
    }
}

/* Pickles that are put together. */

struct long_pickle {
    unsigned char *bytes;
    size_t size;
};

static void add(struct long_pickle *l, const void *bytes, size_t size)
{
    memcpy(l->bytes + l->size, bytes, size);
    l->size += size;
}

/* An opcode with a number of four bytes, and POP unless it is kept. */
static void add_numbered(struct long_pickle *l, char op, uint32_t number,
                         bool kept)
{
    const unsigned char bytes[] = {(unsigned char)op,
                                   (unsigned char)(number & 255),
                                   (unsigned char)(number >> 8 & 255),
                                   (unsigned char)(number >> 16 & 255),
                                   0,
                                   '0'};

    add(l, bytes, kept ? 5 : 6);
}

/* The first row defines the key, the others refer to it. */
static void each_opcode_builds_a_member(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        const struct row *r = &values[i];
        unsigned char bytes[400] = "\x80\4}(" ROWS "](}(" SIZE "q\x10";
        struct long_pickle l = {bytes, 22};
        struct heard h;
        struct frag_error e;
        char expected[200];

        add(&l, r->bytes, r->size);
        add(&l, "u", 1);
        for (int k = 0; k < 2; k++) {
            add(&l, "}(h\x10", 4);
            add(&l, r->bytes, r->size);
            add(&l, "h\x10K\7u", 5);
        }
        add(&l, "eu.", 3);
        snprintf(expected, sizeof(expected),
                 "{[r'size' %sRr'size' %s'size' 7 Rr'size' %s'size' 7 R",
                 r->expected, r->expected, r->expected);
        if (read_bytes(l.bytes, l.size, &h, &e) != FRAG_OK)
            fail_msg("%s: %s", r->name, e.text);
        if (strncmp(h.text, expected, strlen(expected)))
            fail_msg("%s: %s", r->name, h.text);
    }
}

/* Rows after a first one that defines the references: 16 'size', 17 'x', 18 the
 * number 5, 19 the pair (1 2), 20 a list, 21 that first row, 22 a name. */
static void rows_differ_from_the_row_before(void **state)
{
    static const struct row rows[] = {
        ROW("the same keys", "}(h\x10K\1u}(h\x10K\2u",
            "r'size' 1 Rr'size' 2 R"),
        ROW("memoized rows", "}\x94(h\x10K\1u}\x94(h\x10h\0u",
            "r'size' 1 Rr'size' a reference to an object that was read "
            "before R"),
        ROW("other keys, more, fewer",
            "}(h\x10K\1h\x11K\2u}(h\x11K\3h\x10K\4u}(h\x10K\5u"
            "}(h\x10K\6h\x10K\7h\x11K\x08u",
            "r'size' 1 'x' 2 Rr'x' 3 'size' 4 Rr'size' 5 R"
            "r'size' 6 'size' 7 'x' 8 R"),
        ROW("a key whose number is set again",
            "}(h\x10K\1u\x8c\1zq\x10"
            "0}(h\x10K\2u}(j\x10\0\0\0K\3u",
            "r'size' 1 Rr'z' 2 Rr'z' 3 R"),
        ROW("a key that is a number",
            "}(h\x10K\1u}(h\x12K\2h\x10K\3u}(h\x10K\4u",
            "r'size' 1 Rr5 2 'size' 3 Rr'size' 4 R"),
        ROW("a key that is a number which is set again",
            "}(h\x12K\1u}(h\x12K\2uK\6q\x12"
            "0}(h\x12K\3u",
            "r5 1 Rr5 2 Rr6 3 R"),
        ROW("a key of a new number", "}(h\x10K\1u}(K\2K\3h\x10K\4u}(N\x88u",
            "r'size' 1 Rr2 3 'size' 4 RrNone True R"),
        ROW("texts",
            "}(h\x10\x8c\3N/Au}(h\x10\x8c\3N/Bu}(h\x10\x8c\6N/AN/Au"
            "}(h\x10\x8c\7N/AN/ABu}(h\x10\x8c\7N/AN/ACu"
            "}(h\x10\x8c\0u}(h\x10\x8c\3N/Au",
            "r'size' 'N/A' Rr'size' 'N/B' Rr'size' 'N/AN/A' R"
            "r'size' 'N/AN/AB' Rr'size' 'N/AN/AC' Rr'size' '' R"
            "r'size' 'N/A' R"),
        ROW("memoized texts",
            "}\x94(h\x10\x8c\1a\x94h\x11\x8c\1b\x94u}(h\x10h\1h\x11h\2u",
            "r'size' 'a' 'x' 'b' Rr'size' 'a' 'x' 'b' R"),
        ROW("a text that is used where it is defined",
            "}\x94(h\x10\x8c\1a\x94h\1K\1u", "r'size' 'a' 'a' 1 R"),
        ROW("pairs",
            "}(h\x10K\0M\0\1\x86\x94h\x11K\1u}(h\x10h\0h\x11K\2K\3\x86u"
            "}(h\x10K\1J\xff\xff\xff\xff\x8a\1\4\x87h\x11K\2u",
            "r'size' (0 256) 'x' 1 Rr'size' (0 256) 'x' (2 3) R"
            "r'size' a value of another type 'x' 2 R"),
        ROW("integers that are no pair",
            "}(h\x10K\1K\2K\3h\x11K\4u}(h\x11K\5\x86K\6u}(K\1K\2\x86K\7u",
            "r'size' 1 2 3 'x' 4 Rra value of another type 6 Rr(1 2) 7 R"),
        ROW("references",
            "}(h\x10h\x12h\x11h\x13h\x10h\x14h\x11h\x15h\x10h\x16u",
            "r'size' 5 'x' (1 2) 'size' a value of another type 'x' a "
            "reference to an object that was read before 'size' =1 R"),
        ROW("two parts", "}(h\x10K\1u(h\x10K\2u}(h\x10K\3uh\x10K\4s",
            "r'size' 1 'size' 2 Rr'size' 3 'size' 4 R"),
        ROW("no members", "}(u}(h\x10K\1u}(u", "rRr'size' 1 RrR"),
        ROW("a FRAME among members",
            "}(h\x10K\1\x95\1\0\0\0\0\0\0\0h\x11K\2u}(h\x10K\3u",
            "r'size' 1 'x' 2 Rr'size' 3 R"),
        ROW("a list among members", "}(h\x10K\1h\x11](K\2eh\x10K\3u}(h\x10K\4u",
            "r'size' 1 'x' a value of another type 'size' 3 Rr'size' 4 R"),
    };
    static const char first[] = "}(" SIZE "q\x10K\0\x8c\1xq\x11K\5q\x12" SIZE
                                "K\1K\2\x86q\x13" SIZE "]q\x14\x8c\5names]"
                                "(}q\26euq\25";

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        unsigned char bytes[600] = "\x80\4}(" ROWS "](";
        struct long_pickle l = {bytes, 12};
        const struct row *r = &rows[i];
        struct heard h;
        struct frag_error e;

        add(&l, first, sizeof(first) - 1);
        add(&l, r->bytes, r->size);
        add(&l, "eu.", 3);
        (void)read_bytes(l.bytes, l.size, &h, &e);
        if (!strstr(h.text, r->expected))
            fail_msg("%s: %s (%s)", r->name, h.text, e.text);
    }
}

static void a_row_has_any_number_of_members(void **state)
{
    (void)state;
    for (int count = 1; count < 60; count++) {
        unsigned char bytes[600] = "\x80\4}(" ROWS "](}(" SIZE "q\x10K\0u";
        struct long_pickle l = {bytes, 25};
        struct heard h;
        struct frag_error e;
        const char *at;
        int found = -1; /* one is in the first row */

        add(&l, "}(", 2);
        for (int i = 0; i < count; i++)
            add(&l, "h\x10K\1", 4);
        add(&l, "ueu.", 4);
        assert_int_equal(read_bytes(l.bytes, l.size, &h, &e), FRAG_OK);
        for (at = h.text; (at = strstr(at, "'size'")); at++)
            found++;
        assert_int_equal(found, count);
    }
}

/* The second row is shorter: after its last member no key follows. Its first
 * members are read at once, the last ones by their opcodes. */
static void a_long_row_ends_where_the_input_ends(void **state)
{
    unsigned char bytes[8000] = "\x80\4}(" ROWS "](}(" SIZE "q\x10K\0u}(";
    struct long_pickle l = {bytes, 27};
    struct heard h;
    struct frag_error e;

    (void)state;
    for (int i = 0; i < 25; i++) {
        if (i == 13)
            add(&l, "u}(", 3);
        add(&l, "h\x10\x8c\xff", 4);
        memset(l.bytes + l.size, 'a' + i, 255);
        l.size += 255;
    }
    add(&l, "ueu.", 4);
    assert_int_equal(read_bytes(l.bytes, l.size, &h, &e), FRAG_OK);
    assert_non_null(strstr(h.text, "'size' 'yyyyyyyyyyyyyyyyyyyy' R"));
}

static void what_was_handed_over_cannot_come_again(void **state)
{
    static const struct row rows[] = {
        ROW("a row twice", "\x80\4}(" ROWS "](}\x94h\0eu.",
            "it:16: expected a row in a list of rows, found a reference to "
            "an object that was read before"),
        ROW("a number among rows", "\x80\4}(" ROWS "](K\1eu.",
            "it:14: expected a row in a list of rows, found an integer"),
        ROW("a row that grows late",
            "\x80\4}(" ROWS "](}\x94}h\0" SIZE "K\1seu.",
            "it:25: expected a dict to put values in, found a reference"),
        ROW("a name in itself", "\x80\4}(" NAMES "](}\x94" SIZE "h\0seu.",
            "it:23: a name receives values after it was complete"),
        ROW("a list in its place", "\x80\4}(" ROWS "](]eu.",
            "it:13: expected a row in a list of rows, found a value of"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *r = &rows[i];
        struct heard h;
        struct frag_error e;
        enum frag_err err = read_bytes(r->bytes, r->size, &h, &e);

        if (err != FRAG_CORRUPT ||
            strncmp(e.text, r->expected, strlen(r->expected)))
            fail_msg("%s: %s", r->name, e.text);
    }
}

/* Pickles that are longer than a window, and deeper than the stack. */

static void a_million_rows_under_one_mark_need_no_stack(void **state)
{
    enum { ROWS_OF_IT = 1500000 };
    struct long_pickle l = {malloc(ROWS_OF_IT + 100), 0};
    struct heard *h = malloc(sizeof(*h));
    struct frag_error e;

    (void)state;
    add(&l, "\x80\2}(" ROWS "](", 12);
    memset(l.bytes + l.size, '}', ROWS_OF_IT);
    l.size += ROWS_OF_IT;
    add(&l, "eu.", 3);
    /* Only its members' calls are counted: the text has no room for all. */
    struct pickle_kind quiet_row = *kinds[K_ROW];
    const struct pickle_kind *quiet[KIND_COUNT];
    struct pickle_schema s = schema;
    struct frag_source *source;

    quiet_row.begin = NULL;
    quiet_row.seal = NULL;
    memcpy(quiet, kinds, sizeof(quiet));
    quiet[K_ROW] = &quiet_row;
    s.kinds = quiet;
    *h = (struct heard){0};
    assert_int_equal(
        frag_source_open_memory("it", l.bytes, l.size, &source, &e), FRAG_OK);
    h->p = pickle_open(source, &s, h);
    assert_int_equal(pickle_read(h->p, &e), FRAG_OK);
    assert_string_equal(h->text, "{[1499999x4 1x4 ]'rows' 1x3 }");
    pickle_close(h->p);
    frag_source_close(source);
    free(l.bytes);
    free(h);
}

static void a_stack_too_deep_is_refused(void **state)
{
    enum { DEPTH = 3000000 };
    struct long_pickle l = {malloc(DEPTH + 100), 0};
    struct heard h;
    struct frag_error e;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        l.size = 0;
        add(&l, "\x80\2", 2);
        memset(l.bytes + 2, "]("[i], DEPTH);
        l.size += DEPTH;
        assert_int_equal(read_bytes(l.bytes, l.size, &h, &e), FRAG_CORRUPT);
        assert_non_null(strstr(e.text, "values on the stack"));
    }
    free(l.bytes);
}

/* The value of the first member is one too many. */
static void members_count_as_values_of_the_stack(void **state)
{
    enum { DEPTH = 1 << 20 };
    struct long_pickle l = {malloc(DEPTH + 100), 0};
    char expected[80];
    struct heard h;
    struct frag_error e;

    (void)state;
    add(&l, "\x80\4" SIZE "q\2", 10);
    memset(l.bytes + l.size, '(', DEPTH - 4);
    l.size += DEPTH - 4;
    snprintf(expected, sizeof(expected), "it:%zu: expected at most 1048576",
             l.size + 4);
    add(&l, "}(h\2K\1u", 7);
    assert_int_equal(read_bytes(l.bytes, l.size, &h, &e), FRAG_CORRUPT);
    assert_memory_equal(e.text, expected, strlen(expected));
    free(l.bytes);
}

/* The sum of the integers, and the number of the other values. */
struct sum {
    uint64_t whole, others;
};

static enum frag_err sum_pairs(void *user, uint8_t kind,
                               const struct pickle_value *items, size_t count,
                               struct frag_error *e)
{
    struct sum *sum = user;

    (void)kind, (void)e;
    for (; count--; items += 2)
        if (items[1].tag == PICKLE_INT)
            sum->whole += items[1].n;
        else
            sum->others++;
    return FRAG_OK;
}

/* Rows of 20 bytes: 1 MiB, the longest window, is no multiple of it. */
static void rows_across_windows_are_whole(void **state)
{
    enum { COUNT = 120000 };
    struct long_pickle l = {malloc(COUNT * 20 + 3000), 0};
    struct pickle_kind row = *kinds[K_ROW];
    const struct pickle_kind *quiet[KIND_COUNT];
    struct pickle_schema s = schema;
    struct frag_source *source;
    struct frag_error e;
    struct sum sum = {0};
    struct pickle *p;

    (void)state;
    row.begin = NULL;
    row.seal = NULL;
    row.add = sum_pairs;
    for (size_t i = 0; i < KIND_COUNT; i++)
        quiet[i] = kinds[K_OTHER];
    quiet[K_ROOT] = &(struct pickle_kind){
        .name = "root", .shape = PICKLE_IS_DICT, .members = root_members};
    quiet[K_ROWS] = &(struct pickle_kind){.name = "rows", .element = K_ROW};
    quiet[K_ROW] = &row;
    s.kinds = quiet;
    add(&l, "\x80\4}(" ROWS "](}(" SIZE "q\x10K\0u", 25);
    for (uint32_t i = 0; i < COUNT; i++) {
        add(&l, "}\x94(h\x10", 5);
        add_numbered(&l, 'J', i, true);
        add(&l, "h\x10\x8c\3N/A\x94u", 9);
    }
    /* The last text has the last number: each row and its text has one. */
    add(&l, "}(h\x10K\1", 6);
    add_numbered(&l, 'j', 2 * COUNT - 1, true);
    add(&l, "K\2ueu.", 7);
    memset(l.bytes + l.size, 0, 2000);
    assert_int_equal(
        frag_source_open_memory("it", l.bytes, l.size + 2000, &source, &e),
        FRAG_OK);
    p = pickle_open(source, &s, &sum);
    if (pickle_read(p, &e) != FRAG_OK)
        fail_msg("%s", e.text);
    assert_int_equal(sum.whole, (uint64_t)COUNT * (COUNT - 1) / 2 + 3);
    assert_int_equal(sum.others, COUNT);
    pickle_close(p);
    frag_source_close(source);
    free(l.bytes);
}

static void a_text_longer_than_a_window_is_whole(void **state)
{
    enum { LENGTH = 300000 };
    struct long_pickle l = {malloc(2 * LENGTH + 100), 0};
    const unsigned char size[4] = {LENGTH & 255, LENGTH >> 8 & 255,
                                   LENGTH >> 16, 0};
    struct heard h;
    struct frag_error e;

    (void)state;
    /* The same text twice is one text: it was read whole both times. */
    add(&l, "\x80\2](", 4);
    for (int i = 0; i < 2; i++) {
        add(&l, "X", 1);
        add(&l, size, 4);
        memset(l.bytes + l.size, 'a', LENGTH);
        l.bytes[l.size + LENGTH - 1] = 'z';
        l.size += LENGTH;
    }
    add(&l, "e.", 2);
    assert_int_equal(read_bytes(l.bytes, l.size, &h, &e), FRAG_OK);
    assert_string_equal(h.text,
                        "a'aaaaaaaaaaaaaaaaaaaa' 'aaaaaaaaaaaaaaaaaaaa' a");
    free(l.bytes);
}

static uint32_t next_random(uint32_t *x)
{
    *x = *x * 1664525 + 1013904223;
    return *x >> 8;
}

/* Numbers in order and out of order, set again and read often. The judge is an
 * array. */
static void the_memo_keeps_every_number(void **state)
{
    enum { COUNT = 60000, READS = 1000 };
    /* How many different values a page has. */
    static const uint32_t spread[] = {1, 9, 15, 16, 17, 255, 256, 257};
    struct long_pickle l = {malloc(40 * COUNT), 0};
    uint32_t *judge = calloc(COUNT, sizeof(*judge)), x = 7;
    struct heard h;
    struct frag_error e;
    char expected[4000] = "a";
    size_t length = 1;

    (void)state;
    add(&l, "\x80\4]", 3);
    for (uint32_t i = 0; i < COUNT; i++) {
        const bool back = i % 4096 == 4095 && i > 8192;

        judge[i] = i % spread[i >> 12 & 7];
        add_numbered(&l, 'J', judge[i], true);
        add_numbered(&l, 'r', i, false);
        if (!back)
            continue;
        const uint32_t number = next_random(&x) % 8192;

        judge[number] = i;
        add_numbered(&l, 'J', i, true);
        add_numbered(&l, 'r', number, false);
    }
    for (uint32_t i = 0; i < 20000; i++)
        add_numbered(&l, 'j', 0x3001, false);
    for (uint32_t i = 0; i < READS; i++) {
        const uint32_t number = next_random(&x) % COUNT;

        add_numbered(&l, 'j', number, true);
        add(&l, "a", 1);
        length += (size_t)snprintf(expected + length, sizeof(expected) - length,
                                   "%u ", judge[number]);
    }
    add(&l, ".", 1);
    snprintf(expected + length, sizeof(expected) - length, "a");
    if (read_bytes(l.bytes, l.size, &h, &e) != FRAG_OK)
        fail_msg("%s", e.text);
    assert_string_equal(h.text, expected);
    free(l.bytes);
    free(judge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_opcode_builds_its_value),
        cmocka_unit_test(what_could_call_a_function_is_refused),
        cmocka_unit_test(what_is_no_pickle_is_named_with_its_offset),
        cmocka_unit_test(containers_come_complete_in_every_pickler_s_order),
        cmocka_unit_test(each_opcode_builds_a_member),
        cmocka_unit_test(rows_differ_from_the_row_before),
        cmocka_unit_test(a_row_has_any_number_of_members),
        cmocka_unit_test(a_long_row_ends_where_the_input_ends),
        cmocka_unit_test(rows_across_windows_are_whole),
        cmocka_unit_test(what_was_handed_over_cannot_come_again),
        cmocka_unit_test(a_million_rows_under_one_mark_need_no_stack),
        cmocka_unit_test(a_stack_too_deep_is_refused),
        cmocka_unit_test(members_count_as_values_of_the_stack),
        cmocka_unit_test(a_text_longer_than_a_window_is_whole),
        cmocka_unit_test(the_memo_keeps_every_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
