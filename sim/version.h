/* version.h - which fragsim this is: what results and messages say of the
 * program that made them. */
#ifndef FRAG_SIM_VERSION_H
#define FRAG_SIM_VERSION_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

extern const char frag_version[]; /* "0.1.0" */
/* Commit of the source, with "-dirty" if files were changed since; "unknown"
 * if the source was not a git checkout. */
extern const char frag_commit[];

FRAG_END_DECLS

#endif
