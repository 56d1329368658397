/* peer.h - allocators of other projects, as policies of the benchmark. A peer
 * manages addresses from 0 up to PEER_ROOM; peer_policies.c makes a policy of
 * it, so that the replay loop drives it as it drives ours. */
#ifndef FRAG_TESTS_BENCH_PEERS_PEER_H
#define FRAG_TESTS_BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stdint.h>

#define PEER_ROOM ((uint64_t)64 << 30) /* bytes */
#define PEER_UNIT 512 /* bytes: requests are rounded up, as in our policies */

/* The four functions of a peer. NAME_open returns NULL, and NAME_alloc false,
 * if it has no room. *handle is the peer's own record of the block. */
#define PEER(NAME)                                                  \
    void *NAME##_open(void);                                        \
    void NAME##_close(void *heap);                                  \
    bool NAME##_alloc(void *heap, uint64_t bytes, uint64_t *offset, \
                      void **handle);                               \
    void NAME##_free(void *heap, uint64_t offset, void *handle);

#ifdef __cplusplus
extern "C" {
#endif
#include "tests/bench/peers/peer_list.h"
#ifdef __cplusplus
}
#endif
#undef PEER

#endif
