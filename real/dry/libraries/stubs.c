/* stubs.c - a library of which no function needs code of its own. DRY_LIST is
 * its list and DRY_LACKING the status of a function that it lacks (stubs.h). */
#include "real/dry/stubs.h"

#include DRY_LIST
