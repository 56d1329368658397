/* fit.h - sequential fits: all but the choice of the hole.
 *
 * Segments are tiled by blocks in the order of addresses; a block is split when
 * a request needs less, its low part granted, and coalesced with its free
 * neighbours when it is freed. Boundary tags are kept beside the memory, since
 * the host cannot reach it. Streams and pools are not told apart: a block that
 * was freed serves anyone.
 *
 * Invariants, checked by fit_check:
 *   - the blocks of a segment tile it: no gap, no overlap;
 *   - no two neighbours of one segment are both free;
 *   - the holes that the rule was given are the free blocks.
 *
 * A policy is a rule: where holes are kept and which one a request gets. Its
 * state starts with struct fit, its init is fit_init with the rule.
 */
#ifndef FRAG_POLICIES_MECHANISM_FIT_H
#define FRAG_POLICIES_MECHANISM_FIT_H

#include "policies/mechanism/holes.h"
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/segments.h"

struct fit;

struct fit_rule {
    void (*insert)(struct fit *fit, struct hole *hole);
    void (*remove)(struct fit *fit, struct hole *hole);
    /* Moves and resizes a hole, not past another one. */
    void (*resize)(struct fit *fit, struct hole *hole, frag_addr addr,
                   frag_size size);
    /* The hole that a request of size gets, still in place; NULL if none is
     * large enough. */
    struct hole *(*choose)(struct fit *fit, frag_size size);
    /* Checks where the holes are kept and adds them to `met`, without a home:
     * NULL, or what is broken. */
    const char *(*check)(const struct fit *fit, struct met *met);
};

struct fit {
    frag_size segment; /* the parameter */
    const struct fit_rule *rule;
    struct fit_segment *segments; /* the newest first */
    struct nodes nodes;           /* of blocks */
};

enum frag_err fit_init(struct frag_heap *heap, const struct fit_rule *rule);
void fit_fini(struct frag_heap *heap);
enum frag_err fit_alloc(struct frag_heap *heap, const struct frag_request *req,
                        struct frag_block *out);
void fit_free(struct frag_heap *heap, const struct frag_block *block);
void fit_trim(struct frag_heap *heap); /* returns wholly free segments */

/* NULL, or what is broken. */
const char *fit_check(const struct frag_heap *heap);

/* ---- a fit that keeps its holes by address: the start of a policy's state */

struct address_fit {
    struct fit fit;
    struct hole *holes;
};

void address_fit_insert(struct fit *fit, struct hole *hole);
void address_fit_remove(struct fit *fit, struct hole *hole);
void address_fit_resize(struct fit *fit, struct hole *hole, frag_addr addr,
                        frag_size size);
const char *address_fit_check(const struct fit *fit, struct met *met);

/* A rule that differs in the choice only. */
#define ADDRESS_FIT_RULE(choose)                                            \
    {                                                                       \
        address_fit_insert, address_fit_remove, address_fit_resize, choose, \
            address_fit_check                                               \
    }

#endif
