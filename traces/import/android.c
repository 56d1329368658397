/* android.c - reads the malloc calls of a process, as Android's malloc_debug
 * records them and memory_replay replays them. One line is one call:
 *
 *   186: malloc 0xb6027400 1024          result, bytes
 *   186: calloc 0xb6003090 1 8           result, count, bytes of each
 *   186: memalign 0xae42d080 16 104      result, alignment, bytes
 *   186: realloc 0xb603d060 0xb6037838 25    result, old block, bytes
 *   186: free 0xb6027400
 *   186: thread_done 0x0
 *
 * Each line begins with the number of the thread. Later recordings end each
 * line with two times. All threads share one heap, so the trace has one stream.
 * A null pointer is no block: the call failed or had nothing to free. A block
 * of 0 bytes counts as 1 byte. A realloc that moves the block is an alloc, then
 * a free, because both blocks are live for a moment. A realloc that stays in
 * place is a free, then an alloc. Alignments are not kept: a trace has none.
 *
 * Format: AOSP, platform/system/extras, memory_replay/traces/README.
 */
#include <inttypes.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/lines.h"
#include "traces/import/importers.h"
#include "traces/trace.h"

enum { MAX_ARGUMENTS = 5 };

struct android {
    struct frag_source *source;
    struct frag_build *build;
    struct frag_error *e;
    uint64_t line;
};

/* The fields of a line. */
struct call {
    const char *word;
    size_t length;
    int count;
    uint64_t arguments[MAX_ARGUMENTS];
};

/* The value of a hexadecimal digit, 16 for any other character. */
static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Reads a number, hexadecimal with 0x or decimal, that ends before `stop` or at
 * the end of the line. Returns false for anything else. */
static bool read_number(const char **at, const char *end, char stop,
                        uint64_t *value)
{
    const bool is_hex = end - *at > 2 && (*at)[0] == '0' && (*at)[1] == 'x';
    const unsigned base = is_hex ? 16 : 10;
    const char *start = *at += is_hex ? 2 : 0;

    *value = 0;
    for (; *at < end && **at != stop; ++*at) {
        const unsigned digit = (unsigned)digit_of(**at);

        if (digit >= base || *value > (UINT64_MAX - digit) / base)
            return false;
        *value = *value * base + digit;
    }
    return *at > start;
}

static void skip_blanks(const char **at, const char *end)
{
    while (*at < end && **at == ' ')
        ++*at;
}

static bool split_line(const char *at, const char *end, struct call *call)
{
    uint64_t thread;

    *call = (struct call){.count = 0};
    if (!read_number(&at, end, ':', &thread) || at == end)
        return false;
    at++;
    skip_blanks(&at, end);
    for (call->word = at; at < end && *at != ' '; at++)
        call->length++;
    for (skip_blanks(&at, end); at < end; skip_blanks(&at, end))
        if (call->count == MAX_ARGUMENTS ||
            !read_number(&at, end, ' ', &call->arguments[call->count++]))
            return false;
    return true;
}

static bool is(const struct call *call, const char *word)
{
    return call->length == strlen(word) &&
           !memcmp(call->word, word, call->length);
}

static enum frag_err put(const struct android *a, enum frag_op op,
                         uint64_t addr, uint64_t bytes)
{
    if (!addr)
        return FRAG_OK;
    if (op == FRAG_ALLOC && !bytes)
        bytes = 1;
    return frag_build_event(a->build, 0, op, addr, bytes, 0, a->line, a->e);
}

/* ---- the calls ---- */

static enum frag_err put_malloc(const struct android *a, const uint64_t *v)
{
    return put(a, FRAG_ALLOC, v[0], v[1]);
}

static enum frag_err put_calloc(const struct android *a, const uint64_t *v)
{
    uint64_t bytes;

    if (__builtin_mul_overflow(v[1], v[2], &bytes))
        bytes = UINT64_MAX;
    return put(a, FRAG_ALLOC, v[0], bytes);
}

static enum frag_err put_memalign(const struct android *a, const uint64_t *v)
{
    return put(a, FRAG_ALLOC, v[0], v[2]);
}

static enum frag_err put_realloc(const struct android *a, const uint64_t *v)
{
    if (v[0] && v[0] != v[1]) {
        FRAG_TRY(put(a, FRAG_ALLOC, v[0], v[2]));
        return put(a, FRAG_FREE, v[1], 0);
    }
    if (!v[0] && v[2]) /* the call failed: the old block stays live */
        return FRAG_OK;
    FRAG_TRY(put(a, FRAG_FREE, v[1], 0));
    return put(a, FRAG_ALLOC, v[0], v[2]);
}

static enum frag_err put_free(const struct android *a, const uint64_t *v)
{
    return put(a, FRAG_FREE, v[0], 0);
}

static enum frag_err put_nothing(const struct android *a, const uint64_t *v)
{
    (void)a;
    (void)v;
    return FRAG_OK;
}

static const struct word {
    const char *text;
    int arguments; /* not counting the two times */
    enum frag_err (*put)(const struct android *a, const uint64_t *v);
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
        if (is(call, w->text) &&
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

    a->line = number;
    if (!length)
        return FRAG_OK;
    if (split_line(line, line + length, &call))
        w = find_word(&call);
    if (!w)
        return frag_fail(a->e, FRAG_CORRUPT,
                         "%s:%" PRIu64
                         ": expected a call such as \"186: malloc "
                         "0xb6027400 1024\", found \"%.*s\"",
                         frag_source_name(a->source), number,
                         length < 60 ? (int)length : 60, line);
    return w->put(a, call.arguments);
}

static enum frag_err android_read(struct frag_source *source,
                                  struct frag_build *build,
                                  const struct frag_read_options *opts,
                                  struct frag_error *e)
{
    struct android a = {.source = source, .build = build, .e = e};

    FRAG_TRY(frag_build_device(build, 0, e));
    return lines_each(source, opts, read_line, &a, e);
}

static bool android_recognize(const unsigned char *bytes, size_t count)
{
    const char *at = (const char *)bytes;
    const char *end = memchr(at, '\n', count);
    struct call call;

    if (!end)
        end = at + count;
    if (end > at && end[-1] == '\r')
        end--;
    return split_line(at, end, &call) && find_word(&call);
}

const struct frag_importer frag_importer_android = {
    .name = "android",
    .summary = "malloc calls of an Android process (memory_replay)",
    .recognize = android_recognize,
    .read = android_read,
};
