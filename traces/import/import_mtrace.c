/* import_mtrace.c - reads the log of glibc's mtrace(), which has each malloc,
 * realloc and free of a process. One line is one call:
 *
 *   @ ./program:(main+1c)[0x115c] + 0x56000010 0x20     a block of 0x20 bytes
 *   @ ./program:[0x1170] - 0x56000010                   a free
 *   @ ./program:[0x1180] < 0x56000010                   a realloc: the old
 * block
 *   @ ./program:[0x1180] > 0x56000090 0x40              and the new one
 *   @ ./program:[0x1190] ! 0x56000090 0x10000000        a realloc that failed
 *   @ ./program:[0x11a0] + (nil) 0x10000000             a malloc that failed
 *
 * The caller after the @ may be missing, and its path may contain blanks, so a
 * line is read from its end. A realloc is a free, then an alloc, as the log has
 * it. The caller becomes a stack of one frame. All threads of a process share
 * one heap, so the trace has one device and one stream. A null pointer is no
 * block: the request failed, or there was nothing to free. A block of 0 bytes
 * counts as 1 byte. Lines that begin with = mark the start and the end. A
 * process that dies leaves a cut last line.
 *
 * Format: glibc, malloc/mtrace-impl.c.
 */
#include <inttypes.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/fields.h"
#include "traces/bytes/lines.h"
#include "traces/import/importers.h"

enum { HEAP = 0 }; /* the number of the only device */

struct heap_calls {
    const char *name; /* of the log, for messages */
    struct frag_build *build;
    struct frag_error *e;
    uint64_t line; /* of the current call */

    /* Counts for the notes. */
    uint64_t lost;    /* frees that the log lacks, because the address was
                         allocated again */
    uint64_t unknown; /* frees of blocks whose alloc the log lacks */
    uint64_t absurd;  /* failed requests of 2^63 bytes and more */
    bool cut;         /* the last line of the log has no end */
};

struct line {
    char op; /* one of + - < > ! */
    uint64_t addr, bytes;
    struct field caller; /* empty if not logged */
};

/* Moves the last field of *rest to *last. */
static void take_last(struct field *rest, struct field *last)
{
    size_t at;

    *rest = field_trimmed(*rest);
    at = rest->length;
    while (at && rest->text[at - 1] != ' ')
        at--;
    *last = (struct field){rest->text + at, rest->length - at};
    rest->length = at;
}

static bool read_pointer(struct field f, uint64_t *addr)
{
    *addr = 0;
    return field_is(f, "(nil)") ||
           (field_begins(f, "0x") && field_number(f, addr));
}

static bool is_op(struct field f, const char *ops)
{
    return f.length == 1 && strchr(ops, *f.text);
}

/* The part before the operation: "@ CALLER" or nothing. */
static bool read_caller(struct field rest, struct field *caller)
{
    rest = field_trimmed(rest);
    *caller = rest;
    if (!rest.length)
        return true;
    if (!field_begins(rest, "@ "))
        return false;
    *caller = (struct field){rest.text + 2, rest.length - 2};
    return true;
}

static bool split_line(const char *text, size_t length, struct line *line)
{
    struct field rest = {text, length}, last, before, op;

    *line = (struct line){.op = 0};
    take_last(&rest, &last);
    take_last(&rest, &before);
    if (is_op(before, "-<")) {
        line->op = *before.text;
        return read_pointer(last, &line->addr) &&
               read_caller(rest, &line->caller);
    }
    take_last(&rest, &op);
    if (!is_op(op, "+>!"))
        return false;
    line->op = *op.text;
    return read_pointer(before, &line->addr) &&
           field_number(last, &line->bytes) && read_caller(rest, &line->caller);
}

/* Moves the text from the last `open` on from *f to *tail, without `open` and
 * the last byte, which must be `close`. Without both, *tail is empty. */
static void take_bracket(struct field *f, char open, char close,
                         struct field *tail)
{
    size_t at = f->length;

    *tail = (struct field){NULL, 0};
    if (!at || f->text[at - 1] != close)
        return;
    while (at && f->text[at - 1] != open)
        at--;
    if (!at)
        return;
    *tail = (struct field){f->text + at, f->length - at - 1};
    f->length = at - 1;
}

/* Sets *stack to a stack whose one frame is the caller: the file, and as
 * function the symbol with its offset, or else the address. */
static enum frag_err stack_of(struct frag_build *build, struct field caller,
                              uint32_t *stack)
{
    struct field address, symbol;
    struct frag_frame frame = {.line = 0};

    *stack = 0;
    if (!caller.length)
        return FRAG_OK;
    take_bracket(&caller, '[', ']', &address);
    take_bracket(&caller, '(', ')', &symbol);
    if (caller.length && caller.text[caller.length - 1] == ':')
        caller.length--;
    if (!symbol.length)
        symbol = address;
    frame.file = frag_build_string(build, caller.text, caller.length);
    frame.function = frag_build_string(build, symbol.text, symbol.length);
    if (frame.file == UINT32_MAX || frame.function == UINT32_MAX)
        return FRAG_NOMEM;
    *stack = frag_build_stack(build, &frame, 1);
    return *stack == UINT32_MAX ? FRAG_NOMEM : FRAG_OK;
}

/* ---- the calls ---- */

static enum frag_err put(struct heap_calls *c, enum frag_entry_kind kind,
                         uint64_t addr, uint64_t bytes, uint32_t stack)
{
    const struct frag_entry entry = {
        .kind = kind, .stack = stack, .addr = addr, .size = bytes ? bytes : 1};

    return frag_build_entry(c->build, HEAP, &entry, c->line, c->e);
}

/* A program that requests 2^63 bytes and more wants the request to fail: no
 * policy can serve it, and a trace cannot hold it. */
static enum frag_err put_failed(struct heap_calls *c, uint64_t bytes,
                                uint32_t stack)
{
    if (!bytes)
        return FRAG_OK;
    if (bytes >> 63) {
        c->absurd++;
        return FRAG_OK;
    }
    return put(c, FRAG_ENTRY_FAILED, 0, bytes, stack);
}

/* Adds a request. addr 0: it failed. `stack` is from frag_build_stack. */
static enum frag_err calls_alloc(struct heap_calls *c, uint64_t addr,
                                 uint64_t bytes, uint32_t stack)
{
    if (!addr)
        return put_failed(c, bytes, stack);
    if (frag_build_is_live(c->build, HEAP, addr)) {
        c->lost++;
        FRAG_TRY(put(c, FRAG_ENTRY_FREE_COMPLETED, addr, 0, stack));
    }
    return put(c, FRAG_ENTRY_ALLOC, addr, bytes, stack);
}

/* A free of a block without an alloc is counted and left out, because its size
 * is unknown. addr 0: nothing happens. */
static enum frag_err calls_free(struct heap_calls *c, uint64_t addr,
                                uint32_t stack)
{
    if (!addr)
        return FRAG_OK;
    if (frag_build_is_live(c->build, HEAP, addr))
        return put(c, FRAG_ENTRY_FREE_COMPLETED, addr, 0, stack);
    c->unknown++;
    return FRAG_OK;
}

/* Adds notes about everything that was counted. */
static enum frag_err calls_end(const struct heap_calls *c)
{
    const struct frag_build_count notes[] = {
        {c->lost, "blocks have no free in the log, although a later block has "
                  "the same address; they are freed where that block begins"},
        {c->unknown,
         "frees are of blocks that were allocated before the log begins; the "
         "log does not state their sizes, so the trace lacks them and its need "
         "is a lower bound"},
        {c->absurd, "failed requests of 2^63 bytes and more are left out, "
                    "because no allocator can serve them"},
    };

    FRAG_TRY(
        frag_build_counts(c->build, notes, sizeof(notes) / sizeof(*notes)));
    if (c->cut)
        FRAG_TRY(frag_build_note(
            c->build, "the last line of the log is cut off and is left out: "
                      "the program ended or started another program while "
                      "it wrote, so the end of the log is missing"));
    return FRAG_OK;
}

/* ---- the file ---- */

static enum frag_err malformed(const struct heap_calls *c, struct field line)
{
    return frag_fail(c->e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected a call such as \"@ "
                     "program:[0x115c] + 0x56000010 0x20\", found \"%.*s\"; if "
                     "the program forks, its children write into the same log: "
                     "record it with heaptrack",
                     c->name, c->line, line.length < 60 ? (int)line.length : 60,
                     line.text);
}

static enum frag_err read_line(void *user, const char *text, size_t length,
                               uint64_t number)
{
    struct heap_calls *c = user;
    struct line line;
    uint32_t stack;

    c->line = number;
    if (!length || *text == '=')
        return FRAG_OK;
    if (!split_line(text, length, &line))
        return malformed(c, (struct field){text, length});
    FRAG_TRY(stack_of(c->build, line.caller, &stack));
    if (line.op == '-' || line.op == '<')
        return calls_free(c, line.addr, stack);
    return calls_alloc(c, line.op == '!' ? 0 : line.addr, line.bytes, stack);
}

static enum frag_err mtrace_read(struct frag_source *source,
                                 struct frag_build *build,
                                 const struct frag_read_options *opts,
                                 struct frag_error *e)
{
    struct heap_calls calls = {
        .name = frag_source_name(source), .build = build, .e = e};

    FRAG_TRY(frag_build_device(build, HEAP, e));
    FRAG_TRY(lines_each(source, opts, read_line, &calls, &calls.cut, e));
    return calls_end(&calls);
}

/* The first line is the start, or a call with its caller if the start of the
 * log is missing. */
static bool mtrace_recognize(const unsigned char *bytes, size_t count)
{
    const struct field first = field_first_line(bytes, count);
    struct line line;

    return field_is(field_trimmed(first), "= Start") ||
           (split_line(first.text, first.length, &line) && line.caller.length);
}

const struct frag_importer frag_importer_mtrace = {
    .name = "mtrace",
    .summary = "malloc calls of a process, logged by glibc's mtrace()",
    .made =
        "MALLOC_TRACE=run.mtrace LD_PRELOAD=libc_malloc_debug.so.0 PROGRAM, "
        "in a program that calls mtrace()",
    .lacks = "streams, times, threads, alignments, what the recorded allocator "
             "did; of stacks it has the caller only",
    .note = "these are calls of malloc: policies with a quantum of 512 bytes, "
            "such as torch, say little about small blocks of a heap, because "
            "they round each block up to the quantum; the log does not show "
            "for how long a realloc held "
            "the old and the new block together, so it counts as a "
            "free and then an alloc",
    .recognize = mtrace_recognize,
    .read = mtrace_read,
};
