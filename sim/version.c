/* version.c - holds the version from CMakeLists.txt and the commit that the
 * build determined (commit.h is generated). */
#include "sim/version.h"

#include "commit.h"

const char frag_version[] = FRAG_VERSION;
const char frag_commit[] = FRAG_COMMIT;
