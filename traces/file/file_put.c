/* file_put.c - writes attributes, groups and datasets of a trace file.
 * file_write.c decides what is written. */
#include <string.h>

#include "traces/file/file_parts.h"
#include "traces/file/guard.h"

/* Writes an attribute of one value, which is at `value`. */
static bool put_attribute(hid_t at, const char *name, hid_t in_file,
                          hid_t in_memory, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR), attribute = -1;
    bool fine;

    if (space >= 0 && in_file >= 0)
        attribute =
            H5Acreate2(at, name, in_file, space, H5P_DEFAULT, H5P_DEFAULT);
    fine = attribute >= 0 && H5Awrite(attribute, in_memory, value) >= 0;
    hdf5_drop(attribute);
    hdf5_drop(space);
    return fine;
}

/* A text of `size` bytes at `value`, or of any size: then a pointer is there.
 */
static bool put_text(hid_t at, const char *name, size_t size, const void *value)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    const bool fine = type >= 0 && H5Tset_size(type, size) >= 0 &&
                      H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
                      put_attribute(at, name, type, type, value);

    hdf5_drop(type);
    return fine;
}

bool trace_put_label(hid_t at, const char *name, const char *text)
{
    return put_text(at, name, H5T_VARIABLE, &text);
}

bool hdf5_put_text(hid_t at, const char *name, const char *text)
{
    return put_text(at, name, strlen(text) + 1, text);
}

bool trace_put_number(hid_t at, const char *name, uint64_t value)
{
    return put_attribute(at, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value);
}

hid_t hdf5_make_group(hid_t at, const char *name)
{
    hid_t how = H5Pcreate(H5P_GROUP_CREATE), group = -1;

    if (how >= 0 && H5Pset_obj_track_times(how, false) >= 0)
        group = H5Gcreate2(at, name, H5P_DEFAULT, how, H5P_DEFAULT);
    hdf5_drop(how);
    return group;
}

bool trace_close_group(hid_t group, bool fine)
{
    return group >= 0 && H5Gclose(group) >= 0 && fine;
}

static hid_t make_dataset(hid_t at, const char *name, hid_t type,
                          uint64_t count)
{
    const hsize_t shape[] = {count};
    hid_t space = H5Screate_simple(1, shape, NULL);
    hid_t how = H5Pcreate(H5P_DATASET_CREATE), data = -1;

    if (space >= 0 && how >= 0 && type >= 0 &&
        H5Pset_obj_track_times(how, false) >= 0 &&
        H5Pset_fill_time(how, H5D_FILL_TIME_NEVER) >= 0)
        data = H5Dcreate2(at, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    hdf5_drop(how);
    hdf5_drop(space);
    return data;
}

static bool put_rows(hid_t data, hid_t type, uint64_t count, const void *rows)
{
    return !count ||
           H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0;
}

static bool label(hid_t data, const char *units, const char *long_name)
{
    return trace_put_label(data, "units", units) &&
           trace_put_label(data, "long_name", long_name);
}

/* The op column is an enum in memory too, because HDF5 does not convert numbers
 * to enums. */
bool trace_put_column(hid_t at, const struct trace_column *column,
                      const void *rows, uint64_t count)
{
    hid_t in_file = trace_file_type(column->type);
    hid_t in_memory = column->type == TRACE_OP
                          ? trace_file_type(column->type)
                          : trace_memory_type(column->type);
    hid_t data = make_dataset(at, column->name, in_file, count);
    bool fine = data >= 0 && in_memory >= 0 &&
                label(data, column->units, column->long_name) &&
                put_rows(data, in_memory, count, rows);

    hdf5_drop(in_file);
    hdf5_drop(in_memory);
    return data >= 0 && H5Dclose(data) >= 0 && fine;
}

bool trace_put_table(hid_t at, const struct trace_table *table,
                     const void *rows, uint64_t count)
{
    hid_t in_file = trace_row_type(table, true);
    hid_t in_memory = trace_row_type(table, false);
    hid_t data = make_dataset(at, table->name, in_file, count);
    bool fine = data >= 0 && in_memory >= 0 &&
                label(data, table->units, table->long_name) &&
                put_rows(data, in_memory, count, rows);

    hdf5_drop(in_file);
    hdf5_drop(in_memory);
    return data >= 0 && H5Dclose(data) >= 0 && fine;
}
