/* nccl_said.h - what the ranks of a communicator send each other, of memory
 * whose bytes are known (dry_shadow.h): counts and pickled objects, which the
 * receiver reads on the host.
 *
 * Each rank appends what it sends to a file of FRAGSIM_DRY_FOLDER, and says too
 * that bytes are not known. The receiver looks for a message when the program
 * reads the memory, so nobody waits for a rank that only sends later. Messages
 * of more than FRAG_DRY_SHADOW_MOST bytes are not sent.
 */
#ifndef FRAG_REAL_DRY_LIBRARIES_NCCL_SAID_H
#define FRAG_REAL_DRY_LIBRARIES_NCCL_SAID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SAID_TO_ALL = -1 };

/* The rank sends the bytes at an address, as its message `number` to a rank or
 * to all of the communicator. Those of whole numbers may be computed for it. */
void said(const char *communicator, int rank, int to, unsigned number,
          uint64_t at, size_t size, bool is_whole);
/* The bytes at the address are the message `number` that the rank `from` sends
 * to the rank `to`, or to all. */
void said_to(const char *communicator, int from, int to, unsigned number,
             uint64_t at, size_t size);

#endif
