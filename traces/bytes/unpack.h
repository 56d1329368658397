/* unpack.h - functions that all packed forms use. Private to traces/bytes/. */
#ifndef FRAG_TRACES_BYTES_UNPACK_H
#define FRAG_TRACES_BYTES_UNPACK_H

#define ZLIB_CONST /* so that inflate takes const input */
#include <zlib.h>

#include "traces/bytes/stage.h"

/* Returns CORRUPT with a message: the file, the offset in the packed bytes, and
 * `what` is wrong. */
enum frag_err unpack_broken(const struct stage *s, const char *what,
                            struct frag_error *e);
/* The same for a file that ends before its packed form does. The stage below
 * has ended. */
enum frag_err unpack_cut_short(const struct stage *s, struct frag_error *e);
/* Returns NOMEM with a message that names the file and the packed form. */
enum frag_err unpack_no_memory(const struct stage *s, struct frag_error *e);

/* Returns whether the bytes start with the `length` bytes of magic. */
bool unpack_starts_with(const unsigned char *bytes, size_t count,
                        const char *magic, size_t length);

/* These functions inflate the stage below s with zlib. `window` is the argument
 * windowBits of inflateInit2. A step writes up to `room` bytes to `to` and
 * their number to *made; it sets *done at the end of the deflated stream. */
enum frag_err unpack_inflate_start(struct stage *s, z_stream *z, int window,
                                   struct frag_error *e);
enum frag_err unpack_inflate_step(struct stage *s, z_stream *z,
                                  unsigned char *to, size_t room, size_t *made,
                                  bool *done, struct frag_error *e);

#endif
