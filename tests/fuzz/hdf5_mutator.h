/* hdf5_mutator.h - the mutator of libFuzzer for HDF5 files. It opens the input,
 * changes an attribute, a dataset or a link through HDF5, and so makes files
 * that are unusual but whose checksums are right: they reach the code behind
 * the checks of libhdf5. One mutation in eight changes bytes instead. */
#ifndef FRAG_TESTS_FUZZ_HDF5_MUTATOR_H
#define FRAG_TESTS_FUZZ_HDF5_MUTATOR_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/results/superblock.h"

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t room,
                               unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t room);

/* CHECKED is the first version of the superblock with checksums. libhdf5 can
 * crash in the mutator on a damaged file without them. */
enum { VERSION_AT = 8, CHECKED = 2 };
enum { NAME_ROOM = 256, VALUE_ROOM = 4096, IMAGE_STEP = 1 << 16 };

struct mutator {
    uint64_t random;
    uint64_t seen; /* objects or attributes so far */
    char name[NAME_ROOM];
};

static uint64_t draw(struct mutator *m, uint64_t below)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random % below;
}

/* -- the choice of an object ----------------------------------------------- */

/* Keeps this name with the same chance as every other. */
static void offer(struct mutator *m, const char *name)
{
    if (strlen(name) < NAME_ROOM && draw(m, ++m->seen) == 0)
        snprintf(m->name, NAME_ROOM, "%s", name);
}

static herr_t offer_object(hid_t at, const char *name, const H5O_info_t *info,
                           void *mutator)
{
    (void)at;
    (void)info;
    offer(mutator, name);
    return 0;
}

static herr_t offer_attribute(hid_t at, const char *name,
                              const H5A_info_t *info, void *mutator)
{
    (void)at;
    (void)info;
    offer(mutator, name);
    return 0;
}

/* Opens an object of the file, chosen at random; its name is in m->name. */
static hid_t any_object(struct mutator *m, hid_t file)
{
    m->seen = 0;
    snprintf(m->name, NAME_ROOM, ".");
    H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, offer_object, m);
    return H5Oopen(file, m->name, H5P_DEFAULT);
}

static bool any_attribute(struct mutator *m, hid_t at)
{
    m->seen = 0;
    return H5Aiterate2(at, H5_INDEX_NAME, H5_ITER_INC, NULL, offer_attribute,
                       m) >= 0 &&
           m->seen;
}

/* -- new values ------------------------------------------------------------ */

static void fill(struct mutator *m, unsigned char *value, size_t size)
{
    static const uint64_t words[] = {
        0,
        1,
        2,
        65535,
        65536,
        UINT32_MAX,
        INT64_MAX,
        (uint64_t)INT64_MIN,
        UINT64_MAX,
        UINT64_C(0x7ff8000000000000), /* NaN, infinity, -1.0, 1e300
                                       */
        UINT64_C(0x7ff0000000000000),
        UINT64_C(0xbff0000000000000),
        UINT64_C(0x7e37e43c8800759c)};
    uint64_t word;

    for (size_t i = 0; i < size; i += sizeof(word)) {
        const size_t wide = size - i < sizeof(word) ? size - i : sizeof(word);

        word = draw(m, 3) ? words[draw(m, sizeof(words) / sizeof(*words))]
                          : draw(m, UINT64_MAX);
        memcpy(value + i, &word, wide);
    }
}

/* A type of any class; closed by the caller. */
static hid_t any_type(struct mutator *m)
{
    const hid_t plain[] = {H5T_STD_I64LE, H5T_STD_U64LE,  H5T_STD_U8LE,
                           H5T_STD_I32BE, H5T_IEEE_F64LE, H5T_IEEE_F32BE,
                           H5T_STD_B16LE};
    const size_t count = sizeof(plain) / sizeof(*plain);
    const uint64_t which = draw(m, count + 4);
    const hsize_t pair = 1 + draw(m, 3);
    hid_t type;

    if (which < count)
        return H5Tcopy(plain[which]);
    if (which == count)
        return H5Tcreate(H5T_OPAQUE, 1 + draw(m, 64));
    if (which == count + 1)
        return H5Tarray_create2(H5T_STD_I64LE, 1, &pair);
    if (which == count + 2) {
        type = H5Tcreate(H5T_COMPOUND, 16);
        H5Tinsert(type, draw(m, 2) ? "seed" : "events", 0, H5T_STD_I64LE);
        H5Tinsert(type, "x", 8, H5T_IEEE_F64LE);
        return type;
    }
    type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, 1 + draw(m, draw(m, 2) ? 8 : VALUE_ROOM / 4));
    H5Tset_strpad(type, draw(m, 2) ? H5T_STR_NULLPAD : H5T_STR_NULLTERM);
    return type;
}

static hid_t any_space(struct mutator *m)
{
    hsize_t sizes[3] = {draw(m, 4), 1 + draw(m, 3), 1};

    switch (draw(m, 6)) {
    case 0:
        return H5Screate(H5S_NULL);
    case 1:
        return H5Screate_simple(2, sizes, NULL);
    case 2:
        return H5Screate_simple(1, sizes, NULL);
    default:
        return H5Screate(H5S_SCALAR);
    }
}

/* -- edits ----------------------------------------------------------------- */

/* Changes a number, or a byte, of the values of an attribute or dataset. */
static void change_values(struct mutator *m, unsigned char *values, size_t size)
{
    const size_t at = size ? draw(m, size) : 0;

    if (draw(m, 4) == 0 && size)
        values[at] = (unsigned char)draw(m, 256);
    else if (size >= 8)
        fill(m, values + at / 8 * 8, size - at / 8 * 8 < 8 ? 1 : 8);
}

/* Whether the values hold no pointers. */
static bool is_flat(hid_t type)
{
    return H5Tdetect_class(type, H5T_VLEN) <= 0 &&
           H5Tis_variable_str(type) <= 0;
}

static void rewrite_attribute(struct mutator *m, hid_t at)
{
    hid_t attribute = H5Aopen(at, m->name, H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute);
    const hsize_t size = H5Aget_storage_size(attribute);
    unsigned char *values = calloc(1, size + 1);

    if (values && type >= 0 && is_flat(type) &&
        H5Aread(attribute, type, values) >= 0) {
        change_values(m, values, size);
        H5Awrite(attribute, type, values);
    }
    free(values);
    H5Tclose(type);
    H5Aclose(attribute);
}

static void replace_attribute(struct mutator *m, hid_t at)
{
    static unsigned char values[VALUE_ROOM * 16];
    hid_t type = any_type(m), space = any_space(m), attribute;

    fill(m, values, sizeof(values));
    H5Adelete(at, m->name);
    attribute = H5Acreate2(at, m->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute >= 0) {
        H5Awrite(attribute, type, values);
        H5Aclose(attribute);
    }
    H5Sclose(space);
    H5Tclose(type);
}

static void edit_attribute(struct mutator *m, hid_t at)
{
    if (!any_attribute(m, at))
        return;
    switch (draw(m, 5)) {
    case 0:
        H5Adelete(at, m->name);
        break;
    case 1:
        replace_attribute(m, at);
        break;
    default:
        rewrite_attribute(m, at);
    }
}

static void rewrite_dataset(struct mutator *m, hid_t data)
{
    hid_t type = H5Dget_type(data), space = H5Dget_space(data);
    const hssize_t rows = H5Sget_simple_extent_npoints(space);
    const size_t wide = H5Tget_size(type);
    unsigned char *values = NULL;
    size_t size;

    if (rows > 0 && rows < VALUE_ROOM && wide > 0 && wide < VALUE_ROOM &&
        is_flat(type)) {
        size = (size_t)rows * wide;
        values = calloc(1, size);
        if (values &&
            H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0) {
            change_values(m, values, size);
            H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        }
    }
    free(values);
    H5Sclose(space);
    H5Tclose(type);
}

/* A dataset in the place of the object `name`: of any type, of up to 2^40 rows
 * that are not stored. */
static void replace_dataset(struct mutator *m, hid_t file, const char *name)
{
    const hsize_t rows = draw(m, 2) ? draw(m, 9) : UINT64_C(1) << draw(m, 41);
    const hsize_t sizes[] = {rows, 1 + draw(m, 2)}, part[] = {64, 1};
    const int dimensions = draw(m, 4) ? 1 : 2;
    hid_t how = H5Pcreate(H5P_DATASET_CREATE), type = any_type(m);
    hid_t space = H5Screate_simple(dimensions, sizes, NULL), data;

    H5Pset_chunk(how, dimensions, part);
    if (draw(m, 2))
        H5Pset_deflate(how, 1);
    H5Ldelete(file, name, H5P_DEFAULT);
    data = H5Dcreate2(file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    if (data >= 0)
        H5Dclose(data);
    H5Sclose(space);
    H5Tclose(type);
    H5Pclose(how);
}

static void edit_link(struct mutator *m, hid_t file, const char *name)
{
    hid_t made = -1;

    switch (draw(m, 6)) {
    case 0:
        replace_dataset(m, file, name);
        return;
    case 1:
        H5Ldelete(file, name, H5P_DEFAULT);
        return;
    case 2:
        H5Ldelete(file, name, H5P_DEFAULT);
        made = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(made);
        return;
    case 3:
        H5Ldelete(file, name, H5P_DEFAULT);
        if (draw(m, 2))
            H5Lcreate_external("/dev/null", name, file, name, H5P_DEFAULT,
                               H5P_DEFAULT);
        else
            H5Lcreate_soft(draw(m, 2) ? name : "/", file, name, H5P_DEFAULT,
                           H5P_DEFAULT);
        return;
    case 4: /* the object of another name */
        any_object(m, file);
        H5Ldelete(file, name, H5P_DEFAULT);
        H5Lcreate_hard(file, m->name, file, name, H5P_DEFAULT, H5P_DEFAULT);
        return;
    default:
        any_object(m, file);
        H5Lmove(file, name, file, m->name, H5P_DEFAULT, H5P_DEFAULT);
    }
}

static void edit(struct mutator *m, hid_t file)
{
    char name[NAME_ROOM];
    hid_t at = any_object(m, file);
    H5I_type_t kind;

    if (at < 0)
        return;
    kind = H5Iget_type(at);
    memcpy(name, m->name, NAME_ROOM);
    if (draw(m, 8) == 0 && strcmp(name, ".") != 0)
        edit_link(m, file, name);
    else if (kind == H5I_DATASET && draw(m, 4))
        rewrite_dataset(m, at);
    else
        edit_attribute(m, at);
    H5Oclose(at);
}

static hid_t open_image(uint8_t *bytes, size_t size)
{
    hid_t how = H5Pcreate(H5P_FILE_ACCESS), file = -1;

    if (H5Pset_fapl_core(how, IMAGE_STEP, false) >= 0 &&
        H5Pset_fclose_degree(how, H5F_CLOSE_STRONG) >= 0 &&
        H5Pset_file_image(how, bytes, size) >= 0)
        file = H5Fopen("image", H5F_ACC_RDWR, how);
    H5Pclose(how);
    return file;
}

/* The bytes of the changed file; 0: there is none, or it is too large. */
static size_t edited(struct mutator *m, uint8_t *bytes, size_t size,
                     size_t room)
{
    hid_t file = open_image(bytes, size);
    ssize_t grown = 0;

    if (file < 0)
        return 0;
    for (uint64_t left = 1 + draw(m, 3); left; left--)
        edit(m, file);
    if (H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0)
        grown = H5Fget_file_image(file, NULL, 0);
    if (grown <= 0 || (size_t)grown > room ||
        H5Fget_file_image(file, bytes, (size_t)grown) != grown)
        grown = 0;
    else
        superblock_checksum(bytes, (size_t)grown);
    H5Fclose(file);
    return (size_t)grown;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t room,
                               unsigned seed)
{
    struct mutator m = {.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1};
    size_t changed = 0;

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5dont_atexit();
    if (draw(&m, 8) && size > VERSION_AT && bytes[VERSION_AT] >= CHECKED)
        changed = edited(&m, bytes, size, room);
    return changed ? changed : LLVMFuzzerMutate(bytes, size, room);
}

#endif
