/* export_entries.h - the parts of a PyTorch snapshot, written one after the
 * other into a pickle. Private to sim/export/.
 *
 * The order of the file: settings, annotations, the entries of each device
 * (entries_begin), the segments (segments_begin), the notes. The entries come
 * first so that a replay can write them while it runs.
 */
#ifndef FRAG_SIM_EXPORT_EXPORT_ENTRIES_H
#define FRAG_SIM_EXPORT_EXPORT_ENTRIES_H

#include "sim/export/formats.h"
#include "sim/export/pickler.h"
#include "traces/torch_words.h"

/* Every text with a meaning. */
#define SNAPSHOT_WORDS(X)               \
    TORCH_WORDS(X)                      \
    X(allocated_size, "allocated_size") \
    X(active_size, "active_size")       \
    X(large, "large")

enum snapshot_word {
#define X(name, text) S_##name,
    SNAPSHOT_WORDS(X)
#undef X
        S_WORDS
};

/* A snapshot that is being written. */
struct snapshot {
    struct pickler pickler;
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    const char *policy;      /* whose run it is; NULL: that of the recording */
    uint32_t words[S_WORDS]; /* memo numbers */
    uint32_t *strings;       /* [trace->string_count]: memo numbers */
    uint32_t *stacks;        /* [trace->stack_count]: memo numbers */
    /* The changes of settings, if the settings follow them: [change_count], the
     * calls before each (traces/import/torch/snapshot_changes.c); NULL: they
     * are not written. */
    uint64_t *changes;
    uint64_t change, calls; /* changes, and calls, so far */
    char *conf;
    uint32_t empty;    /* memo number of the stack without frames */
    uint64_t outer[2]; /* of the open lists, for pickler_list_end */
};

/* One entry of the history. */
struct snapshot_entry {
    enum snapshot_word action; /* S_alloc to S_oom */
    frag_addr addr;            /* for oom: the free bytes of the device */
    frag_size size;
    frag_stream stream;
    frag_pool pool;
    uint64_t event; /* its time and stack are those of the event; the number of
                       events: it has no stack */
};

struct snapshot_segment {
    frag_addr addr;
    frag_size size, allocated, active;
    frag_stream stream;
    frag_pool pool;
    bool is_small, is_expandable;
};

struct snapshot_block {
    frag_size size;
    frag_size requested;      /* FRAG_SIZE_UNKNOWN: not written */
    enum snapshot_word state; /* S_inactive and so on */
    uint64_t asked;           /* event whose stack it has; FRAG_NEVER: none */
    frag_addr addr;
};

/* Begins the file and writes all that precedes the entries. `conf` holds the
 * settings of the allocator; NULL: they are not written. `policy` is as in the
 * struct. NOMEM; then nothing need be freed. */
enum frag_err snapshot_begin(struct snapshot *s, const struct frag_trace *t,
                             const struct frag_device_trace *d,
                             const char *policy, const char *conf,
                             FILE *out) FRAG_MUST_CHECK;
void snapshot_entry(struct snapshot *s, const struct snapshot_entry *e);
/* Ends the entries and begins the list of segments. */
void snapshot_segments(struct snapshot *s);
/* Begins a segment; its blocks follow in the order of their addresses and cover
 * it without gap or overlap. */
void snapshot_segment_begin(struct snapshot *s,
                            const struct snapshot_segment *g);
void snapshot_block(struct snapshot *s, const struct snapshot_block *b);
void snapshot_segment_end(struct snapshot *s);
/* Ends the segments and the file. */
void snapshot_end(struct snapshot *s, const struct export_notes *notes);
/* Frees the tables; after snapshot_begin, at any time. */
void snapshot_free(struct snapshot *s);

#endif
