/* import_torch.h - the shared declarations of the reader of PyTorch snapshots.
 * Private to traces/import/torch/.
 *
 * The schema (import_torch.c) names the dictionaries and lists that matter, and
 * their places. While a dictionary is read, its members go into a struct
 * object, by a table of its keys. When the dictionary is complete, the reader
 * checks it and passes it to the builder. The order of the keys does not
 * matter. Sources: allocator rules, 19, 20 and 22.
 */
#ifndef FRAG_TRACES_IMPORT_TORCH_IMPORT_TORCH_H
#define FRAG_TRACES_IMPORT_TORCH_IMPORT_TORCH_H

#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/grow.h"
#include "traces/import/torch/snapshot_conf.h"
#include "traces/importer.h"
#include "traces/live.h"
#include "traces/pickle/pickle.h"
#include "traces/torch_platforms.h"
#include "traces/torch_words.h"

/* clang-format off */
#define OCTAVES(X) \
    X(octave_0, "1") X(octave_1, "2") X(octave_2, "4") X(octave_3, "8") \
    X(octave_4, "16") X(octave_5, "32") X(octave_6, "64") X(octave_7, "128") \
    X(octave_8, "256") X(octave_9, "512") X(octave_10, "1024") \
    X(octave_11, "2048") X(octave_12, "4096") X(octave_13, "8192") \
    X(octave_14, "16384") X(octave_15, "32768")
/* clang-format on */

/* Every text with a meaning, once; the divisions in the order of their octaves.
 */
#define WORDS(X)                                          \
    TORCH_WORDS(X)                                        \
    X(active_awaiting_free, "active_awaiting_free")       \
    X(segments, "segments")                               \
    X(device_traces, "device_traces")                     \
    X(host_segments, "host_segments")                     \
    X(host_traces, "host_traces")                         \
    X(allocator_settings, "allocator_settings")           \
    X(external_annotations, "external_annotations")       \
    X(trace_alloc_overflowed, "trace_alloc_overflowed")   \
    X(conf, "PYTORCH_CUDA_ALLOC_CONF")                    \
    X(conf_of_xpu, "PYTORCH_ALLOC_CONF")                  \
    X(max_split_size, "max_split_size")                   \
    X(gc_threshold, "garbage_collection_threshold")       \
    X(expandable, "expandable_segments")                  \
    X(capture_reuse, "graph_capture_record_stream_reuse") \
    X(round_threshold, "max_round_threshold")             \
    X(cached_size, "max_cached_size")                     \
    X(divisions, "roundup_power2_divisions")              \
    X(compile_context, "compile_context")                 \
    X(policy, "fragsim: policy")                          \
    X(emptied, "fragsim: cache emptied")                  \
    X(emptied_before, "fragsim: empty_cache")             \
    X(user_metadata, "user_metadata")                     \
    X(changes, "fragsim_settings")                        \
    X(start, "fragsim_start")                             \
    X(settings, "settings")                               \
    X(limit, "limit")                                     \
    X(after, "calls_after")                               \
    OCTAVES(X)

enum word {
#define X(name, text) W_##name,
    WORDS(X)
#undef X
        WORD_COUNT
};

/* Each kind of dictionary or list, and the name of its kind torch_<name>. */
#define KINDS(X)                    \
    X(OTHER, other)                 \
    X(SNAPSHOT, snapshot)           \
    X(TRACES, traces)               \
    X(TRACE, trace)                 \
    X(HOST_TRACE, host_trace)       \
    X(ENTRY, entry)                 \
    X(FRAMES, frames)               \
    X(FRAME, frame)                 \
    X(SEGMENTS, segments)           \
    X(HOST_SEGMENTS, host_segments) \
    X(SEGMENT, segment)             \
    X(BLOCKS, blocks)               \
    X(BLOCK, block)                 \
    X(SETTINGS, settings)           \
    X(DIVISIONS, divisions)         \
    X(ANNOTATIONS, annotations)     \
    X(ANNOTATION, annotation)       \
    X(OVERFLOWS, overflows)         \
    X(START, start)                 \
    X(CHANGES, setting_changes)     \
    X(CHANGE, setting_change)

enum kind {
#define X(name, kind) K_##name,
    KINDS(X)
#undef X
        KIND_COUNT
};

#define X(name, kind) extern const struct pickle_kind torch_##kind;
KINDS(X)
#undef X

/* A key of a dictionary: the types of its value, and its slot in an object. */
struct field {
    uint16_t tags; /* sum of 1 << enum pickle_tag; 0: the key is ignored */
    uint8_t slot;
    uint8_t kind; /* of the value if it is a container */
    bool needed, may_be_negative;
};

#define WHOLE (1 << PICKLE_INT | 1 << PICKLE_UINT)
#define TEXT  (1 << PICKLE_TEXT)
#define PAIR  (1 << PICKLE_PAIR)
#define TRUTH (1 << PICKLE_BOOL)
#define DONE  (1 << PICKLE_DONE)
#define ANY   UINT16_MAX

/* The value of a key of any type, if it is no text. */
#define NO_TEXT UINT64_MAX

/* The keys of each dictionary that has an object, each [WORD_COUNT]. */
extern const struct field entry_fields[], frame_fields[], segment_fields[],
    block_fields[], settings_fields[], divisions_fields[], annotation_fields[],
    change_fields[];

enum { SLOTS = 16, DEVICES_MAX = 1024, FRAME_CACHE = 1 << 12 };

/* A dictionary that is being read. */
struct object {
    uint64_t value[SLOTS];
    uint32_t set;    /* bit `slot` is 1 if value[slot] was read */
    uint64_t where;  /* offset at which the dictionary begins */
    uint64_t number; /* dictionaries of this kind before it */
    uint32_t seen;   /* `set` of the dictionaries before it, united */
};

/* The evidence of which allocator wrote the snapshot. */
struct origin {
    bool seen[TORCH_PLATFORMS]; /* a frame is in it, or a key is its own */
    uint64_t padded; /* live blocks that only a request with 32 more bytes
                        explains */
    uint64_t plain;  /* live blocks with less than 32 bytes left */
    uint64_t large, aligned; /* requests of 2 MiB or more on a device whose
                                history maps memory; of these, those that
                                start at a multiple of 16 KiB */
    bool maps;               /* the current list of entries maps memory */
};

struct import {
    struct frag_source *source;
    struct frag_build *build;
    const struct frag_read_options *opts;
    struct pickle *pickle;

    const char *const *words;               /* [WORD_COUNT] */
    const struct pickle_kind *const *kinds; /* [KIND_COUNT] */
    const struct field *const *fields;      /* [KIND_COUNT]; NULL: no object */

    struct object objects[KIND_COUNT];
    uint32_t traces; /* lists of entries of devices so far; device k has list
                        number k */
    bool is_host;    /* the current list is that of pinned host memory */
    uint64_t most_entries; /* of a list of entries, unknown actions included */
    uint64_t unknown_requests; /* of host memory: their blocks are known only */
    /* Host memory that the program registered itself: the live ranges, and of
     * all of them the number and the bytes. */
    struct live registered;
    uint64_t registered_count;
    frag_size registered_bytes;
    bool has_entries, has_segments;
    uint64_t unknown_actions; /* entries that were left out */
    char unknown_action[48];  /* the action of the first of them */

    struct frag_snapshot_block *blocks; /* of the segment being read */
    uint64_t block_count, block_room;

    struct frag_frame *frames; /* with few duplicates */
    uint64_t frame_count, frame_room;
    uint32_t frame_cache[FRAME_CACHE]; /* 1 + index in frames, by hash */
    struct frag_frame *stack;          /* the stack that is being read */
    uint64_t stack_count, stack_room;

    uint32_t *strings; /* by the number of a text in the pickle: 1 + its number
                          in the builder; 0: none yet */
    uint64_t string_room;

    struct torch_settings settings;
    char *conf; /* the settings that the builder received; NULL: none yet */
    char differs[201]; /* the variable that differs from them; "": none */
    struct change_read {
        struct frag_setting_change x;
        uint64_t after, text; /* text: of the pickle */
        const char *found;    /* the text, of a change that the caller found */
        uint32_t device;
    } * changes; /* passed to the builder when the settings are known */
    uint64_t change_count, change_room;
    enum taken {
        TAKEN_NONE,
        TAKEN_ORDINARY,
        TAKEN_EXPANDABLE
    } taken[DEVICES_MAX], /* the kind of segment that a device took last */
        first_taken;
    struct toggle {
        uint32_t device;
        frag_time time; /* of the first segment of the new kind */
        bool expandable;
    } * toggles;
    uint64_t toggle_count, toggle_room;
    bool has_policy;     /* a policy of fragsim served the program */
    bool has_expandable; /* a segment is expandable, or an entry maps memory */
    struct origin origin;
};

extern const struct frag_importer frag_importer_torch;

/* Adds a text of a frame, an entry of the history, or a block of a segment, to
 * what is known of the origin. */
void origin_see_text(struct origin *o, const char *text, size_t length);
void origin_see_entry(struct origin *o, const struct frag_entry *entry);
void origin_see_block(struct origin *o, const struct frag_snapshot_block *b,
                      bool is_small);

/* The platform whose allocator wrote the snapshot. */
enum torch_platform_id origin_of(const struct import *in);

/* If the allocator was not that of PyTorch for CUDA, adds a note, and the rules
 * of its platform to the settings. Called when the snapshot was read. NOMEM. */
enum frag_err origin_apply(struct import *in, struct frag_error *e);

/* Adds what torch_platform_text writes to the settings of the snapshot, unless
 * they set them. If the snapshot has no settings, these are the defaults, with
 * expandable segments if it has such segments. NOMEM. */
enum frag_err settings_add_platform(struct import *in,
                                    enum torch_platform_id platform,
                                    frag_size padding, frag_size align,
                                    struct frag_error *e);

/* The settings for the builder, without their conf. */
struct frag_recorded_settings settings_recorded(const struct torch_settings *s);

/* Notes which kind of segment the entry takes. If it is not that of the segment
 * before, the program switched expandable_segments between the two. NOMEM. */
enum frag_err changes_see(struct import *in, uint32_t device,
                          const struct frag_entry *entry, struct frag_error *e);
/* Makes changes of these, with a note, or of those that the caller found,
 * unless the snapshot has changes or no settings: each lies before the first
 * segment of the new kind. Called before settings_finish. NOMEM. */
enum frag_err changes_find(struct import *in, struct frag_error *e);
/* Passes the changes to the builder. NOMEM. */
enum frag_err changes_finish(struct import *in, struct frag_error *e);

/* Passes the settings to the builder again: they were changed. NOMEM. */
enum frag_err settings_again(struct import *in, struct frag_error *e);

/* Adds a note if the settings in force differed from the variable, and
 * TORCH_FOLLOWS_KEY if there are changes. Called when the snapshot was read.
 * NOMEM. */
enum frag_err settings_finish(struct import *in, struct frag_error *e);

/* Whether the host's allocator makes blocks of such a size under the settings
 * that were read: a power of two up to the threshold. */
bool settings_round_to(const struct import *in, frag_size size);

/* Tells the builder which releases of PyTorch write snapshots with these keys,
 * and returns the first: N of 2.N; 0 if it is not known.
 */
uint32_t release_find(const struct import *in);

/* Objects: the callbacks of a pickle_kind. */
enum frag_err object_begin(void *user, uint8_t kind, struct frag_error *e);
enum frag_err object_add(void *user, uint8_t kind,
                         const struct pickle_value *items, size_t count,
                         struct frag_error *e);

/* The begin callback of a list that may occur once in a snapshot. */
enum frag_err list_begin_once(void *user, uint8_t kind, struct frag_error *e);

static inline bool object_has(const struct object *o, unsigned slot)
{
    return o->set >> slot & 1;
}

/* CORRUPT if a needed key is missing; the message names the first one. */
enum frag_err object_check(const struct import *in, enum kind kind,
                           struct frag_error *e);

/* The stack with the metadata of a request as its outermost frame, `text` being
 * a text of the pickle; the stack itself if it is empty. UINT32_MAX if the host
 * has no memory. */
uint32_t stack_with_metadata(struct import *in, uint32_t stack, uint64_t text);

/* Fails with CORRUPT: file, offset and number of the object, then `expected`,
 * the key, and `found`. */
enum frag_err object_bad(const struct import *in, enum kind kind,
                         const char *expected, enum word key, const char *found,
                         struct frag_error *e);

/* The value of the key time_us in ns, 0 if the key is missing. CORRUPT if the
 * value is too large. */
enum frag_err object_time(const struct import *in, enum kind kind,
                          unsigned slot, frag_time *time, struct frag_error *e);

/* The pool id in a slot; the default pool (0, 0) if the key is missing. */
struct frag_pool_id object_pool(const struct import *in, enum kind kind,
                                unsigned slot);

enum frag_err import_no_memory(const struct import *in, struct frag_error *e);

#endif
