/* import_umpire.c - imports the replay log of Umpire (UMPIRE_REPLAY=On): one
 * JSON object a line, such as
 *
 *   {"category":"operation","name":"allocate","numeric_args":{"size":128},
 *    "string_args":{"allocator_ref":"0x10","pointer":"0x20"},"timestamp":1}
 *
 * The log has the calls of the program to its allocators, not what a pool
 * requests to grow. A memory resource (HOST, DEVICE::0, ...) is a device of the
 * trace. An allocator that holds memory of its own is a pool of its device; one
 * that forwards calls, such as an advisor, has the pool of its parent. The
 * requests to the resource itself are in the default pool.
 *
 * A reallocate is a pair of lines. If the calls by which it works stand between
 * them, these count; otherwise the pair is a free and an alloc. A release or
 * coalesce of a pool is an empty_cache. An allocation of 0 bytes takes nothing
 * from its allocator and is left out. Logs before Umpire 2022.10 have other
 * words, and each allocate twice: before the call and with its result.
 *
 * Format: LLNL/Umpire, src/umpire/event/json_file_store.cpp,
 * src/umpire/ResourceManager.cpp.
 */
#include <inttypes.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/fields.h"
#include "traces/bytes/lines.h"
#include "traces/import/allocators.h"
#include "traces/import/importers.h"
#include "traces/json/records.h"
#include "traces/live.h"

/* The values of a line and their paths, those of the older format after the
 * others. Of one value, the first path that the line has counts. */
#define PATHS(X)                              \
    X(CATEGORY, "category")                   \
    X(OPERATION, "name")                      \
    X(OPERATION, "event")                     \
    X(TIME, "timestamp")                      \
    X(SIZE, "numeric_args/size")              \
    X(SIZE, "payload/size")                   \
    X(REF, "string_args/allocator_ref")       \
    X(REF, "payload/allocator_ref")           \
    X(REF, "result/allocator_ref")            \
    X(REF, "result")                          \
    X(POINTER, "string_args/pointer")         \
    X(POINTER, "result/memory_ptr")           \
    X(POINTER, "payload/memory_ptr")          \
    X(OLD_POINTER, "string_args/current_ptr") \
    X(NEW_POINTER, "string_args/new_ptr")     \
    X(LABEL, "string_args/allocation_name")   \
    X(ALLOCATOR, "tags/allocator_name")       \
    X(ALLOCATOR, "payload/allocator_name")    \
    X(ALLOCATOR, "payload/name")              \
    X(TYPE, "string_args/type")               \
    X(TYPE, "payload/type")                   \
    X(PARENT, "string_args/arg0")             \
    X(PARENT, "payload/args/[]")

enum value_number {
    CATEGORY,
    OPERATION,
    TIME,
    SIZE,
    REF,
    POINTER,
    OLD_POINTER,
    NEW_POINTER,
    LABEL,
    ALLOCATOR,
    TYPE,
    PARENT,
    VALUE_COUNT
};

static const char *const paths[] = {
#define X(value, path) path,
    PATHS(X)
#undef X
};

static const enum value_number value_of_path[] = {
#define X(value, path) value,
    PATHS(X)
#undef X
};

enum { PATH_COUNT = sizeof(paths) / sizeof(*paths) };

/* A request whose result is in a later line. */
struct pending {
    bool is_open;
    bool has_calls; /* there were calls between */
    uint32_t allocator;
    frag_size size;
    uint64_t pointer;
};

struct umpire {
    struct frag_source *source;
    struct frag_build *build;
    struct frag_error *e;
    struct json *json;
    uint64_t line, torn; /* torn: the line that has not ended, 0: none */
    frag_time time;
    struct json_value values[VALUE_COUNT]; /* of the line */

    struct allocators allocators;
    struct live blocks; /* index of the allocator of a live block */
    struct live empty;  /* number of live allocations of 0 bytes */

    struct pending reallocate;
    struct pending attempt; /* an allocate of the older format */
    bool has_requests;
    bool is_old; /* the older format */
    uint64_t zeros, trims, unknown, vanished, others, comments; /* for notes */
};

/* ---- the values of a line ---- */

static struct field field_of(const struct json_value *v)
{
    return (struct field){v->text, v->length};
}

static bool has(const struct umpire *u, enum value_number number)
{
    return u->values[number].kind != JSON_ABSENT;
}

static enum frag_err wrong(const struct umpire *u, const char *expected,
                           enum value_number number)
{
    if (has(u, number))
        return field_wrong(u->source, u->line, expected,
                           field_of(&u->values[number]), u->e);
    return frag_fail(u->e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected %s, found a line without it",
                     frag_source_name(u->source), u->line, expected);
}

/* Reads a pointer or a reference; a null pointer is "(nil)" or "0". */
static enum frag_err read_pointer(const struct umpire *u,
                                  enum value_number number, uint64_t *value)
{
    const struct field f = field_of(&u->values[number]);

    *value = 0;
    return field_is(f, "(nil)") || field_number(f, value)
               ? FRAG_OK
               : wrong(u, "an address such as \"0x7fc891338010\"", number);
}

static enum frag_err read_size(const struct umpire *u, uint64_t *size)
{
    return u->values[SIZE].kind == JSON_NUMBER &&
                   field_decimal(field_of(&u->values[SIZE]), size)
               ? FRAG_OK
               : wrong(u, "a number of bytes (size)", SIZE);
}

/* ---- allocators ---- */

/* Reads the name of an allocator and stores it as a string of the trace; its
 * number is UINT32_MAX on failure. */
static enum frag_err read_name(const struct umpire *u, enum value_number number,
                               uint32_t *string)
{
    const struct json_value *name = &u->values[number];

    *string = UINT32_MAX;
    if (name->kind != JSON_STRING)
        return wrong(u, "the name of an allocator", number);
    *string = frag_build_string(u->build, name->text, name->length);
    return *string == UINT32_MAX ? FRAG_NOMEM : FRAG_OK;
}

/* Sets *index to the allocator that the line names: by its reference, or else
 * by its name, as coalesce does. */
static enum frag_err find_allocator(const struct umpire *u, uint32_t *index)
{
    uint64_t ref;

    if (has(u, REF)) {
        FRAG_TRY(read_pointer(u, REF, &ref));
        *index = allocators_find(&u->allocators, ref);
    } else {
        FRAG_TRY(read_name(u, ALLOCATOR, index));
        *index = allocators_named(&u->allocators, *index);
    }
    return *index == UINT32_MAX
               ? wrong(u, "an allocator that an earlier line made", REF)
               : FRAG_OK;
}

static enum frag_err on_resource(struct umpire *u)
{
    uint32_t name;
    uint64_t ref;

    FRAG_TRY(read_pointer(u, REF, &ref));
    FRAG_TRY(read_name(u, ALLOCATOR, &name));
    return allocators_add_resource(&u->allocators, ref, name,
                                   u->values[ALLOCATOR].text);
}

/* Whether an allocator of this class holds memory of its own. The others
 * forward each call to their parent. */
static bool holds_memory(struct field type)
{
    return field_contains(type, "Pool") || field_contains(type, "Monotonic");
}

static enum frag_err on_allocator(struct umpire *u)
{
    uint32_t name, parent;
    uint64_t ref;

    if (!has(u, REF)) /* before the call, in the older format */
        return FRAG_OK;
    FRAG_TRY(read_pointer(u, REF, &ref));
    FRAG_TRY(read_name(u, PARENT, &parent));
    FRAG_TRY(read_name(u, ALLOCATOR, &name));
    parent = allocators_named(&u->allocators, parent);
    if (parent == UINT32_MAX)
        return wrong(u, "the name of a parent that an earlier line made",
                     PARENT);
    return allocators_add(&u->allocators, ref, name, u->values[ALLOCATOR].text,
                          parent, holds_memory(field_of(&u->values[TYPE])));
}

/* ---- requests ---- */

/* Adds an entry to the pool that the allocator takes memory from. */
static enum frag_err put(struct umpire *u, uint32_t allocator,
                         struct frag_entry entry)
{
    struct allocator *a = &u->allocators.items[allocator];

    a = &u->allocators.items[a->owner];
    a->requests += entry.kind == FRAG_ENTRY_ALLOC;
    a->requests += entry.kind == FRAG_ENTRY_FAILED;
    entry.time = u->time;
    entry.has_pool = a->pool != 0;
    entry.pool.number = a->pool;
    u->has_requests = true;
    return frag_build_entry(u->build, a->device, &entry, u->line, u->e);
}

/* The stack of a named allocation is its name. */
static enum frag_err stack_of(const struct umpire *u, uint32_t allocator,
                              uint32_t *stack)
{
    const struct json_value *label = &u->values[LABEL];
    struct frag_frame frame = {.file = u->allocators.items[allocator].string};

    *stack = 0;
    if (!has(u, LABEL))
        return FRAG_OK;
    frame.function = frag_build_string(u->build, label->text, label->length);
    *stack = frag_build_stack(u->build, &frame, 1);
    return frame.function == UINT32_MAX || *stack == UINT32_MAX ? FRAG_NOMEM
                                                                : FRAG_OK;
}

static enum frag_err add_empty(struct umpire *u, uint64_t pointer)
{
    struct live_row *row = live_find(&u->empty, pointer);

    u->zeros++;
    if (!row)
        return live_put(&u->empty, pointer, 1) ? FRAG_OK : FRAG_NOMEM;
    row->slot++;
    return FRAG_OK;
}

static enum frag_err free_block(struct umpire *u, uint64_t pointer)
{
    struct live_row *row = live_find(&u->blocks, pointer);
    struct live_row *empty = live_find(&u->empty, pointer);
    const struct frag_entry entry = {
        .kind = FRAG_ENTRY_FREE_COMPLETED, .addr = pointer, .size = 1};
    uint32_t allocator;

    if (!row && empty && --empty->slot == 0)
        live_remove(&u->empty, empty);
    u->unknown += !row && !empty && pointer;
    if (!row)
        return FRAG_OK;
    allocator = row->slot;
    live_remove(&u->blocks, row);
    return put(u, allocator, entry);
}

static enum frag_err add_block(struct umpire *u, uint32_t allocator,
                               uint64_t pointer, frag_size size)
{
    struct frag_entry entry = {
        .kind = FRAG_ENTRY_ALLOC, .addr = pointer, .size = size};

    if (!pointer)
        return FRAG_OK;
    if (!size)
        return add_empty(u, pointer);
    if (live_find(&u->blocks, pointer)) {
        u->vanished++;
        FRAG_TRY(free_block(u, pointer));
    }
    FRAG_TRY(stack_of(u, allocator, &entry.stack));
    if (!live_put(&u->blocks, pointer, allocator))
        return FRAG_NOMEM;
    return put(u, allocator, entry);
}

/* ---- operations ---- */

/* Adds the request of an allocate that has no result: it failed. */
static enum frag_err settle_attempt(struct umpire *u)
{
    const struct pending p = u->attempt;

    u->attempt.is_open = false;
    if (!p.is_open || !p.size)
        return FRAG_OK;
    return put(u, p.allocator,
               (struct frag_entry){.kind = FRAG_ENTRY_FAILED, .size = p.size});
}

static enum frag_err on_allocate(struct umpire *u)
{
    uint32_t allocator;
    uint64_t pointer;
    frag_size size;

    u->reallocate.has_calls = true;
    FRAG_TRY(find_allocator(u, &allocator));
    FRAG_TRY(read_size(u, &size));
    if (!has(u, POINTER) && !has(u, CATEGORY)) {
        FRAG_TRY(settle_attempt(u));
        u->attempt = (struct pending){
            .is_open = true, .allocator = allocator, .size = size};
        return FRAG_OK;
    }
    u->attempt.is_open = false;
    FRAG_TRY(read_pointer(u, POINTER, &pointer));
    return add_block(u, allocator, pointer, size);
}

static enum frag_err on_deallocate(struct umpire *u)
{
    uint64_t pointer;

    u->reallocate.has_calls = true;
    FRAG_TRY(read_pointer(u, POINTER, &pointer));
    return free_block(u, pointer);
}

/* The first line of the pair has the size, the second one the result. */
static enum frag_err on_reallocate(struct umpire *u)
{
    struct pending *p = &u->reallocate;
    uint64_t pointer;

    if (!has(u, OLD_POINTER)) {
        FRAG_TRY(read_pointer(u, NEW_POINTER, &pointer));
        if (!p->is_open)
            return wrong(u,
                         "the first line of this reallocate before its "
                         "result",
                         NEW_POINTER);
        p->is_open = false;
        if (p->has_calls)
            return FRAG_OK;
        FRAG_TRY(free_block(u, p->pointer));
        return add_block(u, p->allocator, pointer, p->size);
    }
    *p = (struct pending){.is_open = true};
    FRAG_TRY(find_allocator(u, &p->allocator));
    FRAG_TRY(read_size(u, &p->size));
    return read_pointer(u, OLD_POINTER, &p->pointer);
}

static enum frag_err on_copy(struct umpire *u)
{
    u->reallocate.has_calls = true;
    return FRAG_OK;
}

/* Only a pool has unused memory to return. */
static enum frag_err on_trim(struct umpire *u)
{
    uint32_t allocator;

    FRAG_TRY(find_allocator(u, &allocator));
    if (!u->allocators.items[allocator].pool)
        return FRAG_OK;
    u->trims++;
    return put(u, allocator,
               (struct frag_entry){.kind = FRAG_ENTRY_EMPTY_CACHE});
}

static enum frag_err on_nothing(struct umpire *u)
{
    (void)u;
    return FRAG_OK;
}

static const struct operation {
    const char *name;
    enum frag_err (*run)(struct umpire *u);
} operations[] = {
    {"allocate", on_allocate},
    {"named_allocate", on_allocate},
    {"deallocate", on_deallocate},
    {"reallocate", on_reallocate},
    {"copy", on_copy},
    {"release", on_trim},
    {"coalesce", on_trim},
    {"make_memory_resource", on_resource},
    {"makeMemoryResource", on_resource},
    {"make_allocator", on_allocator},
    {"makeAllocator", on_allocator},
    {"version", on_nothing},
    {"move", on_nothing},
    {"memset", on_nothing},
    {"set_default_allocator", on_nothing},
    {"setDefaultAllocator", on_nothing},
    {"register_external_allocation", on_nothing},
    {"deregister_external_allocation", on_nothing},
};

static enum frag_err run_operation(struct umpire *u)
{
    const struct field name = field_of(&u->values[OPERATION]);

    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
        if (field_is(name, operations[i].name))
            return operations[i].run(u);
    u->others++;
    return FRAG_OK;
}

/* ---- lines ---- */

static enum frag_err read_record(void *user, const struct json_value *values,
                                 uint64_t where)
{
    struct umpire *u = user;

    (void)where;
    memset(u->values, 0, sizeof(u->values));
    for (size_t i = PATH_COUNT; i-- > 0;)
        if (values[i].kind != JSON_ABSENT || !u->values[value_of_path[i]].text)
            u->values[value_of_path[i]] = values[i];
    u->is_old |= !has(u, CATEGORY);
    if (!has(u, OPERATION))
        return wrong(u, "the name of an operation", OPERATION);
    if (u->values[TIME].kind != JSON_NUMBER ||
        !field_decimal(field_of(&u->values[TIME]), &u->time))
        return wrong(u, "a time in ns (timestamp)", TIME);
    if (!field_is(field_of(&u->values[OPERATION]), "allocate"))
        FRAG_TRY(settle_attempt(u));
    return run_operation(u);
}

static const struct json_schema schema = {
    .record = "",
    .fields = paths,
    .field_count = PATH_COUNT,
    .is_lines = true,
    .each = read_record,
};

static bool is_comment(const char *line, size_t length)
{
    return length && line[0] == '#';
}

static enum frag_err read_line(void *user, const char *line, size_t length,
                               uint64_t number)
{
    struct umpire *u = user;

    if (u->torn)
        return frag_fail(u->e, FRAG_CORRUPT,
                         "%s:%" PRIu64 ": expected a JSON object, found one "
                         "that does not end on its line",
                         frag_source_name(u->source), u->torn);
    if (is_comment(line, length)) {
        u->comments++;
        return FRAG_OK;
    }
    u->line = number;
    FRAG_TRY(json_feed(u->json, line, length, number, u->e));
    u->torn = json_is_complete(u->json) ? 0 : number;
    return FRAG_OK;
}

/* ---- the file ---- */

static enum frag_err put_notes(const struct umpire *u)
{
    const struct frag_build_count notes[] = {
        {u->zeros, "allocations of 0 bytes are left out, because they take "
                   "nothing from their allocator"},
        {u->trims, "calls of release and coalesce, which are of one pool, are "
                   "empty_cache calls for all pools of its device"},
        {u->unknown, "frees of addresses that no line allocated are left out"},
        {u->vanished, "addresses were allocated again without a free; each was "
                      "freed at its next alloc"},
        {u->others, "lines with other operations are left out"},
        {u->comments, "lines of comments (#) are left out"},
        {u->torn != 0, "line, the last one, is incomplete and is left out: the "
                       "program was killed, or it still runs"},
    };

    FRAG_TRY(allocators_note(&u->allocators, u->build));
    if (!u->is_old)
        FRAG_TRY(frag_build_note(u->build,
                                 "the log has no failed requests: a request "
                                 "that found no memory is missing"));
    FRAG_TRY(
        frag_build_counts(u->build, notes, sizeof(notes) / sizeof(*notes)));
    return u->has_requests ? FRAG_OK : frag_build_device(u->build, 0, u->e);
}

static enum frag_err read_all(struct umpire *u,
                              const struct frag_read_options *opts)
{
    u->json = json_open(&schema, frag_source_name(u->source), u);
    if (!u->json)
        return FRAG_NOMEM;
    FRAG_TRY(lines_each(u->source, opts, read_line, u, u->e));
    FRAG_TRY(settle_attempt(u));
    return put_notes(u);
}

static enum frag_err umpire_read(struct frag_source *source,
                                 struct frag_build *build,
                                 const struct frag_read_options *opts,
                                 struct frag_error *e)
{
    struct umpire u = {.source = source, .build = build, .e = e};
    enum frag_err err = read_all(&u, opts);

    json_close(u.json);
    allocators_fini(&u.allocators);
    live_fini(&u.blocks);
    live_fini(&u.empty);
    return err;
}

static bool is_log_line(struct field line)
{
    return (field_contains(line, "\"category\"") &&
            field_contains(line, "\"string_args\"")) ||
           (field_contains(line, "\"kind\"") &&
            field_contains(line, "\"replay\"") &&
            field_contains(line, "\"event\""));
}

/* The first line that is no comment decides. */
static bool umpire_recognize(const unsigned char *bytes, size_t count)
{
    struct fields lines = fields_of((const char *)bytes, count);
    struct field line;

    while (fields_next(&lines, '\n', &line))
        if (line.length && !is_comment(line.text, line.length))
            return line.text[0] == '{' && is_log_line(line);
    return false;
}

const struct frag_importer frag_importer_umpire = {
    .name = "umpire",
    .summary = "replay log of Umpire (JSON lines), several allocators",
    .made = "UMPIRE_REPLAY=On PROGRAM; the log is the file *.stats",
    .lacks = "streams, failed requests, stacks (a named allocation has its "
             "name instead), segments of the pools",
    .note = "an Umpire log has no streams, so all requests are on one stream "
            "and a freed block can be reused at once",
    .recognize = umpire_recognize,
    .read = umpire_read,
};
