/* build.h - the builder: makes a trace from recorded entries or from the events
 * of a script. Every importer and generator uses it.
 *
 * An importer passes the entries to the builder in file order. The builder
 * assigns slots, joins each free_requested with its free_completed and stores
 * the answers of the recorded allocator. At the end it infers, by the rules of
 * the allocator, what a recording omits: empty_cache calls, pools, and the
 * state before the first event. Its memory is the event columns and a table of
 * the live addresses.
 *
 * A function that returns NOMEM writes no message.
 */
#ifndef FRAG_TRACES_BUILD_BUILD_H
#define FRAG_TRACES_BUILD_BUILD_H

#include "traces/trace.h"

FRAG_BEGIN_DECLS

struct frag_build;

/* The kinds of entries in the log of a recorded allocator. They have the names
 * of PyTorch's trace entries. */
enum frag_entry_kind {
    FRAG_ENTRY_ALLOC,
    FRAG_ENTRY_FREE_REQUESTED,
    FRAG_ENTRY_FREE_COMPLETED,
    FRAG_ENTRY_SEGMENT_ALLOC,
    FRAG_ENTRY_SEGMENT_FREE,
    FRAG_ENTRY_SEGMENT_MAP,
    FRAG_ENTRY_SEGMENT_UNMAP,
    FRAG_ENTRY_OOM,
    FRAG_ENTRY_FAILED, /* a request that the device refused, in a program whose
                          allocator is not recorded; addr is not used */
    FRAG_ENTRY_EMPTY_CACHE, /* a call that returned unused segments, where the
                               log has it; addr and size are not used */
};

/* One entry of the log of a recorded allocator. */
struct frag_entry {
    enum frag_entry_kind kind;
    bool has_pool;   /* the entry states its pool (PyTorch 2.12 and later) */
    bool frees_on;   /* free_completed: `stream` is the stream on which the
                        client freed the block, which may be another one than
                        that of the alloc; false: `stream` is ignored */
    uint32_t stack;  /* from frag_build_stack; 0 if not recorded */
    frag_addr addr;  /* for oom: the free device memory in bytes */
    frag_size size;  /* bytes, from 1 to 2^63 - 1 */
    uint64_t stream; /* raw handle */
    frag_time time;  /* ns since 1970; 0 if not recorded */
    struct frag_pool_id pool; /* if has_pool */
};

/* A segment of the final snapshot. */
struct frag_snapshot_segment {
    frag_addr addr;
    frag_size size;
    uint64_t stream;
    struct frag_pool_id pool;
    bool is_small, is_expandable;
};

/* A block of the final snapshot. */
struct frag_snapshot_block {
    frag_addr addr; /* 0: directly after the previous block */
    frag_size size;
    frag_size requested; /* FRAG_SIZE_UNKNOWN if not recorded; of a block that
                            is not free, at least 1 */
    enum frag_block_state state;
};

/* Opens a builder without devices. `path` (copied) is for messages and for
 * frag_trace.path; `format` (borrowed, also by the trace) is the name of the
 * importer. NULL if the host has no memory. The caller closes the builder with
 * frag_build_close, also after frag_build_finish. */
struct frag_build *frag_build_open(const char *path, const char *format);
void frag_build_close(struct frag_build *b); /* NULL is fine */

/* Adds the next entry of a device. CORRUPT for a size of 0 or of 2^63 and more,
 * for an alloc at an address that is live, and for a second free of a block,
 * which may be detected only by frag_build_finish. The message contains
 * `where`, the position of the entry in the file (bytes or line). A free of an
 * address that no entry allocated shows that the block was live before the
 * recording, so the block is added to the initial state. NOMEM. */
enum frag_err frag_build_entry(struct frag_build *b, uint32_t device,
                               const struct frag_entry *entry, uint64_t where,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Adds bytes that were live before the first entry of the device and are never
 * freed, at unknown addresses: one block of the initial state. At most once for
 * a device. CORRUPT for a size of 0 or of 2^63 and more; NOMEM. */
enum frag_err frag_build_before(struct frag_build *b, uint32_t device,
                                frag_size size, uint64_t where,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* These two add the final snapshot of a device: each segment is followed by its
 * blocks, which must cover the segment without gap or overlap, in ascending
 * order. The snapshot may be added before or after the entries. CORRUPT if the
 * blocks do not cover their segment; `where` is as above. NOMEM. */
enum frag_err frag_build_segment(struct frag_build *b, uint32_t device,
                                 const struct frag_snapshot_segment *s,
                                 uint64_t where,
                                 struct frag_error *e) FRAG_MUST_CHECK;
enum frag_err frag_build_block(struct frag_build *b, uint32_t device,
                               const struct frag_snapshot_block *block,
                               uint64_t where,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Adds the boundary of a step or phase. frag_build_finish places it among the
 * events by its time. The name has `length` bytes. NOMEM. */
enum frag_err frag_build_mark(struct frag_build *b, uint32_t device,
                              enum frag_mark_kind kind, frag_time time,
                              const char *name, size_t length,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* Notes that a policy of fragsim served the device, not PyTorch's allocator.
 * Such a policy may return memory at any request, so returned memory is an
 * empty_cache call only where frag_build_emptied says so. NOMEM. */
enum frag_err frag_build_policy(struct frag_build *b, uint32_t device,
                                const char *name, size_t length,
                                struct frag_error *e) FRAG_MUST_CHECK;
/* The program called empty_cache at that time, in the clock of the entries.
 * Calls come in the order of their times. NOMEM. */
enum frag_err frag_build_emptied(struct frag_build *b, uint32_t device,
                                 frag_time time,
                                 struct frag_error *e) FRAG_MUST_CHECK;

/* Adds an event of a script, for CSV and the generators, instead of an entry.
 * The id is any 64-bit number; the builder assigns a slot to it. `bytes` is
 * used only for ALLOC, `stream` (a raw handle) only for ALLOC and
 * RECORD_STREAM. CORRUPT for an ALLOC of an id that is live, for any other use
 * of an id that is not live, and for any use but FREE after a FREE_REQUESTED;
 * `where` is as above. NOMEM. */
enum frag_err frag_build_event(struct frag_build *b, uint32_t device,
                               enum frag_op op, uint64_t id, frag_size bytes,
                               uint64_t stream, uint64_t where,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* These two store a string or a stack, each distinct one only once, and return
 * its index in frag_trace.strings or its stack number. UINT32_MAX if the host
 * has no memory. A string ends at its first 0 or after `length` bytes. */
uint32_t frag_build_string(struct frag_build *b, const char *text,
                           size_t length);
uint32_t frag_build_stack(struct frag_build *b, const struct frag_frame *frames,
                          size_t count);
/* The stack with one more frame, the outermost. */
uint32_t frag_build_outer(struct frag_build *b, uint32_t stack,
                          struct frag_frame frame);

enum { FRAG_RECORDED_DIVISIONS = 16 }; /* of roundup_power2_divisions */

/* Settings of the recorded allocator: all of them as a string, and again those
 * that the inference needs. */
struct frag_recorded_settings {
    const char *conf;    /* text of PYTORCH_CUDA_ALLOC_CONF, copied; NULL if not
                            recorded */
    double gc_threshold; /* garbage_collection_threshold, a fraction of the
                            memory limit; 0: off */
    frag_size max_split; /* max_split_size in bytes: no block of at least this
                            size is split; 0 or UINT64_MAX: no limit */
    uint64_t divisions[FRAG_RECORDED_DIVISIONS]; /* of each octave from 1 MiB */
    frag_size pinned_returned; /* the host's allocator returns a block of so
                                  many bytes or more when it is freed: 1 +
                                  pinned_max_cached_size; 0: no block */
    frag_size large_segment;   /* large_segment_size; 0: PyTorch's default */
    frag_size padding; /* bytes added to each request before it is rounded */
    bool expandable;   /* expandable_segments */
};

/* Stores the settings. NOMEM; then the earlier settings are unchanged. */
enum frag_err frag_build_settings(struct frag_build *b,
                                  const struct frag_recorded_settings *s,
                                  struct frag_error *e) FRAG_MUST_CHECK;

/* Adds a change of the settings or of the limit; its event is not used. It lies
 * before the last `after` calls of the device, which are requests, failed ones
 * included, and frees, and requests only for a change that was found;
 * UINT64_MAX: among the events by its time, at the start if that is 0. `now`:
 * the settings from then on, without their conf. Changes come in their order.
 * NOMEM. */
enum frag_err frag_build_change(struct frag_build *b, uint32_t device,
                                const struct frag_setting_change *change,
                                const struct frag_recorded_settings *now,
                                uint64_t after,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* Stores frag_trace.releases: the second numbers of the first and the last
 * release of PyTorch 2; UINT32_MAX as the last one stands for all later ones.
 * first <= last. */
void frag_build_releases(struct frag_build *b, uint32_t first, uint32_t last);

/* Adds a device that may have no entries. */
enum frag_err frag_build_device(struct frag_build *b, uint32_t device,
                                struct frag_error *e) FRAG_MUST_CHECK;
/* Adds a sentence to frag_trace.notes. NOMEM. */
enum frag_err frag_build_note(struct frag_build *b, const char *format, ...)
    FRAG_PRINTF(2, 3);

/* A sentence that counts something. */
struct frag_build_count {
    uint64_t count;
    const char *words; /* after the number */
};
/* Adds a sentence for each of `n` rows whose count is not 0. NOMEM. */
enum frag_err frag_build_counts(struct frag_build *b,
                                const struct frag_build_count *rows, size_t n);

/* Infers what the entries omit, checks the result with frag_trace_check and
 * moves the trace to *out. opts is as in frag_trace_open. The builder is then
 * empty, and the caller closes it. CORRUPT, INVALID (a stack frame with an
 * unknown string), NOMEM; on error *out is unchanged. */
enum frag_err frag_build_finish(struct frag_build *b,
                                const struct frag_read_options *opts,
                                struct frag_trace **out,
                                struct frag_error *e) FRAG_MUST_CHECK;

FRAG_END_DECLS

#endif
