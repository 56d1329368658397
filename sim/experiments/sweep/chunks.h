/* chunks.h - the finished cells of a sweep that has not ended, so that a sweep
 * that was killed at any moment can be resumed.
 *
 * A chunk is a result file with up to CHUNK_CELLS cells, in a folder beside the
 * output of the sweep. It appears complete or not at all. The notes of a run in
 * it are the key of the cell, and the notes of the cell, one a line.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_CHUNKS_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_CHUNKS_H

#include "sim/results/results.h"

/* A chunk is written when it has this number of cells, or after this time. */
enum { CHUNK_CELLS = 1000, CHUNK_SECONDS = 20 };

enum chunks_mode {
    CHUNKS_NEW,     /* fails if the folder has chunks */
    CHUNKS_REPLACE, /* removes the chunks */
    CHUNKS_RESUME,  /* loads the chunks; begins if there are none */
};

struct chunks {
    char *folder;
    const struct frag_provenance *by; /* of the chunks */
    int lock;        /* a locked file in the folder; negative: none */
    unsigned number; /* of the next chunk */
    struct frag_loaded *loaded;
    size_t count, room;        /* of `loaded` */
    struct frag_error damaged; /* a chunk that was left out; "": none */
};

/* Makes the folder unless it exists, locks it, and loads its chunks. With
 * may_lack_lock, a file that cannot be locked is used unlocked. IO, with the
 * system's message, if another process holds the lock, or if NEW finds a chunk;
 * CORRUPT if there is no folder of that name but something else; UNSUPPORTED if
 * a chunk is by another version, or has other settings; NOMEM. A folder that is
 * refused keeps its chunks. `by` is borrowed. chunks_close is due on success
 * and on error. */
enum frag_err chunks_open(const char *folder, enum chunks_mode mode,
                          bool may_lack_lock, const struct frag_provenance *by,
                          struct chunks *out,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* The path of the next chunk, which the caller writes and frees; NULL if the
 * host has no memory. */
char *chunks_next(struct chunks *c);

/* Removes the chunks. */
void chunks_remove(struct chunks *c);
/* Releases the lock, and removes the folder if it has no chunk. */
void chunks_close(struct chunks *c);

#endif
