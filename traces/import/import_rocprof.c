/* import_rocprof.c - reads the CSV of rocprofv3 --memory-allocation-trace: the
 * calls of a program on AMD GPUs that allocate and free memory of ROCm's HSA
 * runtime.
 *
 *   "Kind","Operation","Agent_Id","Allocation_Size","Address",...
 *   "MEMORY_ALLOCATION","MEMORY_ALLOCATION_ALLOCATE","Agent 8",4096,"0x7f",...
 *   "MEMORY_ALLOCATION","MEMORY_ALLOCATION_FREE","",0,"0x7f",...
 *
 * Columns are found by their names. An operation may have the prefix
 * ROCPROFILER_. The VMEM operations create and release handles of physical
 * memory; their addresses are handles and lie apart from the others in the
 * trace. An agent is a device of the trace with the number of the agent; agents
 * are GPUs and CPUs. A free states neither size nor agent: it belongs to the
 * allocation with that address. A free of a null pointer is no event.
 *
 * Source: ROCm/rocprofiler-sdk at 3ae9731, source/docs/data/
 * memory_allocation_trace.csv; ROCm/rocm-systems, issue 3448.
 */
#include <inttypes.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/fields.h"
#include "traces/bytes/lines.h"
#include "traces/bytes/source.h"
#include "traces/import/importers.h"
#include "traces/live.h"

enum column { OPERATION, AGENT, SIZE, ADDRESS, START, COLUMNS };

static const char *const names[] = {"Operation",       "Agent_Id",
                                    "Allocation_Size", "Address",
                                    "Start_Timestamp", NULL};

/* Added to the handle of a VMEM operation. */
static const frag_addr handle_base = (frag_addr)1 << 62;

struct row {
    bool allocates, is_handle;
    uint32_t agent; /* of an allocation */
    uint64_t size, address, time;
};

struct rocprof {
    struct frag_source *source;
    struct frag_build *build;
    struct frag_error *e;
    uint64_t line;
    int column[COLUMNS];
    int columns;      /* of the header; 0: the header was not read yet */
    struct live live; /* address to agent */
    uint64_t time;    /* of the last row */
    bool has_device;
    uint64_t unknown, lost, empty; /* see put_notes */
};

static bool read_header(struct field line, int column[COLUMNS], int *count)
{
    *count = fields_columns(field_unmarked(line), names, column);
    for (int k = 0; k < COLUMNS; k++)
        if (column[k] < 0)
            return false;
    return true;
}

static const struct {
    const char *word;
    bool allocates, is_handle;
} operations[] = {
    {"MEMORY_ALLOCATION_ALLOCATE", true, false},
    {"MEMORY_ALLOCATION_FREE", false, false},
    {"MEMORY_ALLOCATION_VMEM_ALLOCATE", true, true},
    {"MEMORY_ALLOCATION_VMEM_FREE", false, true},
};

/* Returns the field without a text at its start. */
static struct field without(struct field f, const char *start)
{
    if (!field_begins(f, start))
        return f;
    return (struct field){f.text + strlen(start), f.length - strlen(start)};
}

static bool read_operation(struct field f, struct row *row)
{
    const struct field word = without(f, "ROCPROFILER_");

    for (size_t k = 0; k < sizeof(operations) / sizeof(*operations); k++)
        if (field_is(word, operations[k].word)) {
            row->allocates = operations[k].allocates;
            row->is_handle = operations[k].is_handle;
            return true;
        }
    return false;
}

static bool read_agent(struct field f, struct row *row)
{
    uint64_t agent = 0;

    if (row->allocates &&
        (!field_decimal(without(f, "Agent "), &agent) || agent >= UINT32_MAX))
        return false;
    row->agent = (uint32_t)agent;
    return true;
}

/* Returns NULL, or what was expected in *wrong. */
static const char *read_row(const struct field f[COLUMNS], struct row *row,
                            struct field *wrong)
{
    *wrong = f[OPERATION];
    if (!read_operation(f[OPERATION], row))
        return "an operation such as MEMORY_ALLOCATION_ALLOCATE";
    *wrong = f[AGENT];
    if (!read_agent(f[AGENT], row))
        return "an agent such as \"Agent 8\"";
    *wrong = f[SIZE];
    if (!field_decimal(f[SIZE], &row->size) || row->size >> 62)
        return "a size in bytes, below 2^62";
    *wrong = f[ADDRESS];
    if (!field_number(f[ADDRESS], &row->address) || row->address >> 62)
        return "an address below 2^62";
    *wrong = f[START];
    if (!field_decimal(f[START], &row->time) || row->time >> 63)
        return "a time in ns";
    return NULL;
}

static enum frag_err put(struct rocprof *r, enum frag_entry_kind kind,
                         uint32_t device, const struct row *row)
{
    const struct frag_entry entry = {.kind = kind,
                                     .addr = row->address,
                                     .size = row->size ? row->size : 1,
                                     .time = (frag_time)row->time};

    r->has_device = true;
    return frag_build_entry(r->build, device, &entry, r->line, r->e);
}

static enum frag_err put_free(struct rocprof *r, const struct row *row,
                              struct live_row *live)
{
    const uint32_t device = live->slot;

    live_remove(&r->live, live);
    return put(r, FRAG_ENTRY_FREE_COMPLETED, device, row);
}

static enum frag_err on_allocate(struct rocprof *r, const struct row *row,
                                 struct live_row *live)
{
    if (!row->size) {
        r->empty++;
        return FRAG_OK;
    }
    if (!row->address)
        return put(r, FRAG_ENTRY_FAILED, row->agent, row);
    if (live) {
        r->lost++;
        FRAG_TRY(put_free(r, row, live));
    }
    if (!live_put(&r->live, row->address, row->agent))
        return FRAG_NOMEM;
    return put(r, FRAG_ENTRY_ALLOC, row->agent, row);
}

static enum frag_err put_row(struct rocprof *r, struct row *row)
{
    struct live_row *live;

    if (row->address && row->is_handle)
        row->address += handle_base;
    live = live_find(&r->live, row->address);
    if (row->allocates)
        return on_allocate(r, row, live);
    if (live)
        return put_free(r, row, live);
    r->unknown += row->address != 0;
    return FRAG_OK;
}

static enum frag_err read_line(void *user, const char *line, size_t length,
                               uint64_t number)
{
    struct rocprof *r = user;
    const struct field whole = {line, length};
    struct field fields[COLUMNS], wrong = whole;
    const char *expected = "a header with the columns Operation, Agent_Id, "
                           "Allocation_Size, Address and Start_Timestamp";
    struct row row;

    r->line = number;
    if (!field_trimmed(whole).length)
        return FRAG_OK;
    if (!r->columns)
        return read_header(whole, r->column, &r->columns)
                   ? FRAG_OK
                   : field_wrong(r->source, number, expected, whole, r->e);
    if (fields_pick(whole, r->column, COLUMNS, fields) != r->columns)
        expected = "as many fields as the header has";
    else
        expected = read_row(fields, &row, &wrong);
    if (!expected && row.time < r->time) {
        wrong = fields[START];
        expected = "rows in the order of Start_Timestamp (sort the file)";
    }
    if (expected)
        return field_wrong(r->source, number, expected, wrong, r->e);
    r->time = row.time;
    return put_row(r, &row);
}

static enum frag_err put_notes(const struct rocprof *r)
{
    const struct frag_build_count notes[] = {
        {r->unknown, "frees of addresses that no row allocated were skipped: "
                     "the trace lacks blocks from before the log"},
        {r->lost,
         "allocations returned an address that was live: the log lacks "
         "the frees, which were added"},
        {r->empty, "allocations of 0 bytes were skipped"},
    };

    return frag_build_counts(r->build, notes, sizeof(notes) / sizeof(*notes));
}

static enum frag_err rocprof_read(struct frag_source *source,
                                  struct frag_build *build,
                                  const struct frag_read_options *opts,
                                  struct frag_error *e)
{
    struct rocprof r = {.source = source, .build = build, .e = e};
    enum frag_err err = lines_each(source, opts, read_line, &r, e);

    if (err == FRAG_OK)
        err = put_notes(&r);
    if (err == FRAG_OK && !r.has_device)
        err = frag_build_device(build, 0, e);
    live_fini(&r.live);
    return err;
}

static bool rocprof_recognize(const unsigned char *bytes, size_t count)
{
    int column[COLUMNS], fields;

    return read_header(field_first_line(bytes, count), column, &fields);
}

const struct frag_importer frag_importer_rocprof = {
    .name = "rocprof",
    .summary = "CSV of rocprofv3 for programs on AMD GPUs",
    .made = "rocprofv3 --memory-allocation-trace -f csv -- PROGRAM",
    .lacks = "streams, dates, stacks, blocks from before the log; of a caching "
             "allocator it holds the segments, not the requests",
    .note = "a device of the trace is an agent of ROCm, which is a GPU or a "
            "CPU; the log does not state which",
    .recognize = rocprof_recognize,
    .read = rocprof_read,
};
