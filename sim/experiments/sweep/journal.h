/* journal.h - a file to which finished work is appended, so that a run that was
 * killed at any moment can be resumed.
 *
 * A journal is a sequence of entries. An entry is bytes with a kind and a
 * checksum. If a kill, a full disk or a crash of the machine cuts an entry
 * short, that entry is the last one; the next opening removes it. When
 * journal_sync has returned, all entries before it are on the disk. Numbers
 * have the byte order of the machine: only the program that wrote a journal
 * reads it, and the first entry identifies that program.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_JOURNAL_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_JOURNAL_H

#include "traces/base.h"

struct journal;

enum journal_mode {
    JOURNAL_NEW,     /* fails if the file exists and is not empty */
    JOURNAL_REPLACE, /* empties the file */
    JOURNAL_RESUME,  /* continues the file; begins one if there is none */
};

struct journal_entry {
    uint64_t offset; /* in the file; journal_get finds the entry by it */
    uint32_t kind;   /* above 0 */
    const void *bytes;
    size_t size;
};

/* Receives each entry of a resumed journal, in the order of writing. An error
 * ends journal_open with that error. */
typedef enum frag_err (*journal_seen)(void *user,
                                      const struct journal_entry *entry,
                                      struct frag_error *e);

/* Opens and locks a journal. `identity` is a text; only a run with the same
 * identity may resume the journal. With may_lack_lock, a file that cannot be
 * locked is used unlocked. IO, with the system's message, if another process
 * holds the lock, or if NEW finds a journal; CORRUPT if the file is no journal;
 * UNSUPPORTED if its identity is different; NOMEM. A journal that is refused is
 * unchanged. */
enum frag_err journal_open(const char *path, enum journal_mode mode,
                           bool may_lack_lock, const char *identity,
                           journal_seen seen, void *user, struct journal **out,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* How many bytes journal_open removed at the end of the file. */
uint64_t journal_dropped(const struct journal *j);

/* Appends an entry. On IO the entry is not in the journal, and the entries
 * before it are untouched. */
enum frag_err journal_put(struct journal *j, uint32_t kind, const void *bytes,
                          size_t size, uint64_t *offset,
                          struct frag_error *e) FRAG_MUST_CHECK;
/* Brings the entries to the disk that were added since the last sync. Another
 * thread may add entries meanwhile; the next sync brings those. IO. */
enum frag_err journal_sync(struct journal *j,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* Reads the entry at an offset; the caller frees *bytes. IO, CORRUPT, NOMEM. */
enum frag_err journal_get(const struct journal *j, uint64_t offset,
                          void **bytes, size_t *size,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* Closes the journal and removes its file. */
void journal_remove(struct journal *j);
/* Closes the journal and keeps its file for the next run. NULL is fine. */
void journal_close(struct journal *j);

#endif
