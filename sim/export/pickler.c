/* pickler.c - writes the opcodes of a pickle. */
#include "sim/export/pickler.h"

#include <string.h>

#include "traces/printable.h"

/* The opcodes, by their names in Python's pickletools. */
enum opcode {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_EMPTY_DICT = '}',
    OP_EMPTY_LIST = ']',
    OP_SETITEMS = 'u',
    OP_APPENDS = 'e',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_BINFLOAT = 'G',
    OP_BINUNICODE = 'X',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_PROTO = 0x80,
    OP_TUPLE2 = 0x86,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_MEMOIZE = 0x94,
};

enum { PROTOCOL = 4, BATCH = 1000 };

static void put(struct pickler *p, int byte)
{
    putc(byte, p->out);
}

/* The lowest `count` bytes of n, little end first. */
static void put_little(struct pickler *p, uint64_t n, int count)
{
    for (int i = 0; i < count; i++)
        put(p, (int)(n >> 8 * i & 0xff));
}

void pickler_begin(struct pickler *p)
{
    put(p, OP_PROTO);
    put(p, PROTOCOL);
}

void pickler_end(struct pickler *p)
{
    put(p, OP_STOP);
}

void pickler_dict_begin(struct pickler *p)
{
    put(p, OP_EMPTY_DICT);
    put(p, OP_MARK);
}

void pickler_dict_end(struct pickler *p)
{
    put(p, OP_SETITEMS);
}

uint64_t pickler_list_begin(struct pickler *p)
{
    const uint64_t outer = p->items;

    put(p, OP_EMPTY_LIST);
    p->items = 0;
    return outer;
}

void pickler_item(struct pickler *p)
{
    if (p->items && p->items % BATCH == 0)
        put(p, OP_APPENDS);
    if (p->items % BATCH == 0)
        put(p, OP_MARK);
    p->items++;
}

void pickler_list_end(struct pickler *p, uint64_t outer)
{
    if (p->items)
        put(p, OP_APPENDS);
    p->items = outer;
}

/* LONG1 holds a signed number, and the viewer reads at most 8 bytes: numbers
 * from 2^63 on turn negative. */
static void put_long(struct pickler *p, uint64_t n)
{
    int bytes = 5;

    while (bytes < 8 && n >> (8 * bytes - 1))
        bytes++;
    put(p, OP_LONG1);
    put(p, bytes);
    put_little(p, n, bytes);
}

void pickler_number(struct pickler *p, uint64_t n)
{
    if (n >> 8 == 0) {
        put(p, OP_BININT1);
        put_little(p, n, 1);
    } else if (n >> 16 == 0) {
        put(p, OP_BININT2);
        put_little(p, n, 2);
    } else if (n >> 31 == 0) {
        put(p, OP_BININT);
        put_little(p, n, 4);
    } else {
        put_long(p, n);
    }
}

void pickler_real(struct pickler *p, double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    put(p, OP_BINFLOAT); /* the one number with its big end first */
    for (int i = 7; i >= 0; i--)
        put(p, (int)(bits >> 8 * i & 0xff));
}

void pickler_bool(struct pickler *p, bool is_true)
{
    put(p, is_true ? OP_NEWTRUE : OP_NEWFALSE);
}

static const char replacement[] = "\xef\xbf\xbd";

/* Bytes that pickler_text writes for the text. */
static size_t utf8_length(const char *text)
{
    size_t length = 0;
    uint32_t code;

    while (*text) {
        const size_t n = utf8_read(text, &code);

        length += n ? n : sizeof(replacement) - 1;
        text += n ? n : 1;
    }
    return length;
}

void pickler_text(struct pickler *p, const char *text)
{
    uint32_t code;

    put(p, OP_BINUNICODE);
    put_little(p, utf8_length(text), 4);
    while (*text) {
        const size_t n = utf8_read(text, &code);

        if (n)
            fwrite(text, 1, n, p->out);
        else
            fputs(replacement, p->out);
        text += n ? n : 1;
    }
}

void pickler_pair(struct pickler *p, uint64_t a, uint64_t b)
{
    pickler_number(p, a);
    pickler_number(p, b);
    put(p, OP_TUPLE2);
}

uint32_t pickler_memoize(struct pickler *p)
{
    put(p, OP_MEMOIZE);
    return ++p->memo_count;
}

void pickler_recall(struct pickler *p, uint32_t memo)
{
    const uint32_t number = memo - 1;

    put(p, number < 256 ? OP_BINGET : OP_LONG_BINGET);
    put_little(p, number, number < 256 ? 1 : 4);
}

void pickler_word(struct pickler *p, const char *text, uint32_t *memo)
{
    if (*memo) {
        pickler_recall(p, *memo);
        return;
    }
    pickler_text(p, text);
    *memo = pickler_memoize(p);
}
