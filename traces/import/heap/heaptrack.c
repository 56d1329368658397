/* heaptrack.c - reads the data of heaptrack, which has each allocation and free
 * of a process. A line is a letter and hexadecimal numbers without 0x.
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
#include <stdlib.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/lines.h"
#include "traces/grow.h"
#include "traces/import/heap/calls.h"
#include "traces/import/heap/heaptrack.h"

static enum frag_err add_kind(struct heaptrack *h, struct fields rest)
{
    const struct fields line = rest;
    uint64_t v[2];

    if (!heaptrack_numbers(&rest, v, 2) || v[1] > h->node_count)
        return heaptrack_malformed(h, "a size and an earlier stack", line);
    if (h->kind_count >> 31 || !GROW(h->kinds, h->kind_room, h->kind_count + 1))
        return FRAG_NOMEM;
    h->kinds[h->kind_count++] =
        (struct heaptrack_kind){v[0], (uint32_t)v[1], 0};
    return FRAG_OK;
}

static enum frag_err raw_alloc(struct heaptrack *h, struct fields rest)
{
    const struct fields line = rest;
    uint64_t v[3];
    uint32_t stack;

    if (!heaptrack_numbers(&rest, v, 3) || v[1] > h->node_count)
        return heaptrack_malformed(h, "a size, an earlier stack and a pointer",
                                   line);
    FRAG_TRY(heaptrack_stack(h, (uint32_t)v[1], &stack));
    return calls_alloc(&h->calls, v[2], v[0], stack);
}

static enum frag_err raw_free(struct heaptrack *h, struct fields rest)
{
    const struct fields line = rest;
    uint64_t pointer;

    if (!heaptrack_numbers(&rest, &pointer, 1))
        return heaptrack_malformed(h, "a pointer", line);
    return calls_free(&h->calls, pointer, 0);
}

/* Reads the number of a kind. *kind is NULL on failure. */
static enum frag_err find_kind(struct heaptrack *h, struct fields rest,
                               struct heaptrack_kind **kind)
{
    const struct fields line = rest;
    uint64_t number;

    *kind = NULL;
    if (!heaptrack_numbers(&rest, &number, 1) || number >= h->kind_count)
        return heaptrack_malformed(h, "the number of an earlier a line", line);
    *kind = &h->kinds[number];
    return FRAG_OK;
}

/* The name of a block: its kind, and how many older blocks of that kind are
 * live. */
static uint64_t name_of(const struct heaptrack *h,
                        const struct heaptrack_kind *kind)
{
    return ((uint64_t)(kind - h->kinds) << 32 | kind->live) + 1;
}

static enum frag_err kind_alloc(struct heaptrack *h, struct fields rest)
{
    struct heaptrack_kind *kind;
    uint32_t stack;

    FRAG_TRY(find_kind(h, rest, &kind));
    FRAG_TRY(heaptrack_stack(h, kind->node, &stack));
    FRAG_TRY(calls_alloc(&h->calls, name_of(h, kind), kind->bytes, stack));
    kind->live++;
    return FRAG_OK;
}

static enum frag_err kind_free(struct heaptrack *h, struct fields rest)
{
    struct heaptrack_kind *kind;

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

    if (!heaptrack_next(&rest, &version, &ok) ||
        (!heaptrack_next(&rest, &h->format, &ok) && !ok))
        return heaptrack_malformed(
            h, "the version of heaptrack and of the file", line);
    if (h->format > HEAPTRACK_FORMAT)
        return heaptrack_malformed(h, "file format 3 or earlier of heaptrack",
                                   line);
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

    return length > 2 && !memcmp(text, "I ", 2) &&
           heaptrack_numbers(&rest, v, 2);
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
    {'t', heaptrack_node},
    {'a', add_kind},
    {'i', heaptrack_code},
    {'s', heaptrack_string},
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
    return heaptrack_malformed(h, "a line of heaptrack, such as \"+ 4f\"",
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
    h->calls = (struct calls){
        .name = frag_source_name(source), .build = build, .e = e};
    err = calls_begin(&h->calls);
    if (err == FRAG_OK)
        err = lines_each_whole(source, opts, read_line, h, &h->calls.cut, e);
    if (err == FRAG_OK && h->in_command)
        err = heaptrack_malformed(
            h, "a line such as \"I 1000 5e298d\" after the command",
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
    while (heaptrack_next(&rest, &value, &ok))
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
