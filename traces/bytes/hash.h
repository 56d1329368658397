/* hash.h - the SHA-256 of a file, by which finished work is known again. */
#ifndef FRAG_TRACES_BYTES_HASH_H
#define FRAG_TRACES_BYTES_HASH_H

#include "traces/base.h"

/* Of the file's bytes as they are on the disk, in hex. IO, NOMEM. */
enum frag_err hash_file(const char *path, char hex[65],
                        struct frag_error *e) FRAG_MUST_CHECK;

#endif
