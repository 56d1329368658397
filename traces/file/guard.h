/* guard.h - what must hold of an HDF5 file before its contents are read, for
 * the readers of trace files and of result files. A file may be damaged or
 * hostile, and libhdf5 1.10 crashes or does not return on some of these files.
 *
 * Files that fragsim writes have a superblock of version 2 or more: their
 * structure has checksums, so libhdf5 detects damage. Older files (result files
 * before schema 2.2, and most files of h5py) have none. They are read by a
 * child process first, which a crash or an endless loop ends.
 */
#ifndef FRAG_TRACES_FILE_GUARD_H
#define FRAG_TRACES_FILE_GUARD_H

#include <hdf5.h>

#include "traces/base.h"

/* Whether the file begins with the signature of HDF5; false if it cannot be
 * opened. */
bool hdf5_is(const char *path);

/* Returns whether read(path) ends. If the structure of the
 * file at `path` has no checksums, a child process calls it first: false if it
 * crashes there, takes more processor time than a second, and a second and a
 * half per MiB of the file, or if a signal arrives. Otherwise, and if no
 * child process can be made, true. */
bool hdf5_survives(const char *path, void (*read)(const char *path));

/* Whether the data are numbers (or rows, COMPOUND) of this class and lie in
 * this file. An enum counts as INTEGER. */
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
 * needed, because every file is closed. */
struct hdf5_quiet {
    H5E_auto2_t print;
    void *data;
};
struct hdf5_quiet hdf5_quiet_begin(void);
void hdf5_quiet_end(struct hdf5_quiet q);

#endif
