/* guard.h - what must hold of an HDF5 file before its contents are read, for
 * the readers of trace files and of result files. A file may be damaged or
 * hostile, and libhdf5 1.10 crashes or does not return on some of these files.
 *
 * Files that fragsim writes have a superblock of version 2 or more: their
 * structure has checksums, so libhdf5 detects damage. Older files (result files
 * before schema 2.2, and most files of h5py) have none. They are read by a
 * child process first, which a crash or an endless loop ends.
 *
 * A file holds all of its groups and data itself: a symbolic link, a link into
 * another file, a virtual dataset and data in another file are refused, because
 * the SHA-256 covers one file and a mapped column lies in it.
 */
#ifndef FRAG_TRACES_FILE_GUARD_H
#define FRAG_TRACES_FILE_GUARD_H

#include <hdf5.h>

#include "traces/base.h"

/* Closes a type, a space, a list of properties, a dataset, a group or an
 * attribute, if it was opened. */
static inline void hdf5_drop(hid_t id)
{
    if (id >= 0)
        (void)H5Idec_ref(id);
}

/* Whether the file begins with the signature of HDF5; false if it cannot be
 * opened. */
bool hdf5_is(const char *path);

/* Returns whether read(path) ends. If the structure of the
 * file at `path` has no checksums, a child process calls it first: false if it
 * crashes there, takes more processor time than a second, and a second and a
 * half per MiB of the file, or 60 times that time on the clock, or if a signal
 * arrives. Otherwise, and if no
 * child process can be made, true. */
bool hdf5_survives(const char *path, void (*read)(const char *path));

/* Why a file was refused, or HDF5 could not read it. Zeroed at first. */
struct hdf5_fault {
    uint64_t most;     /* bytes that datasets may unpack to */
    uint64_t unpacked; /* bytes of packed datasets that were opened */
    char found[160];   /* what leads out of the file; "" if nothing does */
    int error;         /* errno of the last system call that failed; 0: none */
};

/* Replaces CORRUPT by IO, with the system's message, if a system call failed,
 * and the message by one that names what leads out of the file. */
enum frag_err hdf5_explain(const struct hdf5_fault *fault, const char *path,
                           enum frag_err err,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* Returns IO with the message that the file cannot be read or written (`what`),
 * and a remedy if its file system cannot lock it. error is an errno, or 0. */
enum frag_err hdf5_failed(const char *path, const char *what, int error,
                          struct frag_error *e);

/* Opens a regular file for reading; close it with H5Fclose. Negative if HDF5
 * cannot, or for a pipe, a device or a folder. */
hid_t hdf5_open(struct hdf5_fault *fault, const char *path);

/* Writes an attribute of one text. The text has a fixed length, so that it is
 * stored in an object header, which has a checksum. */
bool hdf5_put_text(hid_t at, const char *name, const char *text);

/* Creates a group that stores no time; the caller closes it. Negative on
 * failure. */
hid_t hdf5_make_group(hid_t at, const char *name);

/* Whether the group has a link of this name, which has no slash. */
bool hdf5_has(hid_t at, const char *name);

/* These two open a member of a group. Negative if there is none, if it is not
 * in this file, or if packed datasets unpack to more than frag_source_most. */
hid_t hdf5_group(struct hdf5_fault *fault, hid_t at, const char *name);
hid_t hdf5_dataset(struct hdf5_fault *fault, hid_t at, const char *name);

/* Whether the data are numbers (or rows, COMPOUND) of this class. An enum
 * counts as INTEGER. */
bool hdf5_holds(hid_t data, H5T_class_t class);

/* The rows of a dataset of one dimension, each `item` bytes in memory. False if
 * it has another shape, or more rows than a file of `file_bytes` can hold. */
bool hdf5_rows(hid_t data, size_t item, uint64_t file_bytes, uint64_t *rows);

/* The number of an attribute: one whole number of at most 64 bits. False if it
 * is something else. *value is then untouched. */
bool hdf5_number(hid_t at, const char *name, uint64_t *value);

/* The texts of an attribute, of fixed or of variable length. *texts has
 * *count + 1 elements, the last one NULL, and is one block of memory, which the
 * caller frees. CORRUPT if the attribute is absent, holds no texts, or more
 * than file_bytes; NOMEM. */
enum frag_err hdf5_texts(hid_t at, const char *name, uint64_t file_bytes,
                         char ***texts, uint64_t *count) FRAG_MUST_CHECK;

/* The only text of an attribute; the caller frees it. Errors as above. */
enum frag_err hdf5_text(hid_t at, const char *name, uint64_t file_bytes,
                        char **text) FRAG_MUST_CHECK;

/* By default HDF5 prints its errors, but the messages of this program are more
 * exact: between hdf5_quiet_begin and hdf5_quiet_end, HDF5 prints nothing.
 * After a damaged file, HDF5 would also print errors about its own resources at
 * exit. Therefore hdf5_quiet_begin disables HDF5's cleanup at exit; it is not
 * needed, because every file is closed. The failures between the two are noted
 * in `fault`, which may be NULL. */
struct hdf5_quiet {
    H5E_auto2_t print;
    void *data;
};
struct hdf5_quiet hdf5_quiet_begin(struct hdf5_fault *fault);
void hdf5_quiet_end(struct hdf5_quiet q);

#endif
