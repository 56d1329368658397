/* stats_file.h - memory_stats of the recorded allocator, from a JSON file.
 *
 * Two shapes are read: an object with `stats` (a flat object of counters, as
 * torch.cuda.memory_stats() returns it, or one such object per device number),
 * and beside it, where there are, `cap` and `total_memory` in bytes: the memory
 * limit the process was given, which no snapshot holds, and the device's size.
 * What is no integer, or below 0, is not there.
 */
#ifndef FRAG_SIM_VALIDATE_STATS_FILE_H
#define FRAG_SIM_VALIDATE_STATS_FILE_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

struct frag_stats_file;

/* IO; CORRUPT, also of 4 MiB or nested 33 deep; NOMEM. On error *out is
 * untouched. */
enum frag_err frag_stats_file_open(const char *path,
                                   struct frag_stats_file **out,
                                   struct frag_error *e) FRAG_MUST_CHECK;
void frag_stats_file_close(struct frag_stats_file *file); /* NULL is fine */

/* The limit in bytes, 0 if the file has none; the device's size, 0 if the file
 * does not say. */
frag_size frag_stats_file_cap(const struct frag_stats_file *file);
frag_size frag_stats_file_total(const struct frag_stats_file *file);

/* A counter of a device by its memory_stats name; false if it is not there. */
bool frag_stats_file_get(const struct frag_stats_file *file, uint32_t device,
                         const char *name, uint64_t *value);

/* The file that belongs to a snapshot: NAME.json beside NAME.pickle,
 * NAME.pickle.xz and so on. Writes it to path (room bytes); false if there is
 * none. */
bool frag_stats_file_beside(const char *snapshot, char *path, size_t room);

FRAG_END_DECLS

#endif
