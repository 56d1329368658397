/* file_columns.c - reads the datasets and attributes of a trace file into
 * memory.
 *
 * A column that is stored as the writer of this program stores it is not
 * copied: its rows are in the mapped file. Everything else is copied. The file
 * may be damaged or hostile, so sizes, types and counts are checked before use.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/file/file_parts.h"
#include "traces/file/guard.h"

enum frag_err trace_expected(const struct trace_reader *r, const char *where,
                             const char *name, const char *what)
{
    return frag_fail(r->e, FRAG_CORRUPT, "%s:%s%s: expected %s", r->path, where,
                     name, what);
}

/* A dataset that is being read. */
struct column {
    const struct trace_reader *r;
    const char *where, *name; /* "/devices/0/events/", "op" */
    hid_t data;
    uint64_t rows;
};

static enum frag_err open_column(struct column *c, hid_t at, size_t item)
{
    c->data = hdf5_dataset(c->r->fault, at, c->name);
    if (c->data < 0)
        return trace_expected(c->r, c->where, c->name, "a dataset");
    if (hdf5_rows(c->data, item, c->r->map_size, &c->rows))
        return FRAG_OK;
    H5Dclose(c->data);
    return trace_expected(c->r, c->where, c->name,
                          "a dataset of one dimension, with no more rows than "
                          "the file can hold");
}

static bool is_stored_as(hid_t data, enum trace_type type)
{
    hid_t found = H5Dget_type(data), want = trace_file_type(type);
    hid_t how = H5Dget_create_plist(data);
    bool same = found >= 0 && want >= 0 && how >= 0 &&
                H5Tequal(found, want) > 0 &&
                H5Pget_layout(how) == H5D_CONTIGUOUS;

    hdf5_drop(how);
    hdf5_drop(want);
    hdf5_drop(found);
    return same;
}

static bool is_little_endian(void)
{
    const uint16_t one = 1;
    uint8_t low;

    memcpy(&low, &one, 1);
    return low == 1;
}

/* Returns the rows in the mapped file, NULL if they must be copied. */
static const void *mapped(const struct column *c, enum trace_type type)
{
    size_t item = trace_type_size(type);
    haddr_t offset;

    if (!is_little_endian() || !is_stored_as(c->data, type))
        return NULL;
    offset = H5Dget_offset(c->data);
    if (offset == HADDR_UNDEF || offset % item || offset > c->r->map_size ||
        c->rows > (c->r->map_size - offset) / item)
        return NULL;
    return c->r->map + offset;
}

/* Refuses data that are not numbers. */
static enum frag_err check_numbers(const struct column *c, H5T_class_t class)
{
    if (hdf5_holds(c->data, class))
        return FRAG_OK;
    return trace_expected(c->r, c->where, c->name,
                          class == H5T_COMPOUND ? "a table" : "whole numbers");
}

static enum frag_err read_rows(const struct column *c, hid_t type, size_t item,
                               const void **rows)
{
    void *array = storage_array(c->r->trace, c->rows, item);

    if (!array)
        return FRAG_NOMEM;
    if (c->rows &&
        H5Dread(c->data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array) < 0)
        return trace_expected(c->r, c->where, c->name,
                              "data that HDF5 can read");
    *rows = array;
    return FRAG_OK;
}

/* If the column has an enum type, its names must have the same numbers as in
 * this program. */
static enum frag_err check_enum(const struct column *c)
{
    hid_t type = H5Dget_type(c->data);
    bool fine = type >= 0;

    for (unsigned i = 0;
         fine && H5Tget_class(type) == H5T_ENUM && i < FRAG_OP_COUNT; i++) {
        union {
            uint64_t wide;
            uint8_t bytes[8];
        } value = {0};
        hid_t base = H5Tget_super(type);

        fine = base >= 0 && H5Tget_size(base) <= sizeof(value) &&
               (H5Tenum_valueof(type, frag_op_names[i], &value) < 0 ||
                (H5Tconvert(base, H5T_NATIVE_UINT64, 1, &value, NULL,
                            H5P_DEFAULT) >= 0 &&
                 value.wide == i));
        hdf5_drop(base);
    }
    hdf5_drop(type);
    if (fine)
        return FRAG_OK;
    return trace_expected(c->r, c->where, c->name,
                          "an enum with the numbers that fragsim writes");
}

static enum frag_err read_open(const struct column *c, enum trace_type type,
                               const void **rows)
{
    hid_t memory;
    enum frag_err err;

    *rows = c->rows ? mapped(c, type) : NULL;
    if (*rows)
        return FRAG_OK;
    FRAG_TRY(check_numbers(c, H5T_INTEGER));
    if (type == TRACE_OP)
        FRAG_TRY(check_enum(c));
    memory = trace_memory_type(type);
    if (memory < 0)
        return FRAG_NOMEM;
    err = read_rows(c, memory, trace_type_size(type), rows);
    H5Tclose(memory);
    return err;
}

enum frag_err trace_read_column(const struct trace_reader *r, hid_t at,
                                const char *where,
                                const struct trace_column *column,
                                const void **rows, uint64_t *count)
{
    struct column c = {r, where, column->name, -1, 0};
    enum frag_err err;

    FRAG_TRY(open_column(&c, at, trace_type_size(column->type)));
    err = read_open(&c, column->type, rows);
    *count = c.rows;
    H5Dclose(c.data);
    return err;
}

enum frag_err trace_read_table(const struct trace_reader *r, hid_t at,
                               const char *where,
                               const struct trace_table *table,
                               const void **rows, uint64_t *count)
{
    struct column c = {r, where, table->name, -1, 0};
    hid_t type;
    enum frag_err err;

    *count = 0;
    *rows = NULL;
    if (!hdf5_has(at, table->name))
        return FRAG_OK;
    FRAG_TRY(open_column(&c, at, table->size));
    type = trace_row_type(table, false);
    err = type < 0 ? FRAG_NOMEM : check_numbers(&c, H5T_COMPOUND);
    if (err == FRAG_OK)
        err = read_rows(&c, type, table->size, rows);
    *count = c.rows;
    hdf5_drop(type);
    H5Dclose(c.data);
    return err;
}

/* Attributes. */

enum frag_err trace_read_number(const struct trace_reader *r, hid_t at,
                                const char *where, const char *name,
                                uint64_t max, uint64_t *value)
{
    uint64_t found;

    if (H5Aexists(at, name) <= 0)
        return FRAG_OK;
    if (!hdf5_number(at, name, &found) || found > max)
        return trace_expected(r, where, name, "a number in range");
    *value = found;
    return FRAG_OK;
}

enum frag_err trace_read_text(const struct trace_reader *r, const char *name,
                              char **text)
{
    enum frag_err err;

    *text = NULL;
    if (H5Aexists(r->file, name) <= 0)
        return FRAG_OK;
    err = hdf5_text(r->file, name, r->map_size, text);
    return err == FRAG_CORRUPT ? trace_expected(r, "/", name, "a text") : err;
}
