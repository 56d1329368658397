/* test_import_torch.c - tests what the reader of PyTorch snapshots passes to
 * the builder. A stand-in for the builder writes down its calls. A small
 * pickler makes snapshots from text, in the manner of Python's pickler and of
 * PyTorch's own.
 *
 * With --dump FILE the program prints the calls for a file, for
 * compare_import.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/import/importers.h"
#include "traces/torch_sizes.h"

/* The builder */

struct frag_build {
    FILE *log; /* may be NULL */
    uint64_t actions[8], segments, blocks, marks, devices, notes;
    char *strings[4000];
    uint32_t string_count, stack_count;
    struct frag_frame last_stack[200];
    uint32_t first, last; /* releases */
    uint64_t hash;        /* of all stacks in order of appearance */
};

static const char *const action_names[] = {
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "oom"};

static void note_down(struct frag_build *b, const char *format, ...)
    FRAG_PRINTF(2, 3);
static void note_down(struct frag_build *b, const char *format, ...)
{
    va_list args;

    if (!b->log)
        return;
    va_start(args, format);
    vfprintf(b->log, format, args);
    va_end(args);
}

enum frag_err frag_build_entry(struct frag_build *b, uint32_t device,
                               const struct frag_entry *n, uint64_t where,
                               struct frag_error *e)
{
    (void)where, (void)e;
    b->actions[n->kind]++;
    note_down(b, "entry %u %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
              device, action_names[n->kind], n->addr, n->size, n->stream,
              n->time);
    if (n->stack)
        note_down(b, " stack %u", n->stack);
    if (n->has_pool)
        note_down(b, " pool %" PRIu64 " %" PRIu64, n->pool.owner,
                  n->pool.number);
    note_down(b, "\n");
    return FRAG_OK;
}

enum frag_err frag_build_segment(struct frag_build *b, uint32_t device,
                                 const struct frag_snapshot_segment *s,
                                 uint64_t where, struct frag_error *e)
{
    (void)where, (void)e;
    b->segments++;
    note_down(b,
              "segment %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
              " %" PRIu64 " %d %d\n",
              device, s->addr, s->size, s->stream, s->pool.owner,
              s->pool.number, s->is_small, s->is_expandable);
    return FRAG_OK;
}

enum frag_err frag_build_block(struct frag_build *b, uint32_t device,
                               const struct frag_snapshot_block *block,
                               uint64_t where, struct frag_error *e)
{
    (void)where, (void)e;
    b->blocks++;
    note_down(b, "block %u %" PRIu64 " %" PRIu64 " ", device, block->addr,
              block->size);
    if (block->requested == FRAG_SIZE_UNKNOWN)
        note_down(b, "unknown");
    else
        note_down(b, "%" PRIu64, block->requested);
    note_down(b, " %d\n", (int)block->state);
    return FRAG_OK;
}

enum frag_err frag_build_mark(struct frag_build *b, uint32_t device,
                              enum frag_mark_kind kind, frag_time time,
                              const char *name, size_t length,
                              struct frag_error *e)
{
    (void)e;
    b->marks++;
    note_down(b, "mark %u %s %" PRIu64 " %.*s\n", device,
              kind == FRAG_MARK_BEGIN ? "begin" : "end", time, (int)length,
              name);
    return FRAG_OK;
}

enum frag_err frag_build_policy(struct frag_build *b, uint32_t device,
                                const char *name, size_t length,
                                struct frag_error *e)
{
    (void)e;
    note_down(b, "policy %u %.*s\n", device, (int)length, name);
    return FRAG_OK;
}

enum frag_err frag_build_emptied(struct frag_build *b, uint32_t device,
                                 frag_time time, struct frag_error *e)
{
    (void)e;
    note_down(b, "emptied %u %" PRIu64 "\n", device, time);
    return FRAG_OK;
}

enum frag_err frag_build_change(struct frag_build *b, uint32_t device,
                                const struct frag_setting_change *x,
                                const struct frag_recorded_settings *now,
                                uint64_t after, struct frag_error *e)
{
    (void)e;
    note_down(b, "change %d", (int)device);
    if (x->kind == FRAG_CHANGE_SETTINGS)
        note_down(b, " '%s'", b->strings[x->text]);
    else
        note_down(b, " limit %" PRId64, (int64_t)x->limit);
    note_down(b, " %" PRIu64 " after %" PRId64 " stack %u: %d %g %" PRId64 "\n",
              x->time, (int64_t)after, x->stack, now->expandable,
              now->gc_threshold, (int64_t)now->max_split);
    return FRAG_OK;
}

uint32_t frag_build_string(struct frag_build *b, const char *text,
                           size_t length)
{
    assert_true(b->string_count < 4000);
    b->strings[b->string_count] = strndup(text, length);
    return b->string_count++;
}

/* Stacks are numbered as they come, the same one again or not. */
uint32_t frag_build_stack(struct frag_build *b, const struct frag_frame *frames,
                          size_t count)
{
    note_down(b, "stack %u", ++b->stack_count);
    for (size_t i = 0; i < count; i++)
        note_down(b, " %s:%u:%s", b->strings[frames[i].file], frames[i].line,
                  b->strings[frames[i].function]);
    note_down(b, "\n");
    return b->stack_count;
}

uint32_t frag_build_outer(struct frag_build *b, uint32_t stack,
                          struct frag_frame frame)
{
    note_down(b, "outer %u", stack);
    return frag_build_stack(b, &frame, 1);
}

enum frag_err frag_build_settings(struct frag_build *b,
                                  const struct frag_recorded_settings *s,
                                  struct frag_error *e)
{
    (void)e;
    note_down(b, "settings '%s' %g %d", s->conf, s->gc_threshold,
              s->expandable);
    for (size_t i = 0; i < TORCH_DIVISIONS; i++)
        note_down(b, " %" PRIu64, s->divisions[i]);
    note_down(b, "\n");
    return FRAG_OK;
}

void frag_build_releases(struct frag_build *b, uint32_t first, uint32_t last)
{
    b->first = first;
    b->last = last;
}

enum frag_err frag_build_device(struct frag_build *b, uint32_t device,
                                struct frag_error *e)
{
    (void)e;
    b->devices++;
    note_down(b, "device %u\n", device);
    return FRAG_OK;
}

enum frag_err frag_build_note(struct frag_build *b, const char *format, ...)
{
    va_list args;

    b->notes++;
    note_down(b, "note ");
    va_start(args, format);
    if (b->log)
        vfprintf(b->log, format, args);
    va_end(args);
    note_down(b, "\n");
    return FRAG_OK;
}

static void empty_builder(struct frag_build *b)
{
    for (uint32_t i = 0; i < b->string_count; i++)
        free(b->strings[i]);
    *b = (struct frag_build){0};
}

/* Reading */

static enum frag_err import_from(struct frag_source *s, struct frag_build *b,
                                 const struct frag_read_options *opts,
                                 struct frag_error *e)
{
    const unsigned char *bytes;
    enum frag_err err = FRAG_OK;
    size_t count = frag_source_peek(s, FRAG_SOURCE_WINDOW, &bytes, &err, e);

    if (err == FRAG_OK && !frag_importer_torch.recognize(bytes, count))
        err = frag_fail(e, FRAG_CORRUPT, "not recognized");
    if (err == FRAG_OK)
        err = frag_importer_torch.read(s, b, opts, e);
    frag_source_close(s);
    return err;
}

static enum frag_err import_file(const char *path, struct frag_build *b,
                                 struct frag_error *e)
{
    struct frag_source *s;

    FRAG_TRY(frag_source_open(path, &s, e));
    return import_from(s, b, NULL, e);
}

/* Writing pickles: values as in Python, texts in single quotes. */

enum manner {
    PYTHON_4, /* memoizes containers before they are filled, and each text */
    PYTHON_2, /* the same, with numbers */
    PYTORCH,  /* memoizes texts; one MARK for every list */
};

struct pickler {
    unsigned char *to;
    const char *from;
    enum manner manner;
    uint32_t memo;
};

static void op(struct pickler *p, int byte)
{
    *p->to++ = (unsigned char)byte;
}

static void memoize(struct pickler *p)
{
    if (p->manner == PYTHON_4) {
        op(p, 0x94);
        return;
    }
    op(p, 'r');
    for (int i = 0; i < 4; i++)
        op(p, (int)(p->memo >> 8 * i & 255));
    p->memo++;
}

static void write_value(struct pickler *p);

static void blanks(struct pickler *p)
{
    while (*p->from == ' ' || *p->from == ',' || *p->from == ':')
        p->from++;
}

static int write_values(struct pickler *p, char end)
{
    int count = 0;

    for (blanks(p); *p->from != end; blanks(p), count++)
        write_value(p);
    p->from++;
    return count;
}

static int count_values(const struct pickler *p, char end)
{
    unsigned char *space = malloc(8 * strlen(p->from) + 100);
    struct pickler copy = *p;
    int count;

    copy.to = space;
    count = write_values(&copy, end);
    free(space);
    return count;
}

static void write_container(struct pickler *p, char end, const char *ops)
{
    const int one = end == '}' ? 2 : 1;
    const int count = p->manner == PYTORCH ? INT_MAX : count_values(p, end);

    op(p, ops[0]);
    if (p->manner != PYTORCH)
        memoize(p);
    if (count > one)
        op(p, '(');
    write_values(p, end);
    if (count)
        op(p, ops[count > one ? 1 : 2]);
}

static void write_text(struct pickler *p)
{
    const size_t length = strcspn(p->from, "'");

    op(p, 'X');
    for (int i = 0; i < 4; i++)
        op(p, (int)(length >> 8 * i & 255));
    memcpy(p->to, p->from, length);
    p->to += length;
    p->from += length + 1;
    memoize(p);
}

static void write_number(struct pickler *p)
{
    const size_t length = strspn(p->from, "-0123456789.");

    if (memchr(p->from, '.', length)) {
        double d = strtod(p->from, NULL);
        uint64_t bits;

        memcpy(&bits, &d, 8);
        op(p, 'G');
        for (int i = 56; i >= 0; i -= 8)
            op(p, (int)(bits >> i & 255));
    } else {
        const bool negative = *p->from == '-';
        const uint64_t n =
            (uint64_t)(negative ? strtoll(p->from, NULL, 10) : 0) |
            (negative ? 0 : strtoull(p->from, NULL, 10));

        op(p, 0x8a);
        op(p, negative ? 8 : 9);
        for (int i = 0; i < 64; i += 8)
            op(p, (int)(n >> i & 255));
        if (!negative)
            op(p, 0);
    }
    p->from += length;
}

static void write_value(struct pickler *p)
{
    switch (*p->from++) {
    case '{':
        write_container(p, '}', "}us");
        break;
    case '[':
        write_container(p, ']', "]ea");
        break;
    case '(':
        op(p, '(');
        write_values(p, ')');
        op(p, 't');
        break;
    case '\'':
        write_text(p);
        break;
    case 'T':
        op(p, 0x88);
        break;
    case 'F':
        op(p, 0x89);
        break;
    case 'N':
        op(p, 'N');
        break;
    default:
        p->from--;
        write_number(p);
    }
}

static size_t pickle_it(const char *text, enum manner manner,
                        unsigned char *bytes)
{
    struct pickler p = {bytes, text, manner, 0};

    op(&p, 0x80);
    op(&p, manner == PYTHON_4 ? 4 : 2);
    write_value(&p);
    op(&p, '.');
    return (size_t)(p.to - bytes);
}

static enum frag_err import_text(const char *text, enum manner manner,
                                 const struct frag_read_options *opts,
                                 struct frag_build *b, struct frag_error *e)
{
    unsigned char *bytes = malloc(8 * strlen(text) + 100);
    const size_t size = pickle_it(text, manner, bytes);
    struct frag_source *s;
    enum frag_err err;

    assert_int_equal(frag_source_open_memory("it", bytes, size, &s, e),
                     FRAG_OK);
    err = import_from(s, b, opts, e);
    free(bytes);
    return err;
}

/* Imports the value in one manner; returns the calls to the builder or the
 * error. */
static char *imported(const char *text, enum manner manner,
                      const struct frag_read_options *opts)
{
    struct frag_build b = {0};
    struct frag_error e = {""};
    char *log = NULL;
    size_t length;

    b.log = open_memstream(&log, &length);
    if (import_text(text, manner, opts, &b, &e) != FRAG_OK)
        note_down(&b, "error %s\n", e.text);
    fclose(b.log);
    empty_builder(&b);
    return log;
}

static void expect(const char *text, const char *expected)
{
    for (enum manner m = PYTHON_4; m <= PYTORCH; m++) {
        char *log = imported(text, m, NULL);

        assert_string_equal(log, expected);
        free(log);
    }
}

/* The same, but for numbers that depend on the manner: '#' in expected. */
static void expect_error(const char *text, const char *expected)
{
    for (enum manner m = PYTHON_4; m <= PYTORCH; m++) {
        char *log = imported(text, m, NULL);
        const char *at = strstr(log, "error it:");

        assert_non_null(at);
        at += strlen("error it:");
        at += strspn(at, "0123456789");
        if (strncmp(at, expected, strlen(expected)))
            fail_msg("%s", log);
        free(log);
    }
}

#define NO_HISTORY                                                     \
    "note the snapshot has no history: it shows what was held at one " \
    "moment, not what the job requested; call "                        \
    "torch.cuda.memory._record_memory_history() before the job allocates\n"

static void an_entry_of_each_action_is_fed(void **state)
{
    (void)state;
    expect("{'segments': [], 'device_traces': [["
           "{'action':'segment_alloc','addr':4096,'size':2097152,'stream':0,"
           "'time_us':7,'compile_context':'N/A','user_metadata':''},"
           "{'action':'alloc','addr':4096,'size':1000,'stream':5,'time_us':8},"
           "{'action':'free_requested','addr':4096,'size':1000,'stream':5},"
           "{'action':'snapshot','addr':0,'size':0},"
           "{'action':'annotate'},"
           "{'action':'free_completed','addr':4096,'size':1000,'stream':5},"
           "{'action':'segment_map','addr':1,'size':2,'stream':3},"
           "{'action':'segment_unmap','addr':1,'size':2,'stream':3},"
           "{'action':'oom','device_free':77,'size':512,'stream':0},"
           "{'stream':0,'size':2097152,'addr':4096,'action':'segment_free'}"
           "]]}",
           "entry 0 segment_alloc 4096 2097152 0 7000\n"
           "entry 0 alloc 4096 1000 5 8000\n"
           "entry 0 free_requested 4096 1000 5 0\n"
           "entry 0 free_completed 4096 1000 5 0\n"
           "entry 0 segment_map 1 2 3 0\n"
           "entry 0 segment_unmap 1 2 3 0\n"
           "entry 0 oom 77 512 0 0\n"
           "entry 0 segment_free 4096 2097152 0 0\n");
}

/* Only an alloc has metadata, and only a text is metadata. */
static void metadata_is_the_outermost_frame(void **state)
{
    (void)state;
    expect("{'device_traces': [["
           "{'action':'segment_alloc','addr':1,'size':2,'stream':3,"
           "'user_metadata':'a'},"
           "{'action':'alloc','addr':1,'size':2,'stream':3,"
           "'user_metadata':'a'},"
           "{'action':'alloc','addr':2,'size':2,'stream':3,"
           "'user_metadata':7},"
           "{'action':'alloc','addr':3,'size':2,'stream':3,"
           "'user_metadata':'b\nmallocWithAddress'},"
           "{'action':'alloc','addr':4,'size':2,'stream':3,"
           "'user_metadata':'mallocWithAddress'}]]}",
           "entry 0 segment_alloc 1 2 3 0\n"
           "outer 0stack 1 user_metadata:0:a\n"
           "entry 0 alloc 1 2 3 0 stack 1\n"
           "entry 0 alloc 2 2 3 0\n"
           "outer 0stack 2 user_metadata:0:b\n"
           "entry 0 alloc 3 2 3 0 stack 2\n"
           "entry 0 alloc 4 2 3 0\n");
}

static void each_list_of_entries_is_a_device(void **state)
{
    (void)state;
    expect("{'device_traces': [[], [{'action':'alloc','addr':1,'size':2,"
           "'stream':3}], [], [{'action':'alloc','addr':4,'size':5,"
           "'stream':6,'pool_id':(7,8)},{'action':'alloc','addr':5,'size':5,"
           "'stream':6,'pool_id':(0,0)}]]}",
           "entry 1 alloc 1 2 3 0\n"
           "entry 3 alloc 4 5 6 0 pool 7 8\n"
           "entry 3 alloc 5 5 6 0 pool 0 0\n");
}

static void segments_come_before_their_blocks(void **state)
{
    static const char segment[] =
        "'device':1,'address':4096,'total_size':3072,'allocated_size':0,"
        "'active_size':0,'requested_size':0,'stream':9,'segment_type':'small',"
        "'segment_pool_id':(3,4),'is_expandable':T,'frames':[],";
    static const char blocks[] =
        "'blocks':[{'address':4096,'size':1024,'requested_size':1000,"
        "'state':'active_allocated','frames':[]},{'size':512,'state':"
        "'active_pending_free'},{'size':512,'state':'active_awaiting_free',"
        "'requested_size':1,'history':[{'frames':[]}]},"
        "{'size':1024,'state':'inactive','requested_size':2048}],";
    static const char expected[] = "segment 1 4096 3072 9 3 4 1 1\n"
                                   "block 1 4096 1024 1000 2\n"
                                   "block 1 0 512 unknown 1\n"
                                   "block 1 0 512 1 1\n"
                                   "block 1 0 1024 2048 0\n"
                                   "segment 0 1 2 0 0 0 0 0\n" NO_HISTORY;
    static const char second[] =
        "{'address':1,'total_size':2,'stream':0,'segment_type':'large',"
        "'blocks':[]}";
    char text[2000];

    (void)state;
    snprintf(text, sizeof(text), "{'segments':[{%s%s},%s]}", segment, blocks,
             second);
    expect(text, expected);
    snprintf(text, sizeof(text), "{'segments':[{%s%s},%s]}", blocks, segment,
             second);
    expect(text, expected);
    snprintf(text, sizeof(text), "[{%s%s},%s]", segment, blocks, second);
    expect(text, expected);
}

static void keys_come_in_any_order_and_unknown_ones_are_read_over(void **state)
{
    (void)state;
    expect(
        "{'more_traces':[[{'action':'alloc','addr':1,'size':2,'stream':3}]],"
        "'more_segments':[{'address':1,'blocks':[{'size':1}]}],"
        "'external_annotations':[{'name':'step','stage':'START','device':0,"
        "'time_us':3},{'stage':'END','device':0,'time_us':4,'name':'step'},"
        "{'stage':'START','device':-1,'time_us':4,'name':'host'},"
        "{'stage':'fragsim: policy','device':1,'time_us':0,'name':'remap'},"
        "{'stage':'fragsim: cache emptied','device':1,'time_us':7,'name':''},"
        "{'stage':'fragsim: empty_cache','device':1,'time_us':8,'name':''}],"
        "'allocator_settings':{'PYTORCH_CUDA_ALLOC_CONF':''},"
        "'device_traces':[[{'action':'oom','device_free':1,'size':2,"
        "'stream':3},{'action':'snapshot'}]],'trace_alloc_max_entries':9,"
        "'more':{'a':[{}]},"
        "'segments':[]}",
        "mark 0 begin 3000 step\n"
        "mark 0 end 4000 step\n"
        "policy 1 remap\n"
        "emptied 1 7000\n"
        "emptied 1 8000\n"
        "entry 0 oom 1 2 3 0\n"
        "settings '' 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
}

/* The settings at the start are those of the trace; each change keeps what its
 * text does not reset. */
static void changes_of_settings_are_read(void **state)
{
    (void)state;
    expect(
        "{'segments':[],'device_traces':[[{'action':'oom','device_free':1,"
        "'size':2,'stream':3},{'action':'snapshot'}]],"
        "'allocator_settings':{'PYTORCH_CUDA_ALLOC_CONF':''},"
        "'fragsim_start':{'PYTORCH_CUDA_ALLOC_CONF':"
        "'garbage_collection_threshold:0.5',"
        "'garbage_collection_threshold':0.5},"
        "'fragsim_settings':["
        "{'device':0,'time_us':0,'limit':-1},"
        "{'device':0,'time_us':5,'calls_after':7,'settings':"
        "'expandable_segments:True','frames':[{'name':'f','filename':'a.py',"
        "'line':3}]},"
        "{'device':-1,'time_us':6,'settings':'max_split_size_mb:64'},"
        "{'device':1,'time_us':6,'calls_after':0,'limit':4096}]}",
        "entry 0 oom 1 2 3 0\n"
        "stack 1 a.py:3:f\n"
        "settings '' 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        "settings 'garbage_collection_threshold:0.5' 0.5 0 0 0 0 0 0 0 0 0 0 0 "
        "0 0 0 0 0 0\n"
        "settings 'follows_changes:True,garbage_collection_threshold:0.5' 0.5 "
        "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        "change 0 limit -1 0 after -1 stack 0: 0 0.5 -1\n"
        "change 0 'expandable_segments:True' 5000 after 7 stack 1: 1 0 -1\n"
        "change -1 'max_split_size_mb:64' 6000 after -1 stack 0: 1 0 "
        "67108864\n"
        "change 1 limit 4096 6000 after 0 stack 0: 1 0 67108864\n");
}

static void one_entry_is_what_true_keeps(void **state)
{
    static const char text[] = "{'segments':[],'device_traces':[[{'action':"
                               "'snapshot'}],[]]}",
                      two[] = "{'segments':[],'device_traces':[[{'action':"
                              "'snapshot'}],[{'action':'snapshot'},{'action':"
                              "'snapshot'}]]}";
    char *log;

    (void)state;
    log = imported(text, PYTHON_4, NULL);
    assert_non_null(strstr(log, "one entry: _record_memory_history(True)"));
    assert_null(strstr(log, "no history"));
    free(log);
    log = imported(two, PYTHON_4, NULL);
    assert_null(strstr(log, "one entry"));
    assert_non_null(strstr(log, "no history"));
    free(log);
}

static void stacks_are_told_once_and_shared(void **state)
{
    static const char text[] =
        "{'device_traces':[[{'action':'alloc','addr':1,'size':2,'stream':0,"
        "'frames':[{'name':'f','filename':'a.py','line':3},"
        "{'name':'g','filename':'a.py','line':-1,'more':1}]},"
        "{'action':'alloc','addr':2,'size':2,'stream':0,'frames':[]}]]}";

    (void)state;
    expect(text, "stack 1 a.py:3:f a.py:0:g\n"
                 "entry 0 alloc 1 2 0 0 stack 1\n"
                 "entry 0 alloc 2 2 0 0\n");
}

/* More frames that differ only in their line than any cache of frames holds. */
static void frames_that_differ_in_the_line_are_different(void **state)
{
    enum { LINES = 6000 };
    char *text = malloc(60 * LINES), *expected = malloc(20 * LINES), *log;
    size_t length =
        (size_t)sprintf(text, "{'device_traces':[[{'action':'x','frames':[");
    size_t said = (size_t)sprintf(expected, "stack 1");

    (void)state;
    for (int i = 0; i < LINES; i++) {
        length += (size_t)sprintf(text + length,
                                  "{'name':'f','filename':'a','line':%d},", i);
        said += (size_t)sprintf(expected + said, " a:%d:f", i);
    }
    sprintf(text + length, "]}]]}");
    log = imported(text, PYTORCH, NULL);
    assert_memory_equal(log, expected, said);
    free(log);
    free(text);
    free(expected);
}

/* Python refers to a list it wrote before; here by hand: the frames of the
 * second entry are those of the first. */
static void a_stack_that_python_refers_to_is_the_same_stack(void **state)
{
    static const char bytes[] = "\x80\4}\x8c\15device_traces]]("
                                "}(\x8c\6action\x94\x8c\5"
                                "alloc\x94\x8c\4"
                                "addr\x94K\1"
                                "\x8c\4size\x94K\2\x8c\6stream\x94K\0\x8c\6"
                                "frames\x94"
                                "]\x94}\x94(\x8c\4name\x8c\1"
                                "f\x8c\10"
                                "filename\x8c\1"
                                "a"
                                "\x8c\4lineK\7u"
                                "au"
                                "}(h\0h\1h\2K\2h\3K\2h\4K\0h\5h\6ue"
                                "as.";
    struct frag_build b = {0};
    struct frag_source *s;
    struct frag_error e;
    char *log = NULL;
    size_t length;

    (void)state;
    b.log = open_memstream(&log, &length);
    assert_int_equal(
        frag_source_open_memory("it", bytes, sizeof(bytes) - 1, &s, &e),
        FRAG_OK);
    if (import_from(s, &b, NULL, &e) != FRAG_OK)
        fail_msg("%s", e.text);
    fclose(b.log);
    assert_string_equal(log, "stack 1 a:7:f\n"
                             "entry 0 alloc 1 2 0 0 stack 1\n"
                             "entry 0 alloc 2 2 0 0 stack 1\n");
    empty_builder(&b);
    free(log);
}

#define DIVISIONS(n)                                                     \
    "'roundup_power2_divisions':{'1':" n ",'2':" n ",'4':" n ",'8':" n   \
    ",'16':" n ",'32':" n ",'64':" n ",'128':" n ",'256':" n ",'512':" n \
    ",'1024':" n ",'2048':" n ",'4096':" n ",'8192':" n ",'16384':" n    \
    ",'32768':" n "}"
#define SETTINGS(conf, split, gc, expandable, divisions)                   \
    "{'segments':[],'allocator_settings':{'PYTORCH_CUDA_ALLOC_CONF':" conf \
    ",'max_split_size':" split ",'garbage_collection_threshold':" gc       \
    ",'expandable_segments':" expandable "," divisions "}}"
#define AFTER "device 0\n" NO_HISTORY

static void a_conf_that_says_what_is_in_force_is_kept(void **state)
{
    (void)state;
    expect(SETTINGS("'max_split_size_mb:64, garbage_collection_threshold:0.8'",
                    "67108864", "0.8", "F", DIVISIONS("0")),
           "settings 'max_split_size_mb:64, garbage_collection_threshold:0.8' "
           "0.8 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n" AFTER);
    expect(SETTINGS("'expandable_segments:True,roundup_power2_divisions:4'",
                    "-1", "0.0", "T", DIVISIONS("4")),
           "settings 'expandable_segments:True,roundup_power2_divisions:4' "
           "0 1 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4\n" AFTER);
    expect(
        SETTINGS("'roundup_power2_divisions:[256:1,512:2,1024:4,>:8],"
                 "large_segment_size_mb:64'",
                 "-1", "0.0", "F",
                 "'roundup_power2_divisions':{'1':1,'2':1,'4':1,'8':1,'16':1,"
                 "'32':1,'64':1,'128':1,'256':1,'512':2,'1024':4,'2048':8,"
                 "'4096':8,'8192':8,'16384':8,'32768':8}"),
        "settings 'roundup_power2_divisions:[256:1,512:2,1024:4,>:8],"
        "large_segment_size_mb:64' 0 0 1 1 1 1 1 1 1 1 1 2 4 8 8 8 8 "
        "8\n" AFTER);
}

static void a_conf_that_says_something_else_is_rebuilt(void **state)
{
    (void)state;
    expect(
        SETTINGS("'large_segment_size_mb:64,max_split_size_mb:128'",
                 "134217728", "0.6", "T", DIVISIONS("0")),
        "settings 'large_segment_size_mb:64,expandable_segments:True,"
        "max_split_size_mb:128,garbage_collection_threshold:0.6' 0.6 1 0 0 0 "
        "0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        "note the settings in force differed from "
        "PYTORCH_CUDA_ALLOC_CONF ('large_segment_size_mb:64,"
        "max_split_size_mb:128'); the trace has the settings in force: "
        "large_segment_size_mb:64,expandable_segments:True,"
        "max_split_size_mb:128,garbage_collection_threshold:0.6\n" AFTER);
    expect("{'segments':[],'allocator_settings':{" DIVISIONS("8") "}}",
           "settings 'roundup_power2_divisions:[1:8,2:8,4:8,8:8,16:8,32:8,64:8,"
           "128:8,256:8,512:8,1024:8,2048:8,4096:8,8192:8,16384:8,32768:8]' "
           "0 0 8 8 8 8 8 8 8 8 8 8 8 8 8 8 8 8\n" AFTER);
    expect("{'segments':[],'allocator_settings':{'expandable_segments':F}}",
           "settings '' 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n" AFTER);
}

/* The keys of a snapshot tell which releases of PyTorch 2 write such ones. */
static void keys_tell_the_releases(void **state)
{
#define ENTRY "'action': 'alloc', 'addr': 1, 'size': 512, 'stream': 0"
    static const struct {
        const char *text;
        uint32_t first, last;
    } rows[] = {
        {"[{'address': 1, 'total_size': 0, 'stream': 0, 'segment_type': "
         "'large', 'blocks': []}]",
         0, 0},
        {"{'segments': [], 'device_traces': [[{" ENTRY "}]]}", 0, 1},
        {"{'segments': [], 'device_traces': [[{" ENTRY ", 'time_us': 1}]]}", 2,
         2},
        {"{'segments': [], 'device_traces': [], 'allocator_settings': "
         "{'expandable_segments': F}}",
         3, 4},
        {"{'segments': [], 'device_traces': [[{" ENTRY ", 'time_us': 1}]], "
         "'allocator_settings': {'expandable_segments': F}, "
         "'external_annotations': []}",
         5, 7},
        {"{'segments': [], 'device_traces': [[{" ENTRY ", 'time_us': 1, "
         "'compile_context': 'N/A'}]], "
         "'allocator_settings': {'expandable_segments': F, "
         "'graph_capture_record_stream_reuse': F}, "
         "'external_annotations': []}",
         9, 9},
        {"{'segments': [], 'device_traces': [[{" ENTRY ", 'time_us': 1, "
         "'compile_context': 'N/A', 'user_metadata': ''}]], "
         "'allocator_settings': {'expandable_segments': F, "
         "'graph_capture_record_stream_reuse': F}, "
         "'external_annotations': []}",
         10, 11},
        {"{'segments': [], 'device_traces': [[{" ENTRY ", 'time_us': 1, "
         "'compile_context': 'N/A', 'user_metadata': '', 'pool_id': (0, 0)}]], "
         "'allocator_settings': {'expandable_segments': F, "
         "'graph_capture_record_stream_reuse': F}, "
         "'external_annotations': []}",
         12, 12},
        {"{'segments': [], 'device_traces': [[{" ENTRY ", 'time_us': 1, "
         "'compile_context': 'N/A', 'user_metadata': '', 'pool_id': (0, 0)}]], "
         "'allocator_settings': {'expandable_segments': F, "
         "'graph_capture_record_stream_reuse': F, 'max_round_threshold': -1}, "
         "'external_annotations': []}",
         13, 13},
        {"{'segments': [], 'device_traces': [[{" ENTRY ", 'time_us': 1, "
         "'compile_context': 'N/A', 'user_metadata': '', 'pool_id': (0, 0)}]], "
         "'allocator_settings': {'expandable_segments': F, "
         "'graph_capture_record_stream_reuse': F, 'max_round_threshold': -1}, "
         "'external_annotations': [], 'host_segments': []}",
         14, UINT32_MAX},
    };
#undef ENTRY

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_build b = {.first = 99};
        struct frag_error e = {""};

        if (import_text(rows[i].text, PYTHON_4, NULL, &b, &e) != FRAG_OK)
            fail_msg("%s: %s", rows[i].text, e.text);
        if (b.first != rows[i].first || b.last != rows[i].last)
            fail_msg("%s: 2.%u to 2.%u", rows[i].text, b.first, b.last);
        empty_builder(&b);
    }
}

static void an_overflowed_ring_is_noted(void **state)
{
    static const char noted[] =
        "note the ring buffer of the history overflowed, so "
        "the oldest entries are lost; a larger "
        "max_entries of _record_memory_history keeps "
        "them\n" AFTER;

    (void)state;
    expect("{'segments':[],'trace_alloc_overflowed':[F,T]}", noted);
    expect("{'segments':[],'trace_alloc_overflowed':T}", noted);
    expect("{'segments':[],'trace_alloc_overflowed':[F,F]}", AFTER);
    expect("{'segments':[],'trace_alloc_overflowed':F}", AFTER);
}

#define ENTRY(text)   "{'device_traces':[[{'action':'x'},{" text "}]]}"
#define SEGMENT(text) "{'segments':[{" text "}]}"

static void what_is_missing_or_of_a_wrong_type_is_named(void **state)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {ENTRY("'addr':1,'size':2,'stream':3"),
         ": a trace entry, number 1: expected the key 'action', found none"},
        {ENTRY("'action':'alloc','size':2,'stream':3"),
         ": a trace entry, number 1: expected the key 'addr', found none"},
        {ENTRY("'action':'oom','addr':1,'size':2,'stream':3"),
         ": a trace entry, number 1: expected the key 'device_free'"},
        {ENTRY("'action':'alloc','addr':1,'stream':3"),
         ": a trace entry, number 1: expected the key 'size', found none"},
        {ENTRY("'action':'alloc','addr':1,'size':3"),
         ": a trace entry, number 1: expected the key 'stream', found none"},
        {ENTRY("'action':'alloc','addr':'1','size':3,'stream':0"),
         ": a trace entry, number 1: expected an integer for the key 'addr', "
         "found a text"},
        {ENTRY("'action':'alloc','addr':-1,'size':3,'stream':0"),
         ": a trace entry, number 1: expected at least 0 for the key 'addr'"},
        {ENTRY("'action':'alloc','addr':1,'size':3.5,'stream':0"),
         ": a trace entry, number 1: expected an integer for the key 'size', "
         "found a float"},
        {ENTRY("'action':7,'addr':1,'size':3,'stream':0"),
         ": a trace entry, number 1: expected a text for the key 'action', "
         "found an integer"},
        {ENTRY("'action':'alloc','addr':1,'size':3,'stream':0,'frames':N"),
         ": a trace entry, number 1: expected a list of frames for the key "
         "'frames', found None"},
        {ENTRY("'action':'alloc','addr':1,'size':3,'stream':0,'frames':[3]"),
         ": expected a frame in a list of frames, found an integer"},
        {ENTRY("'action':'alloc','addr':1,'size':3,'stream':0,'frames':"
               "[{'name':'f','line':3}]"),
         ": a frame, number 0: expected the key 'filename', found none"},
        {ENTRY("'action':'alloc','addr':1,'size':3,'stream':0,"
               "'time_us':18446744073709551615"),
         ": a trace entry, number 1: expected less than 2^64 / 1000 for the "
         "key 'time_us'"},
        {ENTRY("'action':'alloc','addr':1,'size':3,'stream':0,'pool_id':3"),
         ": a trace entry, number 1: expected a tuple of two integers for the "
         "key 'pool_id'"},
        {"{'device_traces':[{}]}",
         ": expected a list of trace entries in the list of device traces, "
         "found a value of another type"},
        {"{'device_traces':3}",
         ": a snapshot, number 0: expected the list of device traces for the "
         "key 'device_traces', found an "
         "integer"},
        {"{'device_traces':[[3]]}",
         ": expected a trace entry in a list of trace entries, found an int"},
        {"{'device_traces':[],'device_traces':[]}",
         ": expected the list of device traces once, found a second one"},
        {"{'a':3}", ": expected a snapshot, with the key 'segments' or "
                    "'device_traces'"},
        {"{}", ": expected a snapshot, with the key 'segments' or "
               "'device_traces'"},
        {"3",
         ": expected a snapshot or the list of segments, found an integer"},
        {"'x'", ": expected a snapshot or the list of segments, found a text"},
        {SEGMENT("'address':1,'stream':0,'segment_type':'small','blocks':[]"),
         ": a segment, number 0: expected the key 'total_size', found none"},
        {SEGMENT(
             "'address':1,'total_size':9,'stream':0,'segment_type':'small'"),
         ": a segment, number 0: expected the key 'blocks', found none"},
        {SEGMENT("'address':1,'total_size':9,'stream':0,'segment_type':'small',"
                 "'blocks':[{'size':3}]"),
         ": a block, number 0: expected the key 'state', found none"},
        {SEGMENT("'address':1,'total_size':9,'stream':0,'segment_type':'small',"
                 "'blocks':[{'size':3,'state':'idle'}]"),
         ": a block, number 0: expected inactive, active_allocated, "
         "active_pending_free or active_awaiting_free for the key 'state', "
         "found another text"},
        {SEGMENT("'address':1,'total_size':9,'stream':0,'segment_type':'small',"
                 "'blocks':[{'size':3,'state':'active_allocated',"
                 "'requested_size':4}]"),
         ": a block, number 0: expected at most the size for the key "
         "'requested_size', found more"},
        {SEGMENT("'address':1,'total_size':9,'stream':0,'segment_type':'small',"
                 "'device':1024,'blocks':[]"),
         ": a segment, number 0: expected less than 1024 for the key 'device'"},
        {"{'segments':[],'fragsim_settings':[{'device':0,'time_us':1}]}",
         ": a change of settings, number 1: expected the key 'settings', found "
         "none"},
        {"{'segments':[],'external_annotations':[{'stage':'END','name':'x'}]}",
         ": an annotation, number 0: expected the key 'time_us', found none"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        expect_error(rows[i].text, rows[i].expected);
}

/* Whatever the number of devices, an entry's has a bound. */
static void too_many_devices_are_refused(void **state)
{
    char *text = malloc(8000);
    size_t length = (size_t)sprintf(text, "{'device_traces':[");

    (void)state;
    for (int i = 0; i < 1024; i++)
        length += (size_t)sprintf(text + length, "[],");
    sprintf(text + length,
            "[{'action':'alloc','addr':1,'size':2,'stream':3}]]}");
    expect_error(text,
                 ": a trace entry, number 0: expected at most 1024 devices in");
    free(text);
}

static bool stop_it(void *user, uint64_t done, uint64_t total)
{
    uint64_t *calls = user;

    assert_true(done <= total);
    ++*calls;
    return true;
}

static void progress_can_cancel(void **state)
{
    uint64_t calls = 0;
    const struct frag_read_options opts = {.progress = stop_it, .user = &calls};
    char *log = imported("{'segments':[]}", PYTHON_4, &opts);

    (void)state;
    assert_string_equal(log, "error it: interrupted\n");
    assert_int_equal(calls, 1);
    free(log);
}

/* Recordings: the counts that were written down when they were made. */

static uint64_t count_said(const char *json, const char *action)
{
    const char *at = strstr(json, "\"actions\""), *end;
    char key[40];

    if (!at)
        return 0;
    end = strchr(at, '}');
    snprintf(key, sizeof(key), "\"%s\":", action);
    at = strstr(at, key);
    return at && at < end ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static char *read_text(const char *path)
{
    char *text = calloc(1, 1 << 16);
    FILE *f = fopen(path, "r");

    if (!f) {
        free(text);
        return NULL;
    }
    text[fread(text, 1, (1 << 16) - 1, f)] = '\0';
    fclose(f);
    return text;
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) &&
           !strcmp(text + strlen(text) - strlen(end), end);
}

/* False if it has no JSON beside it. */
static bool compare_counts(const char *folder, const char *name)
{
    char path[1000], *json;
    struct frag_build b = {0};
    struct frag_error e;

    snprintf(path, sizeof(path), "%s/%.*s.json", folder,
             (int)strcspn(name, "."), name);
    json = read_text(path);
    if (!json)
        return false;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (import_file(path, &b, &e) != FRAG_OK)
        fail_msg("%s", e.text);
    for (size_t i = 0; strstr(json, "\"actions\"") && i < 8; i++)
        if (b.actions[i] != count_said(json, action_names[i]))
            fail_msg("%s: %s: %" PRIu64 " fed, %" PRIu64 " recorded", name,
                     action_names[i], b.actions[i],
                     count_said(json, action_names[i]));
    assert_true(b.segments && b.blocks && b.actions[0]);
    empty_builder(&b);
    free(json);
    return true;
}

static size_t compare_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    size_t count = 0;

    if (!dir) {
        print_message("skipped: there is no %s\n", folder);
        skip();
    }
    while ((entry = readdir(dir)))
        if (ends_with(entry->d_name, ".pickle.xz"))
            count += compare_counts(folder, entry->d_name);
    closedir(dir);
    return count;
}

static void every_recording_feeds_the_entries_it_was_made_of(void **state)
{
    (void)state;
    assert_true(compare_folder(FRAG_SHARED_DIR "/recorded/dev") >= 98);
    assert_int_equal(compare_folder(FRAG_SHARED_DIR "/recorded/multi"), 5);
}

static void public_snapshots_are_read(void **state)
{
    static const char *const paths[] = {
        FRAG_SHARED_DIR "/foreign/pytorch/mem_snapshot.pickle",
        FRAG_SHARED_DIR "/foreign/pytorch/memory_forward_bf16_128.pickle.xz"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct frag_build b = {0};
        struct frag_error e;
        enum frag_err err = import_file(paths[i], &b, &e);

        if (err == FRAG_IO) {
            print_message("skipped: %s\n", e.text);
            skip();
        }
        assert_int_equal(err, FRAG_OK);
        assert_true(b.segments && b.actions[0] && b.stack_count);
        empty_builder(&b);
    }
}

/* The result of Python's own unpickler for the same files. */
static void python_reads_the_same(void **state)
{
    char command[2000];

    (void)state;
    if (system("python3 -c '' 2>/dev/null") ||
        access(FRAG_SHARED_DIR "/recorded/dev", R_OK)) {
        print_message("skipped: no python3, or no recordings\n");
        skip();
    }
    snprintf(command, sizeof(command),
             "cd " FRAG_SHARED_DIR " && python3 " FRAG_SOURCE_DIR
             "/tests/support/compare_import.py /proc/%d/exe"
             " recorded/dev/leak*.pickle.xz recorded/dev/cudagraph*.pickle.xz"
             " recorded/dev/gnn_sample__cap*.pickle.xz"
             " recorded/multi/multi_dp.pickle.xz foreign/pytorch/mem*",
             (int)getpid());
    assert_int_equal(system(command), 0);
}

static int dump(const char *path)
{
    static struct frag_build b;
    struct frag_error e;

    b.log = stdout;
    if (import_file(path, &b, &e) == FRAG_OK)
        return 0;
    fprintf(stderr, "%s\n", e.text);
    return 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_of_each_action_is_fed),
        cmocka_unit_test(metadata_is_the_outermost_frame),
        cmocka_unit_test(each_list_of_entries_is_a_device),
        cmocka_unit_test(segments_come_before_their_blocks),
        cmocka_unit_test(keys_come_in_any_order_and_unknown_ones_are_read_over),
        cmocka_unit_test(changes_of_settings_are_read),
        cmocka_unit_test(one_entry_is_what_true_keeps),
        cmocka_unit_test(stacks_are_told_once_and_shared),
        cmocka_unit_test(frames_that_differ_in_the_line_are_different),
        cmocka_unit_test(a_stack_that_python_refers_to_is_the_same_stack),
        cmocka_unit_test(a_conf_that_says_what_is_in_force_is_kept),
        cmocka_unit_test(a_conf_that_says_something_else_is_rebuilt),
        cmocka_unit_test(keys_tell_the_releases),
        cmocka_unit_test(an_overflowed_ring_is_noted),
        cmocka_unit_test(what_is_missing_or_of_a_wrong_type_is_named),
        cmocka_unit_test(too_many_devices_are_refused),
        cmocka_unit_test(progress_can_cancel),
        cmocka_unit_test(every_recording_feeds_the_entries_it_was_made_of),
        cmocka_unit_test(public_snapshots_are_read),
        cmocka_unit_test(python_reads_the_same),
    };

    if (argc == 3 && !strcmp(argv[1], "--dump"))
        return dump(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
