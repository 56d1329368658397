/* atomic_file.h - a file that appears complete under its name, or not at all.
 *
 * The file is written under another name in the same folder, synchronized to
 * the disk and then renamed. After a failure or a kill, the file that had the
 * name before is still there. This module does not open the file for writing:
 * the caller opens it by its name, so HDF5 and other programs can write it too.
 * sink.h provides a FILE * for text. real/recorder/ does not use this module,
 * because the recorder is loaded into programs that are not fragsim.
 */
#ifndef FRAG_TRACES_BYTES_ATOMIC_FILE_H
#define FRAG_TRACES_BYTES_ATOMIC_FILE_H

#include "traces/base.h"

struct atomic_file {
    char *path;    /* name after the commit; owned */
    char *partial; /* name while the file is written; of temporary.h */
};

/* Returns whether a file can be renamed to path: path is a regular file or does
 * not exist. A device, a pipe or a folder is never replaced. */
bool atomic_file_can_replace(const char *path);

/* Creates an empty file named PATH.partial-, eight random characters and
 * suffix. If the name is too long for a file, the end of PATH.partial- is left
 * out. The suffix is for writers that derive the format from the name (".svg"),
 * and "" for others. IO with the system's message if the file cannot be
 * created, or if path exists and is not a regular file; NOMEM. On error f need
 * not be aborted.
 */
enum frag_err atomic_file_begin(struct atomic_file *f, const char *path,
                                const char *suffix,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* Synchronizes the file to the disk, renames it to path and synchronizes the
 * folder. The writer must have closed the file before. On error (IO with the
 * system's message) the file under path is unchanged and the partial file is
 * removed. f is released in both cases. */
enum frag_err atomic_file_commit(struct atomic_file *f,
                                 struct frag_error *e) FRAG_MUST_CHECK;
/* Opens the partial file for writing, and no link; negative with errno set. */
int atomic_file_open(const struct atomic_file *f);
/* Removes the partial file and releases f, which may be zeroed. */
void atomic_file_abort(struct atomic_file *f);

/* Removes the partial files of `path`, without a suffix, that killed processes
 * left. The caller knows that no other process writes `path`. */
void atomic_file_remove_dead(const char *path);

#endif
