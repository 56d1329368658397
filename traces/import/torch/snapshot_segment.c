/* snapshot_segment.c - reads the segments of a snapshot and their blocks, and
 * passes them to the builder. */
#include "traces/import/torch/import_torch.h"

/* Blocks are stored until their segment is complete, because the builder
 * accepts a segment before its blocks. */

enum { B_ADDRESS, B_SIZE, B_REQUESTED, B_STATE };

const struct field block_fields[WORD_COUNT] = {
    [W_address] = {WHOLE, B_ADDRESS, 0, false, false},
    [W_size] = {WHOLE, B_SIZE, 0, true, false},
    [W_requested_size] = {WHOLE, B_REQUESTED, 0, false, false},
    [W_state] = {TEXT, B_STATE, 0, true, false},
};

static enum frag_err blocks_begin(void *user, uint8_t kind,
                                  struct frag_error *e)
{
    struct import *in = user;

    (void)kind, (void)e;
    in->block_count = 0;
    return FRAG_OK;
}

const struct pickle_kind torch_blocks = {
    .name = "a list of blocks",
    .element = K_BLOCK,
    .begin = blocks_begin,
};

static bool state_of(uint64_t word, enum frag_block_state *state)
{
    switch (word) {
    case W_inactive:
        *state = FRAG_INACTIVE;
        return true;
    case W_active_pending_free:
    case W_active_awaiting_free:
        *state = FRAG_ACTIVE_PENDING_FREE;
        return true;
    case W_active_allocated:
        *state = FRAG_ACTIVE_ALLOCATED;
        return true;
    default:
        return false;
    }
}

/* A free block keeps the request of its last use; it may have been split. */
static bool is_too_small(const struct frag_snapshot_block *b)
{
    return b->state != FRAG_INACTIVE && b->requested != FRAG_SIZE_UNKNOWN &&
           b->requested > b->size;
}

static enum frag_err block_seal(void *user, uint8_t kind, uint32_t *result,
                                struct frag_error *e)
{
    struct import *in = user;
    struct object *o = &in->objects[K_BLOCK];
    struct frag_snapshot_block b = {
        .addr = object_has(o, B_ADDRESS) ? o->value[B_ADDRESS] : 0,
        .size = o->value[B_SIZE],
        .requested = object_has(o, B_REQUESTED) ? o->value[B_REQUESTED]
                                                : FRAG_SIZE_UNKNOWN,
    };

    (void)kind, (void)result;
    FRAG_TRY(object_check(in, K_BLOCK, e));
    if (in->is_host && b.requested == b.size)
        b.requested = FRAG_SIZE_UNKNOWN; /* PyTorch does not keep it */
    if (!state_of(o->value[B_STATE], &b.state))
        return object_bad(in, K_BLOCK,
                          "inactive, active_allocated, active_pending_free or "
                          "active_awaiting_free for the key",
                          W_state, "another text", e);
    if (is_too_small(&b))
        return object_bad(in, K_BLOCK, "at most the size for the key",
                          W_requested_size, "more", e);
    if (!GROW(in->blocks, in->block_room, in->block_count + 1))
        return import_no_memory(in, e);
    in->blocks[in->block_count++] = b;
    o->number++;
    return FRAG_OK;
}

const struct pickle_kind torch_block = {
    .name = "a block",
    .shape = PICKLE_IS_DICT,
    .begin = object_begin,
    .add = object_add,
    .seal = block_seal,
};

enum {
    S_DEVICE,
    S_ADDRESS,
    S_SIZE,
    S_STREAM,
    S_TYPE,
    S_POOL,
    S_EXPANDABLE,
    S_BLOCKS
};

const struct field segment_fields[WORD_COUNT] = {
    [W_device] = {WHOLE, S_DEVICE, 0, false, true},
    [W_address] = {WHOLE, S_ADDRESS, 0, true, false},
    [W_total_size] = {WHOLE, S_SIZE, 0, true, false},
    [W_stream] = {WHOLE, S_STREAM, 0, true, true},
    [W_segment_type] = {TEXT, S_TYPE, 0, true, false},
    [W_segment_pool_id] = {PAIR, S_POOL, 0, false, false},
    [W_is_expandable] = {TRUTH, S_EXPANDABLE, 0, false, false},
    [W_blocks] = {DONE, S_BLOCKS, K_BLOCKS, true, false},
};

static enum frag_err segment_begin(void *user, uint8_t kind,
                                   struct frag_error *e)
{
    struct import *in = user;

    in->objects[K_BLOCK].number = 0;
    return object_begin(in, kind, e);
}

static enum frag_err feed_segment(struct import *in, const struct object *o,
                                  uint32_t device, struct frag_error *e)
{
    const uint64_t *v = o->value;
    struct frag_snapshot_segment s = {
        .addr = v[S_ADDRESS],
        .size = v[S_SIZE],
        .stream = v[S_STREAM],
        .pool = object_pool(in, K_SEGMENT, S_POOL),
        .is_small = v[S_TYPE] == W_small,
        .is_expandable = object_has(o, S_EXPANDABLE) && v[S_EXPANDABLE],
    };

    FRAG_TRY(frag_build_segment(in->build, device, &s, o->where, e));
    for (size_t i = 0; i < in->block_count; i++) {
        FRAG_TRY(
            frag_build_block(in->build, device, &in->blocks[i], o->where, e));
        origin_see_block(&in->origin, &in->blocks[i], s.is_small);
    }
    in->has_expandable |= s.is_expandable;
    return FRAG_OK;
}

static enum frag_err segment_seal(void *user, uint8_t kind, uint32_t *result,
                                  struct frag_error *e)
{
    struct import *in = user;
    struct object *o = &in->objects[K_SEGMENT];
    const uint64_t device = in->is_host               ? FRAG_HOST_DEVICE
                            : object_has(o, S_DEVICE) ? o->value[S_DEVICE]
                                                      : 0;

    (void)kind, (void)result;
    FRAG_TRY(object_check(in, K_SEGMENT, e));
    if (device >= DEVICES_MAX && !in->is_host)
        return object_bad(in, K_SEGMENT, "less than 1024 for the key", W_device,
                          "a larger integer", e);
    in->has_segments = true;
    o->number++;
    if (in->is_host && !settings_round_to(in, o->value[S_SIZE]))
        return FRAG_OK; /* see find_registered */
    return feed_segment(in, o, (uint32_t)device, e);
}

static const struct pickle_member members[] = {{W_blocks, K_BLOCKS}, {0, 0}};

const struct pickle_kind torch_segment = {
    .name = "a segment",
    .shape = PICKLE_IS_DICT,
    .members = members,
    .begin = segment_begin,
    .add = object_add,
    .seal = segment_seal,
};

static enum frag_err list_begin(void *user, uint8_t kind, struct frag_error *e)
{
    struct import *in = user;

    in->is_host = kind == K_HOST_SEGMENTS;
    return list_begin_once(in, kind, e);
}

const struct pickle_kind torch_segments = {
    .name = "the list of segments",
    .element = K_SEGMENT,
    .begin = list_begin,
};

/* The segments of pinned host memory, whose device is -1; each is one block. */
const struct pickle_kind torch_host_segments = {
    .name = "the list of host segments",
    .element = K_SEGMENT,
    .begin = list_begin,
};
