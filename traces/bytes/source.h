/* source.h - reads the bytes of an input, a file or stdin, and unpacks them.
 *
 * The source is a stream: its memory does not grow with the input. The content
 * shows whether the input is packed: gzip, xz and zstd are unpacked; of a zip,
 * the first entry whose name ends in ".pkl", ".pickle" or ".txt". The
 * reader gets a window of bytes (frag_source_peek) and reports how many of them
 * it has used (frag_source_skip).
 */
#ifndef FRAG_TRACES_BYTES_SOURCE_H
#define FRAG_TRACES_BYTES_SOURCE_H

#include <stdio.h>

#include "traces/base.h"

struct frag_source;

/* Opens a file; "-" is stdin. IO with the system's message, CORRUPT for a
 * broken archive, NOMEM. On error *out is unchanged. */
enum frag_err frag_source_open(const char *path, struct frag_source **out,
                               struct frag_error *e) FRAG_MUST_CHECK;
void frag_source_close(struct frag_source *s); /* NULL is fine */

/* Lets a second thread work ahead of the reader until frag_source_sha256 or
 * frag_source_close: it unpacks the input and computes its SHA-256. The bytes
 * and the errors, with their offsets, are the same as without the thread. Does
 * nothing for an input that is not a regular file with a name, because a signal
 * must interrupt a read() from a pipe; nor for zstd, whose errors would name
 * other offsets; nor for a small input, on one processor, if the address space
 * is limited, or if the system refuses a thread. */
void frag_source_read_ahead(struct frag_source *s);

/* Opens a borrowed array of bytes instead of a file, for tests and fuzzers. It
 * is unpacked in the same way. The name is for messages. */
enum frag_err frag_source_open_memory(const char *name, const void *bytes,
                                      size_t size, struct frag_source **out,
                                      struct frag_error *e) FRAG_MUST_CHECK;

/* Returns whether the first bytes of a file are those of a packed form. 6 bytes
 * are enough. */
bool frag_source_is_packed(const unsigned char *bytes, size_t count);

/* The bytes that a file of `packed` bytes may unpack to, in all its layers and
 * in the filters of HDF5: 1000 times as many, but 256 MiB to 256 GiB, or what
 * the environment variable says, a size such as 2TiB. */
#define SOURCE_MOST_VARIABLE "FRAGSIM_MAX_UNPACKED"
#define SOURCE_MOST_OPTION   "max-unpacked" /* of fragsim; sets the variable */
uint64_t frag_source_most(uint64_t packed);

enum { FRAG_SOURCE_WINDOW = 1 << 16 }; /* bytes */

/* Sets *bytes to the next bytes of the input and returns their number: at least
 * `want` (at most FRAG_SOURCE_WINDOW), fewer only at the end of the input.
 * *bytes is valid until the next call. *err is OK, IO, CORRUPT (a broken
 * archive) or NOMEM. */
size_t frag_source_peek(struct frag_source *s, size_t want,
                        const unsigned char **bytes, enum frag_err *err,
                        struct frag_error *e);
/* Skips `used` bytes, at most the number that frag_source_peek returned. */
void frag_source_skip(struct frag_source *s, size_t used);

/* The position of the reader, in unpacked bytes. */
uint64_t frag_source_offset(const struct frag_source *s);
/* How much of the file has been read, in bytes on the disk. */
uint64_t frag_source_read(const struct frag_source *s);
/* The size of the file in bytes on the disk, 0 if not known. */
uint64_t frag_source_size(const struct frag_source *s);
const char *frag_source_name(const struct frag_source *s);

/* Whether bytes after the end of a trace are a mistake. They are not in a zip
 * whose entry has no size: other entries follow, and the pickle marks its own
 * end. To be asked when the trace has been read. */
bool frag_source_knows_end(const struct frag_source *s);

/* Reads the rest of the input and computes the SHA-256 of the file's bytes on
 * the disk, in hex. Called last. IO, CORRUPT, NOMEM. */
enum frag_err frag_source_sha256(struct frag_source *s, char hex[65],
                                 struct frag_error *e) FRAG_MUST_CHECK;

#endif
