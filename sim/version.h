/* version.h - the version and commit of this build of fragsim. Result files,
 * reports and messages state them. */
#ifndef FRAG_SIM_VERSION_H
#define FRAG_SIM_VERSION_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

extern const char frag_version[]; /* "0.2.0", from CMakeLists.txt */
/* Commit of the source, with "-dirty" if files were changed since then, apart
 * from paper/data and paper/pages, which the tool makes. "unknown" if the
 * source was not a git checkout. */
extern const char frag_commit[];

FRAG_END_DECLS

#endif
