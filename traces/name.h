/* name.h - derives the name of a trace from the path of its file. The file is
 * not read. */
#ifndef FRAG_TRACES_NAME_H
#define FRAG_TRACES_NAME_H

#include <string.h>

/* The path without its folders. */
static inline const char *frag_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Returns the file name without its folders and without the suffixes of known
 * formats, for example "run" for "a/run.pickle.xz", and "stdin" for "-". The
 * caller frees the result. NULL if the host has no memory. */
char *frag_trace_name(const char *path);

#endif
