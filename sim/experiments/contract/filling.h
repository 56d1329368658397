/* filling.h - fills a device with blocks, to find out whether the quantum that
 * a policy states (frag_policy.quantum) is one. */
#ifndef FRAG_SIM_EXPERIMENTS_CONTRACT_FILLING_H
#define FRAG_SIM_EXPERIMENTS_CONTRACT_FILLING_H

#include "sim/experiments/contract/contract.h"

/* Fills devices with small, larger and large requests whose rest is at most
 * half a quantum. CONTRACT, with the reason in why, if the policy holds less
 * than the live requests in whole quanta at any time, or if it serves none;
 * NOMEM. */
enum frag_err filling_holds(const struct contract_subject *s,
                            struct frag_error *why) FRAG_MUST_CHECK;

#endif
