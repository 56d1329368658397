/* processors.c - counts the processors that this process may use. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "traces/bytes/processors.h"

#include <sched.h>

size_t processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0
               ? (size_t)CPU_COUNT(&set)
               : 1;
}
