/* peer_policies.h - the peers as policies; see peer.h. */
#ifndef FRAG_TESTS_BENCH_PEERS_PEER_POLICIES_H
#define FRAG_TESTS_BENCH_PEERS_PEER_POLICIES_H

#include "policies/policy.h"

/* Ended by NULL; empty if the build has no peer. */
extern const struct frag_policy *const peer_policies[];

#endif
