/* import_heaptrack.c - reads the data of heaptrack, which has each allocation
 * and free of a process. A line is a letter and hexadecimal numbers without 0x.
 *
 *   raw (heaptrack --raw)          interpreted (the default)
 *   t IP PARENT                    s LENGTH TEXT     string 1, 2, ...
 *                                  i IP MODULE [FUNCTION [FILE LINE]]...
 *                                  t I PARENT        I: number of the i line
 *                                  a BYTES STACK     kind 0, 1, ...
 *   + BYTES STACK POINTER          + KIND
 *   - POINTER                      - KIND
 *
 * A stack is the number of a t line: the innermost frame of the stack; the
 * other frames are its parents. 0 is none. Interpreted data has no pointers: a
 * free names a size and a stack only. The newest of the blocks that are equal
 * in both is freed, so bytes and counts are exact and lifetimes of equal blocks
 * are a guess.
 *
 * Format: heaptrack, src/track/libheaptrack.cpp and
 * src/interpret/heaptrack_interpret.cpp, up to file format 3.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/fields.h"
#include "traces/bytes/lines.h"
#include "traces/grow.h"
#include "traces/import/heap/heap_calls.h"
#include "traces/trace.h"

enum { HEAPTRACK_FORMAT = 3, HEAPTRACK_FRAMES = 256 };

/* Frames of a code address, innermost first: its functions inlined and not. */
struct code_place {
    uint64_t first, count; /* rows of heaptrack.frames */
};

/* A t line. */
struct stack_node {
    uint64_t place;  /* index in heaptrack.places */
    uint32_t parent; /* 1 + index of a node; 0: none */
    uint32_t stack;  /* 1 + the stack that begins here; 0: not built yet */
};

/* An a line: blocks of one size and one stack. */
struct block_kind {
    uint64_t bytes;
    uint32_t node; /* 1 + index of a node; 0: none */
    uint32_t live; /* how many of its blocks */
};

struct heaptrack {
    struct frag_source *source;
    struct heap_calls calls;
    bool is_raw, is_attached;
    bool in_command; /* between the command and the line I after it */
    uint64_t format; /* of the file */

    uint32_t *strings; /* their numbers in the builder */
    uint64_t string_count, string_room;
    struct frag_frame *frames;
    uint64_t frame_count, frame_room;
    struct code_place *places;
    uint64_t place_count, place_room;
    struct stack_node *nodes;
    uint64_t node_count, node_room;
    struct block_kind *kinds;
    uint64_t kind_count, kind_room;

    struct frag_frame stack[HEAPTRACK_FRAMES]; /* that is being built */
};

/* ---- strings, code addresses and stacks ---- */

/* Reads the next number of a line. Returns false at the end of the line, and
 * sets *ok to false for a field that is no number. */
static bool next_number(struct fields *rest, uint64_t *value, bool *ok)
{
    struct field f;

    if (!fields_next(rest, ' ', &f))
        return false;
    *ok = *ok && field_hex(f, value);
    return *ok;
}

/* Reads exactly `count` numbers. Returns false for a line with others. */
static bool read_numbers(struct fields *rest, uint64_t *values, unsigned count)
{
    bool ok = true;

    for (unsigned i = 0; i < count; i++)
        if (!next_number(rest, &values[i], &ok))
            return false;
    return !rest->at;
}

static enum frag_err malformed(const struct heaptrack *h, const char *expected,
                               struct fields line)
{
    return field_wrong(h->source, h->calls.line, expected,
                       (struct field){line.at, (size_t)(line.end - line.at)},
                       h->calls.e);
}

/* The string with a number of the file. 0 and a number that is not defined yet
 * are the string "". */
static uint32_t string_of(struct heaptrack *h, uint64_t number)
{
    if (!number || number > h->string_count)
        return frag_build_string(h->calls.build, "", 0);
    return h->strings[number - 1];
}

/* From file format 3 on, the text follows its length. */
static enum frag_err add_string(struct heaptrack *h, struct fields rest)
{
    const struct fields line = rest;
    struct field f;
    uint64_t length;

    if (h->format >= HEAPTRACK_FORMAT &&
        (!fields_next(&rest, ' ', &f) || !rest.at || !field_hex(f, &length) ||
         length != (size_t)(rest.end - rest.at)))
        return malformed(h, "a length and a text", line);
    if (!GROW(h->strings, h->string_room, h->string_count + 1))
        return FRAG_NOMEM;
    h->strings[h->string_count] = frag_build_string(
        h->calls.build, rest.at, (size_t)(rest.end - rest.at));
    if (h->strings[h->string_count] == UINT32_MAX)
        return FRAG_NOMEM;
    h->string_count++;
    return FRAG_OK;
}

static enum frag_err add_frame(struct heaptrack *h, uint32_t file,
                               uint32_t function, uint64_t line)
{
    if (file == UINT32_MAX || function == UINT32_MAX ||
        !GROW(h->frames, h->frame_room, h->frame_count + 1))
        return FRAG_NOMEM;
    h->frames[h->frame_count++] = (struct frag_frame){
        file, function, line <= UINT32_MAX ? (uint32_t)line : 0};
    return FRAG_OK;
}

/* Adds a frame whose function is not known: the address is its name. */
static enum frag_err add_address(struct heaptrack *h, uint64_t address,
                                 uint32_t file)
{
    char text[24];
    const int length = snprintf(text, sizeof(text), "0x%" PRIx64, address);

    return add_frame(
        h, file, frag_build_string(h->calls.build, text, (size_t)length), 0);
}

/* A place has the frames that follow `first`. */
static enum frag_err add_place(struct heaptrack *h, uint64_t first)
{
    if (!GROW(h->places, h->place_room, h->place_count + 1))
        return FRAG_NOMEM;
    h->places[h->place_count++] =
        (struct code_place){first, h->frame_count - first};
    return FRAG_OK;
}

static enum frag_err add_code(struct heaptrack *h, struct fields rest)
{
    const struct fields text = rest;
    const uint64_t first = h->frame_count;
    uint64_t address, module, function, file, line;
    bool ok = true;

    if (!next_number(&rest, &address, &ok) || !next_number(&rest, &module, &ok))
        return malformed(h, "an address and a module", text);
    while (next_number(&rest, &function, &ok)) {
        file = module;
        line = 0;
        if (next_number(&rest, &file, &ok) && !next_number(&rest, &line, &ok))
            return malformed(h, "a line number after each file", text);
        if (ok && function)
            FRAG_TRY(
                add_frame(h, string_of(h, file), string_of(h, function), line));
    }
    if (!ok)
        return malformed(h, "hexadecimal numbers", text);
    if (h->frame_count == first)
        FRAG_TRY(add_address(h, address, string_of(h, module)));
    return add_place(h, first);
}

/* In raw data, the first number is the code address itself. */
static enum frag_err add_node(struct heaptrack *h, struct fields rest)
{
    const struct fields line = rest;
    uint64_t v[2];

    if (!read_numbers(&rest, v, 2) || v[1] > h->node_count ||
        (!h->is_raw && (!v[0] || v[0] > h->place_count)))
        return malformed(h, "a code address and an earlier stack", line);
    if (h->is_raw) {
        const uint64_t first = h->frame_count;

        FRAG_TRY(
            add_address(h, v[0], frag_build_string(h->calls.build, "??", 2)));
        FRAG_TRY(add_place(h, first));
        v[0] = h->place_count;
    }
    if (h->node_count == UINT32_MAX - 1 ||
        !GROW(h->nodes, h->node_room, h->node_count + 1))
        return FRAG_NOMEM;
    h->nodes[h->node_count++] =
        (struct stack_node){v[0] - 1, (uint32_t)v[1], 0};
    return FRAG_OK;
}

/* heaptrack follows at most 64 calls, so only a damaged file has outermost
 * frames beyond HEAPTRACK_FRAMES, which are left out. */
static uint32_t build_stack(struct heaptrack *h, uint32_t node)
{
    size_t count = 0;

    for (; node && count < HEAPTRACK_FRAMES; node = h->nodes[node - 1].parent) {
        const struct code_place *p = &h->places[h->nodes[node - 1].place];

        for (uint64_t i = 0; i < p->count && count < HEAPTRACK_FRAMES; i++)
            h->stack[count++] = h->frames[p->first + i];
    }
    return frag_build_stack(h->calls.build, h->stack, count);
}

/* Sets *stack to the number of the stack that begins at a node; `node` is 1 +
 * its index, or 0 for the empty stack. */
static enum frag_err stack_of(struct heaptrack *h, uint32_t node,
                              uint32_t *stack)
{
    struct stack_node *n = node ? &h->nodes[node - 1] : NULL;

    *stack = 0;
    if (n && !n->stack) {
        *stack = build_stack(h, node);
        if (*stack == UINT32_MAX)
            return FRAG_NOMEM;
        n->stack = *stack + 1;
    }
    if (n)
        *stack = n->stack - 1;
    return FRAG_OK;
}

/* ---- blocks ---- */

static enum frag_err add_kind(struct heaptrack *h, struct fields rest)
{
    const struct fields line = rest;
    uint64_t v[2];

    if (!read_numbers(&rest, v, 2) || v[1] > h->node_count)
        return malformed(h, "a size and an earlier stack", line);
    if (h->kind_count >> 31 || !GROW(h->kinds, h->kind_room, h->kind_count + 1))
        return FRAG_NOMEM;
    h->kinds[h->kind_count++] = (struct block_kind){v[0], (uint32_t)v[1], 0};
    return FRAG_OK;
}

static enum frag_err raw_alloc(struct heaptrack *h, struct fields rest)
{
    const struct fields line = rest;
    uint64_t v[3];
    uint32_t stack;

    if (!read_numbers(&rest, v, 3) || v[1] > h->node_count)
        return malformed(h, "a size, an earlier stack and a pointer", line);
    FRAG_TRY(stack_of(h, (uint32_t)v[1], &stack));
    return calls_alloc(&h->calls, v[2], v[0], stack);
}

static enum frag_err raw_free(struct heaptrack *h, struct fields rest)
{
    const struct fields line = rest;
    uint64_t pointer;

    if (!read_numbers(&rest, &pointer, 1))
        return malformed(h, "a pointer", line);
    return calls_free(&h->calls, pointer, 0);
}

/* Reads the number of a kind. *kind is NULL on failure. */
static enum frag_err find_kind(struct heaptrack *h, struct fields rest,
                               struct block_kind **kind)
{
    const struct fields line = rest;
    uint64_t number;

    *kind = NULL;
    if (!read_numbers(&rest, &number, 1) || number >= h->kind_count)
        return malformed(h, "the number of an earlier a line", line);
    *kind = &h->kinds[number];
    return FRAG_OK;
}

/* The name of a block: its kind, and how many older blocks of that kind are
 * live. */
static uint64_t name_of(const struct heaptrack *h,
                        const struct block_kind *kind)
{
    return ((uint64_t)(kind - h->kinds) << 32 | kind->live) + 1;
}

static enum frag_err kind_alloc(struct heaptrack *h, struct fields rest)
{
    struct block_kind *kind;
    uint32_t stack;

    FRAG_TRY(find_kind(h, rest, &kind));
    FRAG_TRY(stack_of(h, kind->node, &stack));
    FRAG_TRY(calls_alloc(&h->calls, name_of(h, kind), kind->bytes, stack));
    kind->live++;
    return FRAG_OK;
}

static enum frag_err kind_free(struct heaptrack *h, struct fields rest)
{
    struct block_kind *kind;

    FRAG_TRY(find_kind(h, rest, &kind));
    if (kind->live)
        kind->live--;
    return calls_free(&h->calls, name_of(h, kind), 0);
}

static enum frag_err put_alloc(struct heaptrack *h, struct fields rest)
{
    return h->is_raw ? raw_alloc(h, rest) : kind_alloc(h, rest);
}

static enum frag_err put_free(struct heaptrack *h, struct fields rest)
{
    return h->is_raw ? raw_free(h, rest) : kind_free(h, rest);
}

/* ---- the file ---- */

static enum frag_err read_version(struct heaptrack *h, struct fields rest)
{
    const struct fields line = rest;
    uint64_t version;
    bool ok = true;

    if (!next_number(&rest, &version, &ok) ||
        (!next_number(&rest, &h->format, &ok) && !ok))
        return malformed(h, "the version of heaptrack and of the file", line);
    if (h->format > HEAPTRACK_FORMAT)
        return malformed(h, "file format 3 or earlier of heaptrack", line);
    return FRAG_OK;
}

/* Only raw data has the executable and the modules. */
static enum frag_err see_raw(struct heaptrack *h, struct fields rest)
{
    (void)rest;
    h->is_raw = true;
    return FRAG_OK;
}

static enum frag_err see_attached(struct heaptrack *h, struct fields rest)
{
    (void)rest;
    h->is_attached = true;
    return FRAG_OK;
}

/* The command may have line breaks; its end is the line I. */
static enum frag_err begin_command(struct heaptrack *h, struct fields rest)
{
    (void)rest;
    h->in_command = true;
    return FRAG_OK;
}

/* The page size and the number of pages of the system. */
static bool is_system(const char *text, size_t length)
{
    struct fields rest = fields_of(text + 2, length < 2 ? 0 : length - 2);
    uint64_t v[2];

    return length > 2 && !memcmp(text, "I ", 2) && read_numbers(&rest, v, 2);
}

static enum frag_err pass(struct heaptrack *h, struct fields rest)
{
    (void)h, (void)rest;
    return FRAG_OK;
}

static const struct letter {
    char letter;
    enum frag_err (*read)(struct heaptrack *h, struct fields rest);
} letters[] = {
    {'+', put_alloc},
    {'-', put_free},
    {'t', add_node},
    {'a', add_kind},
    {'i', add_code},
    {'s', add_string},
    {'v', read_version},
    {'x', see_raw},
    {'m', see_raw},
    {'A', see_attached},
    {'X', begin_command},
    {'I', pass}, /* the page size and the pages of the system */
    {'c', pass}, /* the time, in steps of 10 ms */
    {'R', pass}, /* resident pages */
    {'S', pass}, /* a suppression of leaks */
    {'#', pass},
};

static enum frag_err read_line(void *user, const char *text, size_t length,
                               uint64_t number)
{
    struct heaptrack *h = user;
    const size_t skipped = length < 2 ? length : 2;

    h->calls.line = number;
    h->in_command = h->in_command && !is_system(text, length);
    if (!length || h->in_command)
        return FRAG_OK;
    for (const struct letter *l = letters;
         l < letters + sizeof(letters) / sizeof(*letters); l++)
        if (l->letter == *text && (length == 1 || text[1] == ' '))
            return l->read(h, fields_of(text + skipped, length - skipped));
    return malformed(h, "a line of heaptrack, such as \"+ 4f\"",
                     fields_of(text, length));
}

static enum frag_err add_notes(struct heaptrack *h)
{
    struct frag_build *b = h->calls.build;

    if (h->is_attached)
        FRAG_TRY(frag_build_note(
            b, "heaptrack was attached to a running process: the blocks that "
               "were live before are not known, so the need of the trace is a "
               "lower bound"));
    if (h->is_raw)
        return frag_build_note(
            b, "this is raw data: its stacks are addresses of code; "
               "heaptrack_interpret finds the functions, but interpreted data "
               "lacks the addresses of blocks");
    frag_build_name_addresses(b);
    return frag_build_note(
        b, "a free in interpreted data names a size and a stack, not a block: "
           "the newest of equal blocks is freed, so bytes and counts are exact "
           "and the lifetimes of blocks of equal size and stack are a guess; "
           "`heaptrack --raw` records the addresses");
}

static enum frag_err heaptrack_read(struct frag_source *source,
                                    struct frag_build *build,
                                    const struct frag_read_options *opts,
                                    struct frag_error *e)
{
    struct heaptrack *h = calloc(1, sizeof(*h));
    enum frag_err err;

    if (!h)
        return FRAG_NOMEM;
    h->source = source;
    h->calls = (struct heap_calls){
        .name = frag_source_name(source), .build = build, .e = e};
    err = calls_begin(&h->calls);
    if (err == FRAG_OK)
        err = lines_each_whole(source, opts, read_line, h, &h->calls.cut, e);
    if (err == FRAG_OK && h->in_command)
        err = malformed(h, "a line such as \"I 1000 5e298d\" after the command",
                        fields_of("", 0));
    if (err == FRAG_OK)
        err = add_notes(h);
    if (err == FRAG_OK)
        err = calls_end(&h->calls);
    free(h->strings);
    free(h->frames);
    free(h->places);
    free(h->nodes);
    free(h->kinds);
    free(h);
    return err;
}

/* The version, and a second line that only heaptrack writes. */
static bool heaptrack_recognize(const unsigned char *bytes, size_t count)
{
    const char *text = (const char *)bytes;
    const char *end = memchr(text, '\n', count);
    struct fields rest;
    uint64_t value;
    bool ok = true;

    if (!end || end < text + 2 || memcmp(text, "v ", 2) != 0 ||
        (size_t)(end - text) + 3 > count)
        return false;
    rest = fields_of(text + 2, (size_t)(end - text - 2));
    while (next_number(&rest, &value, &ok))
        continue;
    return ok && strchr("xXImAsS#", end[1]) && end[2] == ' ';
}

const struct frag_importer frag_importer_heaptrack = {
    .name = "heaptrack",
    .summary = "allocations of a process, recorded by heaptrack",
    .made = "heaptrack PROGRAM; with --raw, the data has addresses",
    .lacks = "streams, times, threads, alignments, failed requests, what the "
             "recorded allocator did; without --raw also the addresses",
    .note = CALLS_NOTE,
    .recognize = heaptrack_recognize,
    .read = heaptrack_read,
};
