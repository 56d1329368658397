/* scratch.h - folders for files that are needed only while a command runs. */
#ifndef FRAG_SIM_CLI_SCRATCH_H
#define FRAG_SIM_CLI_SCRATCH_H

#include "traces/base.h"

/* Makes a new folder under TMPDIR, or under /tmp where TMPDIR is not set. IO
 * with the reason, NOMEM; then *folder is NULL. */
enum frag_err scratch_make(char **folder, struct frag_error *e) FRAG_MUST_CHECK;

/* Removes the folder with everything in it, and frees its name; NULL is no
 * folder. */
void scratch_remove(char *folder);

/* FOLDER/NAME<suffix>, to be freed; NULL if there is no memory. */
char *scratch_path(const char *folder, const char *name, const char *suffix);

#endif
