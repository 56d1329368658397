/* threads.c - chooses the number of threads of a command, and prints the reason
 * if there are fewer than the user requested. */
#include "sim/cli/threads.h"

static bool is_interrupted(void *user)
{
    (void)user;
    return cli_interrupted();
}

struct parallel cli_threads(const struct call *call, uint64_t wanted,
                            bool quiet)
{
    const struct parallel_room room = parallel_room(wanted);
    char size[FRAG_SIZE_TEXT];

    if (room.threads < room.wanted && !quiet)
        fprintf(stderr,
                "fragsim %s: %zu of %zu threads: the address space is limited "
                "to %s (ulimit -v)\n",
                call->verb->name, room.threads, room.wanted,
                frag_size_format(room.limit, size));
    return (struct parallel){room.threads, {is_interrupted, NULL}};
}
