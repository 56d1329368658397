/* build.h - from recorded entries to a trace: what every importer shares.
 *
 * An importer feeds what it reads, in file order; the builder gives out slots,
 * joins free_requested with its free_completed, keeps what the recorded
 * allocator answered, and at the end infers what a recording does not say
 * (empty_cache calls, pools, the state before the first event), as
 * allocator rules allow. Memory: the event columns, and beyond them a table of
 * live addresses.
 */
#ifndef FRAG_TRACES_BUILD_BUILD_H
#define FRAG_TRACES_BUILD_BUILD_H

#include "traces/trace.h"

FRAG_BEGIN_DECLS

struct frag_build;

/* One entry of a recorded allocator's log. */
enum frag_entry_kind {
    FRAG_ENTRY_ALLOC,
    FRAG_ENTRY_FREE_REQUESTED,
    FRAG_ENTRY_FREE_COMPLETED,
    FRAG_ENTRY_SEGMENT_ALLOC,
    FRAG_ENTRY_SEGMENT_FREE,
    FRAG_ENTRY_SEGMENT_MAP,
    FRAG_ENTRY_SEGMENT_UNMAP,
    FRAG_ENTRY_OOM,
    FRAG_ENTRY_FAILED, /* a request that the device itself refused, of a program
                          whose allocator is not recorded; addr is not used */
};

struct frag_entry {
    enum frag_entry_kind kind;
    bool has_pool; /* pool is recorded with the entry (2.12 and later) */
    uint32_t stack;
    frag_addr addr; /* for oom: free device memory */
    frag_size size;
    uint64_t stream; /* raw handle */
    frag_time time;  /* ns; 0 if not recorded */
    struct frag_pool_id pool;
};

struct frag_snapshot_segment {
    frag_addr addr;
    frag_size size;
    uint64_t stream;
    struct frag_pool_id pool;
    bool is_small, is_expandable;
};

struct frag_snapshot_block {
    frag_addr addr; /* 0: right after the block before it */
    frag_size size;
    frag_size requested; /* FRAG_SIZE_UNKNOWN if the file does not say */
    enum frag_block_state state;
};

/* The builder of an empty trace read from `path` (copied; for messages) in the
 * named format (borrowed). NULL if the host has no memory. */
struct frag_build *frag_build_open(const char *path, const char *format);
void frag_build_close(
    struct frag_build *b); /* NULL is fine; after finish too */

/* The next entry of a device. CORRUPT for a size of 0 or >= 2^63, an address
 * that is already live, a free_completed without its alloc where the address
 * was allocated and freed before; `where` (bytes into the file) goes in the
 * message. A free of an address never seen means the block was live before
 * the recording: it becomes part of the initial state. */
enum frag_err frag_build_entry(struct frag_build *b, uint32_t device,
                               const struct frag_entry *entry, uint64_t where,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* The final snapshot: a segment, then the blocks that tile it. May come before
 * or after the entries. */
enum frag_err frag_build_segment(struct frag_build *b, uint32_t device,
                                 const struct frag_snapshot_segment *s,
                                 uint64_t where,
                                 struct frag_error *e) FRAG_MUST_CHECK;
enum frag_err frag_build_block(struct frag_build *b, uint32_t device,
                               const struct frag_snapshot_block *block,
                               uint64_t where,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* A phase boundary at a time; placed among the events at the end. */
enum frag_err frag_build_mark(struct frag_build *b, uint32_t device,
                              enum frag_mark_kind kind, frag_time time,
                              const char *name, size_t length,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* An event as a client script has it (CSV, generators): any 64-bit id, given a
 * slot here. CORRUPT for an id allocated twice or freed while not live. */
enum frag_err frag_build_event(struct frag_build *b, uint32_t device,
                               enum frag_op op, uint64_t id, frag_size bytes,
                               uint64_t stream, uint64_t where,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Interned text and stacks. Return the index, UINT32_MAX if out of memory. */
uint32_t frag_build_string(struct frag_build *b, const char *text,
                           size_t length);
uint32_t frag_build_stack(struct frag_build *b, const struct frag_frame *frames,
                          size_t count);

enum { FRAG_RECORDED_DIVISIONS = 16 }; /* of roundup_power2_divisions */

/* The recorded allocator's settings: as a conf string, and those the inference
 * needs. */
struct frag_recorded_settings {
    const char *conf;    /* copied; NULL if none recorded */
    double gc_threshold; /* 0: off */
    uint64_t divisions[FRAG_RECORDED_DIVISIONS];
    bool expandable;
};
enum frag_err frag_build_settings(struct frag_build *b,
                                  const struct frag_recorded_settings *s,
                                  struct frag_error *e) FRAG_MUST_CHECK;

/* A device exists although it has no entries; a note for the reader. */
enum frag_err frag_build_device(struct frag_build *b, uint32_t device,
                                struct frag_error *e) FRAG_MUST_CHECK;
enum frag_err frag_build_note(struct frag_build *b, const char *format, ...)
    FRAG_PRINTF(2, 3);

/* Infers, checks (frag_trace_check) and hands the trace over. opts as in
 * frag_trace_open. On error *out is untouched. The builder is still to be
 * closed. */
enum frag_err frag_build_finish(struct frag_build *b,
                                const struct frag_read_options *opts,
                                struct frag_trace **out,
                                struct frag_error *e) FRAG_MUST_CHECK;

FRAG_END_DECLS

#endif
