/* fit.h - the common part of the fit policies (first fit, best fit, ...).
 *
 * A fit policy serves a request from a free block, called a hole, or from a new
 * segment. This file does all of it except the choice of the hole. Blocks fill
 * each segment in the order of addresses. A hole that is larger than the
 * request is split: its low part is allocated, the rest stays free. A freed
 * block is coalesced with its free neighbours. The records of blocks (boundary
 * tags) are in host memory, because the host cannot read device memory. Streams
 * and pools are not distinguished: a freed block serves any request.
 *
 * Invariants, checked by fit_check:
 *   - the blocks of a segment fill it without gap or overlap;
 *   - no two neighbours in one segment are both free;
 *   - the rule holds exactly the free blocks.
 *
 * A policy adds a rule (struct fit_rule): how holes are stored and which hole a
 * request receives. Its state starts with struct fit; its init calls fit_init
 * with the rule.
 */
#ifndef FRAG_POLICIES_MECHANISM_FIT_H
#define FRAG_POLICIES_MECHANISM_FIT_H

#include "policies/mechanism/holes.h"
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/segments.h"

struct fit;

/* How a policy stores holes and chooses among them. */
struct fit_rule {
    void (*insert)(struct fit *fit, struct hole *hole);
    void (*remove)(struct fit *fit, struct hole *hole);
    /* Changes the address and size of a stored hole. The hole keeps its place
     * in the order of addresses among all holes. */
    void (*resize)(struct fit *fit, struct hole *hole, frag_addr addr,
                   frag_size size);
    /* The hole for a request of `size` bytes, which stays stored; NULL if no
     * hole is large enough. */
    struct hole *(*choose)(struct fit *fit, frag_size size);
    /* Checks the structure that stores the holes and adds the holes to `met`,
     * with home NULL. Returns NULL or a text that names the fault. */
    const char *(*check)(const struct fit *fit, struct met *met);
};

struct fit {
    frag_size segment; /* the parameter, bytes */
    const struct fit_rule *rule;
    struct segment *segments;
    struct nodes nodes; /* of blocks */
};

/* The functions of a policy's table. init never fails; alloc has the errors of
 * segment_take, or NOMEM; trim returns the segments without live blocks. */
enum frag_err fit_init(struct frag_heap *heap, const struct fit_rule *rule);
void fit_fini(struct frag_heap *heap);
enum frag_err fit_alloc(struct frag_heap *heap, const struct frag_request *req,
                        struct frag_block *out);
void fit_free(struct frag_heap *heap, const struct frag_block *block);
void fit_trim(struct frag_heap *heap);

/* Checks the invariants. Returns NULL or a text that names the fault. */
const char *fit_check(const struct frag_heap *heap);

/* ---- a fit whose rule is a tree by address: the start of a policy's state */

struct address_fit {
    struct fit fit;
    struct hole *holes;
};

void address_fit_insert(struct fit *fit, struct hole *hole);
void address_fit_remove(struct fit *fit, struct hole *hole);
void address_fit_resize(struct fit *fit, struct hole *hole, frag_addr addr,
                        frag_size size);
const char *address_fit_check(const struct fit *fit, struct met *met);

/* A rule that stores holes by address and chooses with `choose`. */
#define ADDRESS_FIT_RULE(choose)                                            \
    {                                                                       \
        address_fit_insert, address_fit_remove, address_fit_resize, choose, \
            address_fit_check                                               \
    }

#endif
