/* scratch.h - temporary folders for files that are needed only while a command
 * runs. */
#ifndef FRAG_SIM_CLI_SCRATCH_H
#define FRAG_SIM_CLI_SCRATCH_H

#include "traces/base.h"

/* Creates a new folder under TMPDIR, or under /tmp if TMPDIR is not set, and
 * sets *folder to its name, which the caller passes to temporary_remove (see
 * traces/bytes/temporary.h). On IO or NOMEM *folder is NULL. */
enum frag_err scratch_make(char **folder, struct frag_error *e) FRAG_MUST_CHECK;

/* FOLDER/NAME<suffix>, to be freed; NULL if the host has no memory. */
char *scratch_path(const char *folder, const char *name, const char *suffix);

#endif
