/* version.c - the version from CMakeLists.txt and the commit that the build
 * looked up. */
#include "sim/version.h"

#include "commit.h"

const char frag_version[] = FRAG_VERSION;
const char frag_commit[] = FRAG_COMMIT;
