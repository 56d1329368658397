/* journal.h - a file to which finished work is added, and from which a run that
 * was killed at any moment goes on.
 *
 * Records are bytes with a kind and a checksum, one after the other. What a
 * kill, a full disk or a crash of the machine leaves unfinished is at the end;
 * the next opening cuts it off. What journal_sync has returned for is on the
 * disk. The numbers are the machine's own: a journal is read by the program
 * that wrote it, and its first record says which that was.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_JOURNAL_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_JOURNAL_H

#include "traces/base.h"

struct journal;

enum journal_mode {
    JOURNAL_NEW,     /* refuses one that is there */
    JOURNAL_REPLACE, /* empties it */
    JOURNAL_RESUME,  /* goes on with it; an empty one if there is none */
};

/* One record. */
struct journal_entry {
    uint64_t offset; /* of the record in the file: journal_get's name for it */
    uint32_t kind;   /* above 0 */
    const void *bytes;
    size_t size;
};

/* Told of each record when a journal is resumed, in the order of writing. An
 * error ends the opening with it. */
typedef enum frag_err (*journal_seen)(void *user,
                                      const struct journal_entry *entry,
                                      struct frag_error *e);

/* Opens and locks, unless may_lack_lock and the file cannot be locked; identity
 * says who may go on with it, a text. IO with the
 * system's words, where another process holds it, or where NEW finds one;
 * CORRUPT if the file is no journal; UNSUPPORTED if the identity is another
 * one; NOMEM. A file that is refused is as it was. */
enum frag_err journal_open(const char *path, enum journal_mode mode,
                           bool may_lack_lock, const char *identity,
                           journal_seen seen, void *user, struct journal **out,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* Bytes that were cut off at the end when it was opened. */
uint64_t journal_dropped(const struct journal *j);

/* Adds a record. IO: it is not there, what was there still is. */
enum frag_err journal_put(struct journal *j, uint32_t kind, const void *bytes,
                          size_t size, uint64_t *offset,
                          struct frag_error *e) FRAG_MUST_CHECK;
enum frag_err journal_sync(struct journal *j,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* A record by its offset; *bytes is to be freed. IO, CORRUPT, NOMEM. */
enum frag_err journal_get(const struct journal *j, uint64_t offset,
                          void **bytes, size_t *size,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* Removes the file too, or leaves it for the next to go on. NULL is fine. */
void journal_remove(struct journal *j);
void journal_close(struct journal *j);

#endif
