/* name.h - the name of a trace, from the path of its file. It touches no file.
 */
#ifndef FRAG_TRACES_NAME_H
#define FRAG_TRACES_NAME_H

/* The file name without folders and known suffixes; "stdin" for "-". To be
 * freed; NULL if the host has no memory. */
char *frag_trace_name(const char *path);

#endif
