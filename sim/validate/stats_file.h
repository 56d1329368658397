/* stats_file.h - reads the counters of a recorded PyTorch allocator from a JSON
 * file.
 *
 * The file is an object with the member `stats`. `stats` is either one flat
 * object of counters, as torch.cuda.memory_stats() returns it, or an object
 * with one such object for each device number. Two further members of the file
 * are optional, both in bytes: `cap`, the memory limit of the process, which no
 * snapshot records, and `total_memory`, the size of the device. A value that is
 * not an integer, or is negative, counts as absent.
 */
#ifndef FRAG_SIM_VALIDATE_STATS_FILE_H
#define FRAG_SIM_VALIDATE_STATS_FILE_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

struct frag_stats_file;

/* Reads a file. IO if it cannot be read; CORRUPT if it is not such an object,
 * has 4 MiB or more, or nests objects and arrays more than 32 deep; NOMEM. On
 * error *out is untouched. */
enum frag_err frag_stats_file_open(const char *path,
                                   struct frag_stats_file **out,
                                   struct frag_error *e) FRAG_MUST_CHECK;
void frag_stats_file_close(struct frag_stats_file *file); /* NULL is allowed */

/* `cap` and `total_memory` in bytes; 0 if the file does not have them. */
frag_size frag_stats_file_cap(const struct frag_stats_file *file);
frag_size frag_stats_file_total(const struct frag_stats_file *file);

/* The memory limit of the process: `cap', or FRAG_UNLIMITED without it. */
frag_size frag_stats_file_limit(const struct frag_stats_file *file);

/* Sets *value to a counter of a device, named as in memory_stats. False if the
 * file has no such counter. */
bool frag_stats_file_get(const struct frag_stats_file *file, uint32_t device,
                         const char *name, uint64_t *value);

/* Reads the file at `given` or, if that is NULL, the file that belongs to the
 * snapshot; *out is NULL if there is none, if the file with its name is not one
 * of counters, or if `given` is "none". Errors of frag_stats_file_open, but IO
 * and CORRUPT for `given` only. */
enum frag_err frag_stats_file_of(const char *given, const char *snapshot,
                                 struct frag_stats_file **out,
                                 struct frag_error *e) FRAG_MUST_CHECK;

/* Reads the file that belongs to the snapshot. If it is not one of counters,
 * *out is NULL and `note` a sentence that says so; else `note` is empty. NOMEM.
 */
enum frag_err frag_stats_file_find(const char *snapshot,
                                   struct frag_stats_file **out,
                                   struct frag_error *note,
                                   struct frag_error *e) FRAG_MUST_CHECK;

/* Finds the file that belongs to a snapshot: NAME.json beside NAME.pickle,
 * NAME.pickle.xz, NAME.pkl or NAME.pt. Writes its path to `path`, which has
 * `room` bytes. False if there is no such file. */
bool frag_stats_file_beside(const char *snapshot, char *path, size_t room);

FRAG_END_DECLS

#endif
