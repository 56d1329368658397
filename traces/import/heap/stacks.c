/* stacks.c - the strings, code addresses and stacks of heaptrack's
 * data, and the numbers of its lines. */
#include <inttypes.h>
#include <stdio.h>

#include "traces/build/build.h"
#include "traces/grow.h"
#include "traces/import/heap/heaptrack.h"

bool heaptrack_next(struct fields *rest, uint64_t *value, bool *ok)
{
    struct field f;

    if (!fields_next(rest, ' ', &f))
        return false;
    *ok = *ok && field_hex(f, value);
    return *ok;
}

bool heaptrack_numbers(struct fields *rest, uint64_t *values, unsigned count)
{
    bool ok = true;

    for (unsigned i = 0; i < count; i++)
        if (!heaptrack_next(rest, &values[i], &ok))
            return false;
    return !rest->at;
}

enum frag_err heaptrack_malformed(const struct heaptrack *h,
                                  const char *expected, struct fields line)
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
enum frag_err heaptrack_string(struct heaptrack *h, struct fields rest)
{
    const struct fields line = rest;
    struct field f;
    uint64_t length;

    if (h->format >= HEAPTRACK_FORMAT &&
        (!fields_next(&rest, ' ', &f) || !rest.at || !field_hex(f, &length) ||
         length != (size_t)(rest.end - rest.at)))
        return heaptrack_malformed(h, "a length and a text", line);
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
        (struct heaptrack_place){first, h->frame_count - first};
    return FRAG_OK;
}

enum frag_err heaptrack_code(struct heaptrack *h, struct fields rest)
{
    const struct fields text = rest;
    const uint64_t first = h->frame_count;
    uint64_t address, module, function, file, line;
    bool ok = true;

    if (!heaptrack_next(&rest, &address, &ok) ||
        !heaptrack_next(&rest, &module, &ok))
        return heaptrack_malformed(h, "an address and a module", text);
    while (heaptrack_next(&rest, &function, &ok)) {
        file = module;
        line = 0;
        if (heaptrack_next(&rest, &file, &ok) &&
            !heaptrack_next(&rest, &line, &ok))
            return heaptrack_malformed(h, "a line number after each file",
                                       text);
        if (ok && function)
            FRAG_TRY(
                add_frame(h, string_of(h, file), string_of(h, function), line));
    }
    if (!ok)
        return heaptrack_malformed(h, "hexadecimal numbers", text);
    if (h->frame_count == first)
        FRAG_TRY(add_address(h, address, string_of(h, module)));
    return add_place(h, first);
}

/* In raw data, the first number is the code address itself. */
enum frag_err heaptrack_node(struct heaptrack *h, struct fields rest)
{
    const struct fields line = rest;
    uint64_t v[2];

    if (!heaptrack_numbers(&rest, v, 2) || v[1] > h->node_count ||
        (!h->is_raw && (!v[0] || v[0] > h->place_count)))
        return heaptrack_malformed(h, "a code address and an earlier stack",
                                   line);
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
        (struct heaptrack_node){v[0] - 1, (uint32_t)v[1], 0};
    return FRAG_OK;
}

/* heaptrack follows at most 64 calls, so only a damaged file has outermost
 * frames beyond HEAPTRACK_FRAMES, which are left out. */
static uint32_t build_stack(struct heaptrack *h, uint32_t node)
{
    size_t count = 0;

    for (; node && count < HEAPTRACK_FRAMES; node = h->nodes[node - 1].parent) {
        const struct heaptrack_place *p = &h->places[h->nodes[node - 1].place];

        for (uint64_t i = 0; i < p->count && count < HEAPTRACK_FRAMES; i++)
            h->stack[count++] = h->frames[p->first + i];
    }
    return frag_build_stack(h->calls.build, h->stack, count);
}

enum frag_err heaptrack_stack(struct heaptrack *h, uint32_t node,
                              uint32_t *stack)
{
    struct heaptrack_node *n = node ? &h->nodes[node - 1] : NULL;

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
