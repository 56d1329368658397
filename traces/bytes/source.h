/* source.h - the bytes of an input: a file or stdin, decompressed on the way.
 *
 * Streams: memory does not grow with the input. gzip, xz, zstd and the first
 * "data.pkl" (torch.save) or ".txt" of a zip are found by content and unpacked.
 * The reader looks at a window of bytes and says how many it used.
 */
#ifndef FRAG_TRACES_BYTES_SOURCE_H
#define FRAG_TRACES_BYTES_SOURCE_H

#include <stdio.h>

#include "traces/base.h"

struct frag_source;

/* "-" is stdin. IO with the system's words, NOMEM. On error *out is
 * untouched. */
enum frag_err frag_source_open(const char *path, struct frag_source **out,
                               struct frag_error *e) FRAG_MUST_CHECK;
void frag_source_close(struct frag_source *s); /* NULL is fine */

/* Memory instead of a file, borrowed; for tests and fuzzers. The same layers
 * of decompression apply. */
enum frag_err frag_source_open_memory(const char *name, const void *bytes,
                                      size_t size, struct frag_source **out,
                                      struct frag_error *e) FRAG_MUST_CHECK;

/* Whether these first bytes of a file are those of a packed form; 6 of them are
 * enough to tell. */
bool frag_source_is_packed(const unsigned char *bytes, size_t count);

/* Makes at least `want` bytes visible (fewer only at the end of the input) and
 * returns how many there are; *bytes is valid until the next call. want is at
 * most FRAG_SOURCE_WINDOW. IO or CORRUPT (a broken archive) in *err. */
enum { FRAG_SOURCE_WINDOW = 1 << 16 };
size_t frag_source_peek(struct frag_source *s, size_t want,
                        const unsigned char **bytes, enum frag_err *err,
                        struct frag_error *e);
void frag_source_skip(struct frag_source *s, size_t used); /* <= visible */

uint64_t
frag_source_offset(const struct frag_source *s); /* unpacked bytes used */
uint64_t frag_source_read(const struct frag_source *s); /* file bytes read */
uint64_t
frag_source_size(const struct frag_source *s); /* file bytes; 0: unknown */
const char *frag_source_name(const struct frag_source *s);

/* SHA-256 of the file's bytes as they are on disk, in hex, once the input has
 * been read to its end (reads what is left). */
enum frag_err frag_source_sha256(struct frag_source *s, char hex[65],
                                 struct frag_error *e) FRAG_MUST_CHECK;

#endif
