/* build_text.c - stores strings, stacks, settings and notes of the trace. Each
 * distinct string and each distinct stack is stored once. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/build/build_device.h"

/* A hash table with open addressing. A row holds 1 + the index of a string or
 * stack; 0 is an empty row. At most half of the rows are used. */
struct index {
    uint32_t *rows;
    uint64_t count;
    unsigned bits;
};

static uint64_t hash_bytes(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

    for (size_t i = 0; i < size; i++)
        h = (h ^ at[i]) * 0x100000001b3u;
    return h * 0x9e3779b97f4a7c15u;
}

static const void *string_at(const struct frag_build *b, uint32_t i,
                             size_t *size)
{
    uint64_t end = i + 1 < b->string_count ? b->strings[i + 1] : b->text_size;

    *size = (size_t)(end - b->strings[i] - 1);
    return b->text + b->strings[i];
}

static const void *stack_at(const struct frag_build *b, uint32_t i,
                            size_t *size)
{
    *size = (size_t)(b->stack_first[i + 1] - b->stack_first[i]) *
            sizeof(*b->frames);
    return b->frames + b->stack_first[i];
}

/* Returns the bytes of item i and their number in *size. */
typedef const void *(*item_at)(const struct frag_build *, uint32_t, size_t *);

/* Returns the row of the item, or the empty row where it can be put. */
static uint32_t *seek(const struct frag_build *b, const struct index *x,
                      item_at at, const void *bytes, size_t size)
{
    uint64_t mask = ((uint64_t)1 << x->bits) - 1;
    uint64_t i = hash_bytes(bytes, size) >> (64 - x->bits);

    for (; x->rows[i]; i = (i + 1) & mask) {
        size_t found_size;
        const void *found = at(b, x->rows[i] - 1, &found_size);

        if (found_size == size && (!size || !memcmp(found, bytes, size)))
            break;
    }
    return &x->rows[i];
}

static bool rehash(const struct frag_build *b, struct index *x, item_at at)
{
    struct index next = {NULL, x->count, x->rows ? x->bits + 1 : 8};

    next.rows = calloc((size_t)1 << next.bits, sizeof(*next.rows));
    if (!next.rows)
        return false;
    for (uint32_t i = 0; i < x->count; i++) {
        size_t size;
        const void *bytes = at(b, i, &size);

        *seek(b, &next, at, bytes, size) = i + 1;
    }
    free(x->rows);
    *x = next;
    return true;
}

/* Returns the table with room for one more item; creates it at first use. NULL
 * if the host has no memory. */
static struct index *ready(const struct frag_build *b, struct index **x,
                           item_at at)
{
    if (!*x)
        *x = calloc(1, sizeof(**x));
    if (!*x || (*x)->count >= UINT32_MAX / 2)
        return NULL;
    if ((!(*x)->rows || (*x)->count * 2 >= (uint64_t)1 << (*x)->bits) &&
        !rehash(b, *x, at))
        return NULL;
    return *x;
}

static bool append_string(struct frag_build *b, const char *text, size_t length)
{
    if (!GROW(b->strings, b->string_room, b->string_count + 1) ||
        !GROW(b->text, b->text_room, b->text_size + length + 1))
        return false;
    if (length)
        memcpy(b->text + b->text_size, text, length);
    b->text[b->text_size + length] = '\0';
    b->strings[b->string_count++] = b->text_size;
    b->text_size += length + 1;
    return true;
}

/* A string ends at its first 0, because users read it as a C string. */
uint32_t frag_build_string(struct frag_build *b, const char *text,
                           size_t length)
{
    struct index *x = ready(b, &b->string_index, string_at);
    uint32_t *row;

    if (!x)
        return UINT32_MAX;
    length = length ? strnlen(text, length) : 0;
    row = seek(b, x, string_at, text, length);
    if (*row)
        return *row - 1;
    if (!append_string(b, text, length))
        return UINT32_MAX;
    *row = (uint32_t)b->string_count;
    x->count++;
    return *row - 1;
}

static bool append_stack(struct frag_build *b, const struct frag_frame *frames,
                         size_t count)
{
    if (!GROW(b->stack_first, b->stack_room, b->stack_count + 2) ||
        !GROW(b->frames, b->frame_room, b->frame_count + count + 1))
        return false;
    if (count)
        memcpy(b->frames + b->frame_count, frames, count * sizeof(*frames));
    b->stack_first[b->stack_count++] = b->frame_count;
    b->frame_count += count;
    b->stack_first[b->stack_count] = b->frame_count;
    return true;
}

static uint32_t intern_stack(struct frag_build *b,
                             const struct frag_frame *frames, size_t count)
{
    struct index *x = ready(b, &b->stack_index, stack_at);
    uint32_t *row;

    if (!x)
        return UINT32_MAX;
    row = seek(b, x, stack_at, frames, count * sizeof(*frames));
    if (*row)
        return *row - 1;
    if (!append_stack(b, frames, count))
        return UINT32_MAX;
    *row = (uint32_t)b->stack_count;
    x->count++;
    return *row - 1;
}

uint32_t frag_build_stack(struct frag_build *b, const struct frag_frame *frames,
                          size_t count)
{
    if (!b->stack_count && intern_stack(b, NULL, 0) == UINT32_MAX)
        return UINT32_MAX;
    return count ? intern_stack(b, frames, count) : 0;
}

uint32_t frag_build_outer(struct frag_build *b, uint32_t stack,
                          struct frag_frame frame)
{
    size_t size = 0;
    const void *inner = stack ? stack_at(b, stack, &size) : NULL;
    struct frag_frame *frames = malloc(size + sizeof(*frames));
    uint32_t result;

    if (!frames)
        return UINT32_MAX;
    if (size)
        memcpy(frames, inner, size);
    frames[size / sizeof(*frames)] = frame;
    result = frag_build_stack(b, frames, size / sizeof(*frames) + 1);
    free(frames);
    return result;
}

enum frag_err frag_build_settings(struct frag_build *b,
                                  const struct frag_recorded_settings *s,
                                  struct frag_error *e)
{
    char *conf = s->conf ? strdup(s->conf) : NULL;

    (void)e;
    if (s->conf && !conf)
        return FRAG_NOMEM;
    free(b->conf);
    b->conf = conf;
    b->settings = *s;
    b->settings.conf = conf;
    return FRAG_OK;
}

void frag_build_releases(struct frag_build *b, uint32_t first, uint32_t last)
{
    char *text = b->releases;
    const size_t room = sizeof(b->releases);

    if (last == UINT32_MAX)
        snprintf(text, room, "2.%" PRIu32 " or later", first);
    else if (first == last)
        snprintf(text, room, "2.%" PRIu32, first);
    else
        snprintf(text, room, "2.%" PRIu32 " to 2.%" PRIu32, first, last);
}

enum frag_err frag_build_note(struct frag_build *b, const char *format, ...)
{
    char text[1024];
    va_list args;
    char *note;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    note = strdup(text);
    if (!note || !GROW(b->notes, b->note_room, b->note_count + 1)) {
        free(note);
        return FRAG_NOMEM;
    }
    b->notes[b->note_count++] = note;
    return FRAG_OK;
}

enum frag_err frag_build_counts(struct frag_build *b,
                                const struct frag_build_count *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].count)
            FRAG_TRY(frag_build_note(b, "%" PRIu64 " %s", rows[i].count,
                                     rows[i].words));
    return FRAG_OK;
}

static void close_index(struct index *x)
{
    if (x)
        free(x->rows);
    free(x);
}

void build_text_close(struct frag_build *b)
{
    for (uint64_t i = 0; i < b->note_count; i++)
        free(b->notes[i]);
    free(b->notes);
    free(b->text);
    free(b->strings);
    free(b->frames);
    free(b->stack_first);
    free(b->conf);
    close_index(b->string_index);
    close_index(b->stack_index);
}
