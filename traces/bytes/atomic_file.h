/* atomic_file.h - a file that appears whole under its name, or not at all.
 *
 * The file is written under a name beside it, put on the disk and renamed; a
 * failure or a kill leaves the file that had the name before. The writer opens
 * the name itself, so HDF5 and other programs can write the file too. sink.h
 * has a FILE * for text. real/recorder/ does not use this module: it is loaded
 * into programs that are not fragsim.
 */
#ifndef FRAG_TRACES_BYTES_ATOMIC_FILE_H
#define FRAG_TRACES_BYTES_ATOMIC_FILE_H

#include "traces/base.h"

struct atomic_file {
    char *path;    /* the name after the commit */
    char *partial; /* the name while the file is written */
};

/* Whether a file can be renamed to path: path is a regular file or absent. A
 * device, a pipe or a folder is never renamed over. */
bool atomic_file_can_replace(const char *path);

/* Creates an empty file PATH.partial-PID followed by suffix, for writers that
 * look at the end of a name (".svg"; "" for others). IO with the system's words
 * if it cannot be created or if path exists and is no regular file, NOMEM. On
 * error f need not be aborted. */
enum frag_err atomic_file_begin(struct atomic_file *f, const char *path,
                                const char *suffix,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* Puts the file, which the writer has closed, on the disk, renames it to path
 * and puts the folder on the disk. IO with the system's words: the file under
 * path is as it was and the partial one is removed. f is released either way.
 */
enum frag_err atomic_file_commit(struct atomic_file *f,
                                 struct frag_error *e) FRAG_MUST_CHECK;
void atomic_file_abort(struct atomic_file *f); /* zeroed is fine */

#endif
