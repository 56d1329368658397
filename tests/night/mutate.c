/* mutate.c - the units of each format, and what is done to them. */
#include "tests/night/mutate.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/hdf5_mutator.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static const uint64_t numbers[] = {
    0,          1,          2,          511,
    512,        513,        1 << 20,    1 << 21,
    INT32_MAX,  1ULL << 31, UINT32_MAX, 1ULL << 32,
    1ULL << 40, 1ULL << 53, 1ULL << 62, INT64_MAX - 511,
    INT64_MAX,  1ULL << 63, -512ULL,    UINT64_MAX,
};

const char odd_numbers[] =
    "0|1|-1|2|511|512|1048576|2147483648|4294967295|4294967296|"
    "9007199254740993|4611686018427387904|9223372036854775807|"
    "9223372036854775808|18446744073709551104|18446744073709551615|"
    "18446744073709551616|99999999999999999999999999|"
    "-9223372036854775809|1.5|1e308|1e999|nan|-inf|0x|"
    "0xffffffffffffffff|-0";

const char odd_texts[] =
    "|\"|\"\"|,|\r\n|\r|\t| |[|]|{|}|:|#|=|%n%s|\\u0000|\\ud800|\\|"
    "\xff\xfe|\xef\xbb\xbf|\xed\xa0\x80|\xe2\x80\xae|\x1b[31m|\x07|"
    "<script>|'`$(x)`;|../x|null|true|(nil)|alloc|free|free_requested|"
    "free_completed|segment_alloc|segment_free|segment_map|"
    "segment_unmap|oom|snapshot|empty_cache|addr|size|stream|frames|"
    "active_allocated|active_pending_free|inactive|large|"
    "expandable_segments:True|max_split_size_mb:64|"
    "roundup_power2_divisions:[1:1,>:9]|Optimizer.step#1|ProfilerStep#7";

uint64_t roll(struct dice *d, uint64_t below)
{
    d->state ^= d->state << 13;
    d->state ^= d->state >> 7;
    d->state ^= d->state << 17;
    return d->state % below;
}

const char *any_text(struct dice *d, const char *texts, size_t *size)
{
    uint64_t which = 0;

    for (const char *at = texts; *at; at++)
        which += *at == '|';
    for (which = roll(d, which + 1); which; which--)
        texts = strchr(texts, '|') + 1;
    *size = strcspn(texts, "|");
    return texts;
}

bool bytes_splice(struct bytes *b, size_t from, size_t to, const void *in,
                  size_t size)
{
    const size_t tail = b->size - to;
    unsigned char *made = malloc(from + size + tail + 1);

    if (!made)
        return false;
    memcpy(made, b->at, from);
    if (size)
        memcpy(made + from, in, size);
    memcpy(made + from + size, b->at + to, tail);
    free(b->at);
    *b = (struct bytes){made, from + size + tail};
    return true;
}

/* -- the units of a pickle ------------------------------------------------- */

/* What follows an opcode: bytes, lines, or a counted text whose count has
 * 1, 4 or 8 bytes. */
static const struct {
    const char *opcodes;
    size_t fixed, lines, count;
} arguments[] = {
    {"FILPSVgp", 0, 1, 0},   {"ci", 0, 2, 0},      {"Khq\x80\x82", 1, 0, 0},
    {"M\x83", 2, 0, 0},      {"Jjr\x84", 4, 0, 0}, {"G\x95", 8, 0, 0},
    {"UC\x8a\x8c", 0, 0, 1}, {"TXB\x8b", 0, 0, 4}, {"\x8d\x8e\x96", 0, 0, 8},
};

static size_t line_size(const unsigned char *at, size_t left)
{
    const unsigned char *end = memchr(at, '\n', left);

    return end ? (size_t)(end - at) + 1 : left;
}

static size_t opcode_size(const unsigned char *at, size_t left)
{
    size_t size = 1;
    uint64_t count = 0;

    for (size_t i = 0; i < COUNT(arguments); i++) {
        if (!*at || !strchr(arguments[i].opcodes, *at))
            continue;
        for (size_t n = arguments[i].lines; n; n--)
            size += line_size(at + size, left - size);
        if (arguments[i].count && size + arguments[i].count <= left)
            memcpy(&count, at + size, arguments[i].count);
        size += arguments[i].fixed + arguments[i].count;
        size = count < left ? size + (size_t)count : left;
    }
    return size < left ? size : left;
}

static bool is_one_of(int c, const char *list)
{
    return c && strchr(list, c);
}

/* -- the units of a text --------------------------------------------------- */

static bool is_word(unsigned char c)
{
    return isalnum(c) || c == '_' || c == '.' || c >= 0x80;
}

static size_t token_size(const unsigned char *at, size_t left)
{
    size_t size = 1;

    if (is_word(*at))
        while (size < left && is_word(at[size]))
            size++;
    return size;
}

/* -- units ----------------------------------------------------------------- */

enum shape { SHAPE_TEXT, SHAPE_PICKLE, SHAPE_RECORDS, SHAPE_HDF5 };
enum { FIELD = 8, CALL = 64 };

static enum shape shape_of(const char *format)
{
    if (!strcmp(format, "torch"))
        return SHAPE_PICKLE;
    if (!strcmp(format, "record"))
        return SHAPE_RECORDS;
    if (!strcmp(format, "trace_file") || !strcmp(format, "results"))
        return SHAPE_HDF5;
    return SHAPE_TEXT;
}

static size_t unit_size(enum shape shape, const unsigned char *at, size_t left)
{
    if (shape == SHAPE_PICKLE)
        return opcode_size(at, left);
    if (shape == SHAPE_TEXT)
        return token_size(at, left);
    return left < FIELD ? left : FIELD;
}

/* The first unit behind the bracket at `i`; a pickle's bracket is a mark. */
static size_t bracket_end(const struct bytes *b, const struct units *u,
                          size_t i, const char *open, const char *close)
{
    size_t depth = 0;

    for (; i < u->count; i++) {
        const int c = b->at[u->unit[i].at];

        depth += is_one_of(c, open);
        if (is_one_of(c, close) && --depth == 0)
            return i + 1;
    }
    return u->count;
}

static size_t line_end(const struct bytes *b, const struct units *u, size_t i)
{
    while (i < u->count && b->at[u->unit[i].at] != '\n')
        i++;
    return i < u->count ? i + 1 : i;
}

static size_t tree_end(const struct bytes *b, const struct units *u,
                       enum shape shape, size_t i)
{
    const int c = b->at[u->unit[i].at];

    if (shape == SHAPE_RECORDS)
        return u->unit[i].at % CALL ? i + 1 : i + CALL / FIELD;
    if (shape == SHAPE_TEXT && is_one_of(c, "{["))
        return bracket_end(b, u, i, "{[", "}]");
    if (shape == SHAPE_TEXT)
        return i && b->at[u->unit[i].at - 1] != '\n' ? i + 1
                                                     : line_end(b, u, i);
    if (is_one_of(c, "}]") && i + 1 < u->count &&
        b->at[u->unit[i + 1].at] == '(')
        i++;
    if (b->at[u->unit[i].at] == '(')
        return bracket_end(b, u, i, "(", "eudlt1o\x90\x91");
    return i + 1;
}

struct units units_split(const struct bytes *b, const char *format)
{
    const enum shape shape = shape_of(format);
    struct units u = {malloc((b->size + 1) * sizeof(*u.unit)), 0};

    if (!u.unit)
        return u;
    for (size_t at = 0; at < b->size; u.count++) {
        const size_t size = unit_size(shape, b->at + at, b->size - at);

        u.unit[u.count] = (struct unit){at, size, 0};
        at += size;
    }
    for (size_t i = 0; i < u.count; i++) {
        const size_t end = tree_end(b, &u, shape, i);

        u.unit[i].end = end < u.count ? end : u.count;
    }
    return u;
}

/* -- new values ------------------------------------------------------------ */

enum { ATOM_ROOM = 128 };

static uint64_t neighbour(struct dice *d, uint64_t n)
{
    static const uint64_t steps[] = {1, -1ULL, 512, -512ULL, 1 << 21};

    switch (roll(d, 6)) {
    case 0:
        return n + steps[roll(d, COUNT(steps))];
    case 1:
        return n * 2;
    case 2:
        return n ^ 1ULL << roll(d, 64);
    case 3:
        return -n;
    default:
        return numbers[roll(d, COUNT(numbers))];
    }
}

static size_t pickled_text(struct dice *d, unsigned char *out)
{
    size_t size;
    const char *text = any_text(d, odd_texts, &size);

    out[0] = 'X';
    memset(out + 1, 0, 4);
    out[1] = (unsigned char)size;
    memcpy(out + 5, text, size);
    return 5 + size;
}

static size_t pickled_number(struct dice *d, uint64_t n, unsigned char *out)
{
    const bool is_signed = roll(d, 4) == 0;
    double real = (double)n;
    uint64_t word = n;
    size_t size;
    const char *text = any_text(d, odd_numbers, &size);

    if (roll(d, 16) == 0)
        return (size_t)sprintf((char *)out, "I%.*s\n", (int)size, text);
    if (roll(d, 16) == 0) {
        memcpy(&word, &real, sizeof(word));
        word = __builtin_bswap64(roll(d, 2) ? word
                                            : numbers[roll(d, COUNT(numbers))]);
        out[0] = 'G';
        memcpy(out + 1, &word, sizeof(word));
        return 9;
    }
    out[0] = 0x8a;
    out[1] = is_signed ? 8 : 9;
    memcpy(out + 2, &n, sizeof(n));
    out[10] = 0;
    return 2 + out[1];
}

static uint64_t unpickled(const unsigned char *at, size_t size)
{
    uint64_t n = 0;
    const size_t skip = *at == 0x8a ? 2 : 1;

    if (is_one_of(*at, "KMJ\x8a") && size > skip)
        memcpy(&n, at + skip, size - skip < 8 ? size - skip : 8);
    return n;
}

static size_t pickled(struct dice *d, const unsigned char *at, size_t size,
                      unsigned char *out)
{
    static const char others[] = "N\x88\x89])}(.012abdeloRQstu\x81\x85\x86\x87"
                                 "\x8f\x90\x91\x92\x93\x94\x97\x98";

    if (roll(d, 12) == 0) {
        *out = (unsigned char)others[roll(d, sizeof(others) - 1)];
        return 1;
    }
    if (roll(d, 8) == 0 || is_one_of(*at, "XU\x8cSV"))
        return roll(d, 8) ? pickled_text(d, out)
                          : pickled_number(d, neighbour(d, 0), out);
    return pickled_number(d, neighbour(d, unpickled(at, size)), out);
}

static size_t written(struct dice *d, const unsigned char *at, size_t size,
                      unsigned char *out)
{
    char old[32] = "";
    const bool hex = size > 2 && at[1] == 'x';
    const char *text;

    memcpy(old, at, size < sizeof(old) ? size : sizeof(old) - 1);
    if (isdigit(*at) && roll(d, 3))
        return (size_t)sprintf(
            (char *)out, hex ? "0x%llx" : "%llu",
            (unsigned long long)neighbour(d, strtoull(old, NULL, 0)));
    text = any_text(d, roll(d, 3) ? odd_numbers : odd_texts, &size);
    memcpy(out, text, size);
    return size;
}

static size_t new_value(struct dice *d, enum shape shape,
                        const unsigned char *at, size_t size,
                        unsigned char *out)
{
    uint64_t word = 0;

    if (shape == SHAPE_PICKLE)
        return pickled(d, at, size, out);
    if (shape == SHAPE_TEXT)
        return written(d, at, size, out);
    memcpy(&word, at, size);
    word = roll(d, 3) ? neighbour(d, word) : roll(d, 30) << (roll(d, 2) * 32);
    memcpy(out, &word, size);
    return size;
}

/* -- mutations ------------------------------------------------------------- */

/* What hdf5_mutator.h calls where it changes bytes; here mutate_bytes does. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t room)
{
    (void)bytes;
    (void)room;
    return size;
}

static void mutate_bytes(struct dice *d, struct bytes *b)
{
    for (uint64_t n = 1 + roll(d, 4); n && b->size; n--) {
        const size_t at = roll(d, b->size), left = b->size - at;
        const size_t part = 1 + roll(d, left < 64 ? left : 64);

        switch (roll(d, 4)) {
        case 0:
            bytes_splice(b, at, at + part, NULL, 0);
            break;
        case 1:
            bytes_splice(b, at, at, b->at + at, part);
            break;
        case 2:
            b->at[at] = (unsigned char)roll(d, 256);
            break;
        default:
            b->at[at] ^= (unsigned char)(1 << roll(d, 8));
        }
    }
}

struct span {
    size_t from, to; /* bytes */
    size_t next;     /* the unit behind it */
};

/* A unit at which numbers or names stand. */
static size_t any_value(struct dice *d, const struct bytes *b,
                        const struct units *u, enum shape shape)
{
    const char *numbers_at = shape == SHAPE_PICKLE ? "KMJ\x8a" : "0123456789";
    size_t i = roll(d, u->count);

    if (shape != SHAPE_RECORDS && roll(d, 4))
        for (int tries = 30;
             tries && !is_one_of(b->at[u->unit[i].at], numbers_at); tries--)
            i = roll(d, u->count);
    return i;
}

/* A tree, of a text mostly a line; in a pickle mostly a key with its value. */
static struct span any_span(struct dice *d, const struct bytes *b,
                            const struct units *u, enum shape shape)
{
    size_t first = roll(d, u->count), next;
    const struct unit *last;

    if (shape == SHAPE_TEXT && roll(d, 2))
        while (first && b->at[u->unit[first].at - 1] != '\n')
            first--;
    next = u->unit[first].end;
    if (shape == SHAPE_PICKLE && next < u->count && roll(d, 8) &&
        is_one_of(b->at[u->unit[first].at], "X\x8c"))
        next = u->unit[next].end;
    last = &u->unit[next - 1];
    return (struct span){u->unit[first].at, last->at + last->size, next};
}

static void repeat(struct dice *d, struct bytes *b, struct span s)
{
    static const size_t times[] = {1, 1, 1, 4, 30, 1000};
    size_t n = times[roll(d, COUNT(times))];
    const size_t size = s.to - s.from;
    struct bytes copies = {malloc(INPUT_MOST), 0};

    for (; copies.at && n && copies.size + size < INPUT_MOST / 2; n--) {
        memcpy(copies.at + copies.size, b->at + s.from, size);
        copies.size += size;
    }
    bytes_splice(b, s.from, s.from, copies.at, copies.size);
    free(copies.at);
}

static void swap_with_next(struct bytes *b, const struct units *u,
                           struct span s)
{
    struct unit next, *last;
    size_t size;

    if (s.next >= u->count)
        return;
    next = u->unit[s.next];
    last = &u->unit[next.end - 1];
    size = last->at + last->size - next.at;
    bytes_splice(b, s.from, s.from, b->at + next.at, size);
    bytes_splice(b, s.to + size, s.to + 2 * size, NULL, 0);
}

/* A part of the donor in the place of the span, or before it. */
static void graft(struct dice *d, struct bytes *b, const struct bytes *donor,
                  const char *format, struct span s)
{
    const struct units u = units_split(donor, format);
    struct span part;

    if (u.count) {
        part = any_span(d, donor, &u, shape_of(format));
        bytes_splice(b, s.from, roll(d, 2) ? s.to : s.from,
                     donor->at + part.from, part.to - part.from);
    }
    free(u.unit);
}

static void replace_value(struct dice *d, struct bytes *b, enum shape shape,
                          struct unit unit)
{
    unsigned char made[ATOM_ROOM];
    const size_t size = new_value(d, shape, b->at + unit.at, unit.size, made);

    bytes_splice(b, unit.at, unit.at + unit.size, made, size);
}

static void mutate_units(struct dice *d, struct bytes *b,
                         const struct bytes *donor, const char *format)
{
    const struct units u = units_split(b, format);
    struct span s;

    if (!u.count) {
        free(u.unit);
        return;
    }
    s = any_span(d, b, &u, shape_of(format));
    switch (roll(d, 12)) {
    case 0:
        bytes_splice(b, s.from, s.to, NULL, 0);
        break;
    case 1:
        repeat(d, b, s);
        break;
    case 2:
        swap_with_next(b, &u, s);
        break;
    case 3:
        graft(d, b, donor, format, s);
        break;
    case 4:
        graft(d, b, b, format, s);
        break;
    case 5:
        if (roll(d, 8) == 0)
            b->size = s.from;
        else
            mutate_bytes(d, b);
        break;
    default:
        replace_value(d, b, shape_of(format),
                      u.unit[any_value(d, b, &u, shape_of(format))]);
    }
    free(u.unit);
}

static void mutate_hdf5(struct dice *d, struct bytes *b)
{
    unsigned char *room;

    if (roll(d, 12) == 0) {
        mutate_bytes(d, b);
        return;
    }
    room = realloc(b->at, INPUT_MOST);
    if (!room)
        return;
    b->at = room;
    b->size = LLVMFuzzerCustomMutator(b->at, b->size, INPUT_MOST,
                                      (unsigned)roll(d, UINT32_MAX));
}

void mutate(struct dice *d, struct bytes *b, const struct bytes *donor,
            const char *format)
{
    static const int times[] = {1, 1, 1, 2, 3, 6};

    if (shape_of(format) == SHAPE_HDF5) {
        mutate_hdf5(d, b);
        return;
    }
    for (int n = times[roll(d, COUNT(times))]; n && b->size < INPUT_MOST; n--)
        mutate_units(d, b, donor, format);
}
