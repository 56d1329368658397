/* import_android.c - reads the malloc calls of a process, as Android's
 * malloc_debug records them and memory_replay replays them. One line is one
 * call:
 *
 *   186: malloc 0xb6027400 1024          result, bytes
 *   186: calloc 0xb6003090 1 8           result, count, bytes of each
 *   186: memalign 0xae42d080 16 104      result, alignment, bytes
 *   186: realloc 0xb603d060 0xb6037838 25    result, old block, bytes
 *   186: free 0xb6027400
 *   186: thread_done 0x0
 *
 * Each line begins with the number of the thread. Later recordings end each
 * line with two times. A realloc that moves the block is an alloc, then a free,
 * because both blocks are live for a moment. A realloc that stays in place is a
 * free, then an alloc. Alignments are not kept: a trace has none.
 * traces/import/heap/heap_calls.h has the meaning of the other calls.
 *
 * Format: AOSP, platform/system/extras, memory_replay/traces/README.
 */
#include <string.h>

#include "traces/bytes/fields.h"
#include "traces/bytes/lines.h"
#include "traces/import/heap/heap_calls.h"
#include "traces/trace.h"

enum { MAX_ARGUMENTS = 5 };

struct android {
    struct frag_source *source;
    struct heap_calls calls;
};

/* The fields of a line. */
struct call {
    struct field word;
    int count;
    uint64_t arguments[MAX_ARGUMENTS];
};

/* Sets *f to the next field that is not empty. */
static bool next_filled(struct fields *rest, struct field *f)
{
    while (fields_next(rest, ' ', f))
        if (f->length)
            return true;
    return false;
}

static bool split_line(const char *line, size_t length, struct call *call)
{
    struct fields rest = fields_of(line, length);
    struct field thread, f;
    uint64_t number;

    *call = (struct call){.count = 0};
    if (!fields_next(&rest, ':', &thread) || !rest.at ||
        !field_number(thread, &number) || !next_filled(&rest, &call->word))
        return false;
    while (next_filled(&rest, &f))
        if (call->count == MAX_ARGUMENTS ||
            !field_number(f, &call->arguments[call->count++]))
            return false;
    return true;
}

/* ---- the calls ---- */

static enum frag_err put_malloc(struct heap_calls *c, const uint64_t *v)
{
    return calls_alloc(c, v[0], v[1], 0);
}

static enum frag_err put_calloc(struct heap_calls *c, const uint64_t *v)
{
    uint64_t bytes;

    if (__builtin_mul_overflow(v[1], v[2], &bytes))
        bytes = UINT64_MAX;
    return calls_alloc(c, v[0], bytes, 0);
}

static enum frag_err put_memalign(struct heap_calls *c, const uint64_t *v)
{
    return calls_alloc(c, v[0], v[2], 0);
}

static enum frag_err put_realloc(struct heap_calls *c, const uint64_t *v)
{
    const bool failed = !v[0] && v[2]; /* the old block stays live */
    const bool moved = v[0] && v[0] != v[1];

    if (failed || moved)
        FRAG_TRY(calls_alloc(c, v[0], v[2], 0));
    if (failed)
        return FRAG_OK;
    FRAG_TRY(calls_free(c, v[1], 0));
    return moved ? FRAG_OK : calls_alloc(c, v[0], v[2], 0);
}

static enum frag_err put_free(struct heap_calls *c, const uint64_t *v)
{
    return calls_free(c, v[0], 0);
}

static enum frag_err put_nothing(struct heap_calls *c, const uint64_t *v)
{
    (void)c;
    (void)v;
    return FRAG_OK;
}

static const struct word {
    const char *text;
    int arguments; /* not counting the two times */
    enum frag_err (*put)(struct heap_calls *c, const uint64_t *v);
} words[] = {
    {"malloc", 2, put_malloc},     {"free", 1, put_free},
    {"realloc", 3, put_realloc},   {"calloc", 3, put_calloc},
    {"memalign", 3, put_memalign}, {"thread_done", 1, put_nothing},
};

/* The word of the call if the number of arguments fits it, or else NULL. */
static const struct word *find_word(const struct call *call)
{
    for (const struct word *w = words;
         w < words + sizeof(words) / sizeof(*words); w++)
        if (field_is(call->word, w->text) &&
            (call->count == w->arguments || call->count == w->arguments + 2))
            return w;
    return NULL;
}

static enum frag_err read_line(void *user, const char *line, size_t length,
                               uint64_t number)
{
    struct android *a = user;
    const struct word *w = NULL;
    struct call call;

    a->calls.line = number;
    if (!length)
        return FRAG_OK;
    if (split_line(line, length, &call))
        w = find_word(&call);
    if (!w)
        return field_wrong(a->source, number,
                           "a call such as \"186: malloc 0xb6027400 1024\"",
                           (struct field){line, length}, a->calls.e);
    return w->put(&a->calls, call.arguments);
}

static enum frag_err android_read(struct frag_source *source,
                                  struct frag_build *build,
                                  const struct frag_read_options *opts,
                                  struct frag_error *e)
{
    struct android a = {
        .source = source,
        .calls = {.name = frag_source_name(source),
                  .build = build,
                  .e = e,
                  .strict = true},
    };

    FRAG_TRY(calls_begin(&a.calls));
    FRAG_TRY(lines_each(source, opts, read_line, &a, e));
    return calls_end(&a.calls);
}

static bool android_recognize(const unsigned char *bytes, size_t count)
{
    const struct field line = field_first_line(bytes, count);
    struct call call;

    return split_line(line.text, line.length, &call) && find_word(&call);
}

const struct frag_importer frag_importer_android = {
    .name = "android",
    .summary = "malloc calls of an Android process (memory_replay)",
    .made = "malloc_debug with record_allocs on Android",
    .lacks = "streams, times of old recordings, stacks, alignments, what the "
             "recorded allocator did",
    .note = CALLS_NOTE,
    .recognize = android_recognize,
    .read = android_read,
};
