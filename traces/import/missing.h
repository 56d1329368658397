/* missing.h - says why a name is not that of a trace file, before it is opened.
 */
#ifndef FRAG_TRACES_IMPORT_MISSING_H
#define FRAG_TRACES_IMPORT_MISSING_H

#include "traces/base.h"

/* Returns whether a file, a folder or "-" (stdin) has that name. */
bool missing_exists(const char *path);

/* Returns OK if `path` is "-" or names something that can hold a trace. Else
 * returns INVALID: the name is a pattern that matched no file; or IO: the name
 * is a folder, or missing; the message has the nearest name in the same folder
 * if there is one. */
enum frag_err missing_check(const char *path,
                            struct frag_error *e) FRAG_MUST_CHECK;

#endif
