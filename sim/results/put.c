/* put.c - writes the parts of a result file with HDF5: attributes, columns,
 * groups and the summary table. */
#include "sim/results/put.h"

#include <assert.h>
#include <hdf5_hl.h>
#include <stdlib.h>
#include <string.h>

#include "traces/file/guard.h"

enum {
    COMPACT_MAX = 8 << 10, /* bytes of data that are stored in the header of
                              their object, which has a checksum; more data are
                              compressed, with a checksum for each chunk */
    CHUNK_MAX = 512 << 10, /* most bytes of a chunk */
    DEFLATE = 4,           /* level of the compression, 0 to 9 */
};

/* -- attributes ---------------------------------------------------------- */

static bool put_attribute(hid_t at, const char *name, hid_t type, hid_t space,
                          const void *value)
{
    hid_t attribute =
        H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool done;

    if (attribute < 0)
        return false;
    done = H5Awrite(attribute, type, value) >= 0;
    return H5Aclose(attribute) >= 0 && done;
}

static bool put_scalar(hid_t at, const char *name, hid_t type,
                       const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    bool done = space >= 0 && put_attribute(at, name, type, space, value);

    hdf5_drop(space);
    return done;
}

/* The type of texts in `wide` bytes, a null at the end included; the caller
 * closes it. Negative on failure. */
static hid_t text_type(size_t wide)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    if (type >= 0 && H5Tset_size(type, wide) >= 0 &&
        H5Tset_strpad(type, H5T_STR_NULLTERM) >= 0 &&
        H5Tset_cset(type, H5T_CSET_UTF8) >= 0)
        return type;
    hdf5_drop(type);
    return -1;
}

bool put_count(hid_t at, const char *name, uint64_t value)
{
    return put_scalar(at, name, H5T_STD_I64LE, &value);
}

bool put_real(hid_t at, const char *name, double value)
{
    return put_scalar(at, name, H5T_IEEE_F64LE, &value);
}

/* The texts one after another, each in `wide` bytes; the caller frees them.
 * NULL if the host has no memory. */
static char *pad(const char *const *values, uint64_t count, size_t wide)
{
    char *texts = calloc((size_t)count + 1, wide);

    for (uint64_t i = 0; texts && i < count; i++)
        memcpy(texts + i * wide, values[i], strlen(values[i]));
    return texts;
}

bool put_texts(hid_t at, const char *name, const char *const *values,
               uint64_t count)
{
    const hsize_t shape[] = {count};
    hid_t space = H5Screate_simple(1, shape, NULL), type;
    size_t wide = 1;
    char *texts;
    bool done;

    for (uint64_t i = 0; i < count; i++)
        wide = strlen(values[i]) + 1 > wide ? strlen(values[i]) + 1 : wide;
    type = text_type(wide);
    texts = pad(values, count, wide);
    done = space >= 0 && type >= 0 && texts &&
           put_attribute(at, name, type, space, texts);
    free(texts);
    hdf5_drop(type);
    hdf5_drop(space);
    return done;
}

/* -- columns ------------------------------------------------------------- */

/* The HDF5 type of a number of this kind in the file. */
static hid_t type_of(enum frag_column_kind kind)
{
    switch (kind) {
    case FRAG_COLUMN_REAL:
    case FRAG_COLUMN_OPTIONAL:
        return H5T_IEEE_F64LE;
    case FRAG_COLUMN_ADDRESS:
        return H5T_STD_U64LE;
    default:
        return H5T_STD_I64LE;
    }
}

/* The 8 bytes that the file stores for a number of a row. */
static uint64_t stored(const struct frag_column *c, const void *row)
{
    uint64_t value = frag_column_number(c, row);
    double real;

    if (c->kind == FRAG_COLUMN_OPTIONAL) {
        real = frag_optional_real(value);
        memcpy(&value, &real, sizeof(value));
    }
    return value;
}

static bool set_compressed(hid_t how, size_t count, size_t item)
{
    const size_t most = CHUNK_MAX / item ? CHUNK_MAX / item : 1;
    const hsize_t chunk[] = {count < most ? count : most};

    return H5Pset_chunk(how, 1, chunk) >= 0 && H5Pset_shuffle(how) >= 0 &&
           H5Pset_deflate(how, DEFLATE) >= 0 && H5Pset_fletcher32(how) >= 0;
}

/* The creation properties of a dataset of `count` rows of `item` bytes; the
 * caller closes them. Negative on failure. */
static hid_t creation(size_t count, size_t item)
{
    hid_t how = H5Pcreate(H5P_DATASET_CREATE);

    if (how < 0)
        return how;
    if (H5Pset_obj_track_times(how, false) < 0 ||
        !(count * item <= COMPACT_MAX ? H5Pset_layout(how, H5D_COMPACT) >= 0
                                      : set_compressed(how, count, item))) {
        H5Pclose(how);
        return -1;
    }
    return how;
}

static bool describe(hid_t data, const struct frag_column *c)
{
    return hdf5_put_text(data, "units", c->units) &&
           hdf5_put_text(data, "long_name", c->meaning) &&
           (!c->formula || hdf5_put_text(data, "formula", c->formula));
}

/* Creates a dataset with the values; the caller closes it. Negative on
 * failure. */
static hid_t put_column(hid_t group, const struct frag_column *c,
                        const uint64_t *values, size_t count)
{
    const hsize_t shape[] = {count};
    hid_t type = type_of(c->kind), data = -1;
    hid_t space = H5Screate_simple(1, shape, NULL);
    hid_t how = creation(count, sizeof(*values));

    if (space >= 0 && how >= 0)
        data = H5Dcreate2(group, c->name, type, space, H5P_DEFAULT, how,
                          H5P_DEFAULT);
    if (data >= 0 && ((count && H5Dwrite(data, type, H5S_ALL, H5S_ALL,
                                         H5P_DEFAULT, values) < 0) ||
                      !describe(data, c))) {
        H5Dclose(data);
        data = -1;
    }
    hdf5_drop(how);
    hdf5_drop(space);
    return data;
}

/* Creates a dataset for each column. If the first column is `event`, it is the
 * dimension scale of the others. */
static bool put_columns(hid_t group, const struct frag_column *columns,
                        const void *rows, size_t row_size, size_t count)
{
    uint64_t *values = calloc(count ? count : 1, sizeof(*values));
    hid_t scale = -1, data;
    bool done = values;

    for (const struct frag_column *c = columns;
         done && c->kind != FRAG_COLUMN_END; c++) {
        for (size_t i = 0; i < count; i++)
            values[i] = stored(c, (const char *)rows + i * row_size);
        data = put_column(group, c, values, count);
        done = data >= 0;
        if (done && c == columns && !strcmp(c->name, "event")) {
            done = H5DSset_scale(data, c->name) >= 0;
            scale = data;
            continue;
        }
        if (done && scale >= 0)
            done = H5DSattach_scale(data, scale, 0) >= 0;
        hdf5_drop(data);
    }
    hdf5_drop(scale);
    free(values);
    return done;
}

bool put_table(hid_t at, const char *name, const struct frag_column *columns,
               const void *rows, size_t row_size, size_t count)
{
    hid_t group = hdf5_make_group(at, name);
    bool done;

    if (group < 0)
        return false;
    done = put_columns(group, columns, rows, row_size, count);
    return H5Gclose(group) >= 0 && done;
}

/* -- the summary --------------------------------------------------------- */

struct put_table {
    const struct frag_result_row *rows;
    size_t count, row_size;
};

/* Bytes of a column in a row of the table: 8, or those of the longest text with
 * its null. */
static size_t width(const struct put_table *t, const struct frag_column *c)
{
    size_t most = 1;

    if (c->kind != FRAG_COLUMN_TEXT)
        return sizeof(uint64_t);
    for (size_t i = 0; i < t->count; i++) {
        size_t n = strlen(frag_column_text(c, &t->rows[i])) + 1;

        most = n > most ? n : most;
    }
    return most;
}

static bool insert(hid_t type, const struct frag_column *c, size_t at,
                   size_t wide)
{
    hid_t text;
    bool done;

    if (c->kind != FRAG_COLUMN_TEXT)
        return H5Tinsert(type, c->name, at, type_of(c->kind)) >= 0;
    text = text_type(wide);
    done = text >= 0 && H5Tinsert(type, c->name, at, text) >= 0;
    hdf5_drop(text);
    return done;
}

static hid_t table_type(const struct put_table *t)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, t->row_size);
    size_t at = 0;

    for (const struct frag_column *c = frag_summary_columns;
         type >= 0 && c->kind != FRAG_COLUMN_END; c++) {
        if (!insert(type, c, at, width(t, c))) {
            H5Tclose(type);
            return -1;
        }
        at += width(t, c);
    }
    return type;
}

/* The rows in the layout of table_type; the caller frees them. NULL if the host
 * has no memory. */
static char *pack(const struct put_table *t)
{
    char *packed = calloc(t->count ? t->count : 1, t->row_size);
    size_t at = 0;

    for (const struct frag_column *c = frag_summary_columns;
         packed && c->kind != FRAG_COLUMN_END; c++) {
        size_t wide = width(t, c);

        for (size_t i = 0; i < t->count; i++) {
            const struct frag_result_row *row = &t->rows[i];
            char *to = packed + i * t->row_size + at;
            uint64_t value;

            if (c->kind == FRAG_COLUMN_TEXT) {
                strcpy(to, frag_column_text(c, row));
                continue;
            }
            value = stored(c, row);
            memcpy(to, &value, sizeof(value));
        }
        at += wide;
    }
    return packed;
}

static bool describe_table(hid_t data)
{
    enum { COLUMNS_MAX = 64 };
    const char *units[COLUMNS_MAX], *meanings[COLUMNS_MAX],
        *formulas[COLUMNS_MAX];
    size_t n = frag_column_count(frag_summary_columns);

    assert(n <= COLUMNS_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct frag_column *c = &frag_summary_columns[i];

        units[i] = c->units;
        meanings[i] = c->meaning;
        formulas[i] = c->formula ? c->formula : "";
    }
    return put_texts(data, "units", units, n) &&
           put_texts(data, "long_name", meanings, n) &&
           put_texts(data, "formula", formulas, n);
}

static bool put_rows(hid_t at, hid_t type, const char *packed, size_t count)
{
    const hsize_t shape[] = {count};
    hid_t space = H5Screate_simple(1, shape, NULL),
          how = creation(count, H5Tget_size(type));
    hid_t data = -1;
    bool done;

    if (space >= 0 && how >= 0)
        data = H5Dcreate2(at, "summary", type, space, H5P_DEFAULT, how,
                          H5P_DEFAULT);
    done = data >= 0 && describe_table(data) &&
           (!count ||
            H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, packed) >= 0);
    hdf5_drop(data);
    hdf5_drop(how);
    hdf5_drop(space);
    return done;
}

bool put_summary(hid_t at, const struct frag_result_row *rows, size_t count)
{
    struct put_table t = {rows, count, 0};
    char *packed;
    hid_t type;
    bool done;

    for (const struct frag_column *c = frag_summary_columns;
         c->kind != FRAG_COLUMN_END; c++)
        t.row_size += width(&t, c);
    type = table_type(&t);
    packed = pack(&t);
    done = type >= 0 && packed && put_rows(at, type, packed, count);
    free(packed);
    hdf5_drop(type);
    return done;
}
