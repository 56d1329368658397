/* faulty.h - a backend in front of another backend, for tests of policies: it
 * keeps its own list of the held memory, can limit the device's size, and fails
 * at a chosen call.
 *
 * It allocates no memory itself, so tests that make malloc fail see only the
 * policy's calls. Calls that release memory do not fail while `closing` is set,
 * since the caller that closes a heap has no later call to retry in.
 */
#ifndef FRAG_SIM_EXPERIMENTS_CONTRACT_FAULTY_H
#define FRAG_SIM_EXPERIMENTS_CONTRACT_FAULTY_H

#include "policies/device/relay.h"

enum { FAULTY_RANGES = 4096 };

/* Memory that the policy holds: a segment, or one map. */
struct faulty_memory {
    frag_addr addr;
    frag_size size;
    uint64_t birth; /* number of ranges acquired before it */
    bool mapped;
};

struct faulty {
    union { /* base is that of the relay */
        struct frag_relay relay;
        struct frag_backend base;
    };
    frag_size limit;     /* bytes in segments and physical allocations */
    frag_size used;      /* bytes in use of the limit */
    frag_size va;        /* bytes of address space reserved */
    uint64_t fail_at;    /* the call that must fail, counted from 1; 0: none */
    enum frag_err error; /* the error of that call */
    uint64_t calls;      /* calls so far that could have failed with it */
    bool closing;
    void (*on_synchronize)(void *user); /* may be NULL */
    void *user;
    size_t count;
    uint64_t births;
    const char *misuse; /* what the policy did wrong, or NULL */
    struct faulty_memory held[FAULTY_RANGES];
};

/* Opens the backend in front of `inner`, without a limit and without a
 * fault. */
void faulty_init(struct faulty *f, struct frag_backend *inner);

/* Whether all of [addr, addr + size) lies in one segment or in maps that follow
 * one another. */
bool faulty_holds(const struct faulty *f, frag_addr addr, frag_size size);

#endif
