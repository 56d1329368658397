/* torch_words.h - the keys and values of a PyTorch snapshot that both the
 * reader and the writer of snapshots know. The actions come first, in the order
 * of enum frag_entry_kind. */
#ifndef FRAG_TRACES_TORCH_WORDS_H
#define FRAG_TRACES_TORCH_WORDS_H

#define TORCH_WORDS(X)                            \
    X(alloc, "alloc")                             \
    X(free_requested, "free_requested")           \
    X(free_completed, "free_completed")           \
    X(segment_alloc, "segment_alloc")             \
    X(segment_free, "segment_free")               \
    X(segment_map, "segment_map")                 \
    X(segment_unmap, "segment_unmap")             \
    X(oom, "oom")                                 \
    X(action, "action")                           \
    X(addr, "addr")                               \
    X(device_free, "device_free")                 \
    X(size, "size")                               \
    X(stream, "stream")                           \
    X(time_us, "time_us")                         \
    X(frames, "frames")                           \
    X(pool_id, "pool_id")                         \
    X(name, "name")                               \
    X(filename, "filename")                       \
    X(line, "line")                               \
    X(device, "device")                           \
    X(address, "address")                         \
    X(total_size, "total_size")                   \
    X(segment_type, "segment_type")               \
    X(segment_pool_id, "segment_pool_id")         \
    X(is_expandable, "is_expandable")             \
    X(blocks, "blocks")                           \
    X(requested_size, "requested_size")           \
    X(state, "state")                             \
    X(small, "small")                             \
    X(inactive, "inactive")                       \
    X(active_pending_free, "active_pending_free") \
    X(active_allocated, "active_allocated")       \
    X(stage, "stage")                             \
    X(START, "START")                             \
    X(END, "END")

#endif
