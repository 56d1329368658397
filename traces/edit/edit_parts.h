/* edit_parts.h - what the files of traces/edit share: an edit as it was read,
 * the device that it reads and the device that it writes. Private to
 * traces/edit/.
 */
#ifndef FRAG_TRACES_EDIT_EDIT_PARTS_H
#define FRAG_TRACES_EDIT_EDIT_PARTS_H

#include "traces/build/build_device.h"
#include "traces/edit/edit.h"
#include "traces/steps/step_blocks.h"
#include "traces/steps/steps.h"

/* ---- an edit, as it was read ---- */

/* The keys of edits; edit_keys.c describes each. */
enum edit_key {
    /* These select requests; a request must match all keys of an edit. */
    KEY_DEVICE,
    KEY_STREAM,
    KEY_POOL,
    KEY_MIN,
    KEY_MAX,
    KEY_EVENTS,
    KEY_STEPS,
    KEY_SECONDS,
    KEY_MARK,
    KEY_FACTOR,
    KEY_TIMES,
    KEY_EARLIER,
    KEY_LATER,
    KEY_AT,
    KEY_EVERY,
    KEY_EVERY_STEPS,
    KEY_TO,
    KEY_FROM,
    KEY_CHANGE,
    KEY_LIMIT,
    KEY_SITE, /* these two extend to the end: their texts may hold commas */
    KEY_SET,
    KEY_COUNT
};

#define EDIT_HAS(key) (1u << (key))
#define EDIT_SELECT                                                     \
    (EDIT_HAS(KEY_DEVICE) | EDIT_HAS(KEY_STREAM) | EDIT_HAS(KEY_POOL) | \
     EDIT_HAS(KEY_MIN) | EDIT_HAS(KEY_MAX) | EDIT_HAS(KEY_SITE))

enum { EDIT_LIST = 16 }; /* members of a list such as 0+7 */

struct edit_value {
    uint64_t first, last; /* of a range; a number or size is `first`; a choice
                             is the index of its word */
    double low, high;     /* the same for seconds and factors */
    uint64_t list[EDIT_LIST], owners[EDIT_LIST]; /* streams; pools */
    unsigned count;
    const char *text; /* of a text; points into the edit */
};

struct edit_kind;

struct edit {
    const struct edit_kind *kind;
    char *text;     /* as the user wrote it */
    char *storage;  /* the texts of the values */
    uint32_t given; /* EDIT_HAS of each key that was given */
    struct edit_value values[KEY_COUNT];
};

static inline bool edit_has(const struct edit *edit, enum edit_key key)
{
    return edit->given & EDIT_HAS(key);
}

/* Reads one edit, which ends at text[length]. */
enum frag_err edit_read(const char *text, size_t length, struct edit *out,
                        struct frag_error *e) FRAG_MUST_CHECK;

/* ---- reading and writing devices ---- */

/* The making of a new trace by one edit. */
struct making {
    const struct edit *edit;
    const struct frag_trace *trace; /* the input */
    struct frag_build *build;       /* the strings, stacks and notes */
    uint8_t *sites; /* for each stack of `trace`: whether it matches site=;
                       NULL: site= is not given */
    uint64_t changed, total; /* what the note of the edit reports */
    bool loses_start;        /* a device had a start layout that is not kept */
    struct frag_error *error;
};

/* A device whose events an edit reads. */
struct edit_source {
    const struct frag_device_trace *device;
    struct blocks blocks;
    uint32_t *slot;    /* of each block, in the output; UINT32_MAX: none */
    uint32_t *stacks;  /* in the output, for each stack; UINT32_MAX: not yet */
    uint32_t *pools;   /* in the output, for each pool */
    uint64_t mark;     /* the next mark */
    uint64_t change;   /* the next change of settings */
    uint64_t left_out; /* 1 + the change that is left out; 0: none */
    frag_time shift;   /* added to all times, modulo 2^64 */
};

/* The device that an edit writes. */
struct edit_track {
    struct making *making;
    struct device_build *d; /* of making->build */
    bool has_time, has_stack;
    uint64_t recorded; /* events that are not `added`; FRAG_NEVER: all */
    bool begins_later; /* the first events of the input are left out */
};

/* One device of the input. */
struct edit_job {
    struct making *making;
    const struct edit *edit;
    struct edit_source source;
    struct edit_track track;
};

/* An edit by its name. `keys` may be given, `needs` must be, and exactly one of
 * `choice`, unless that is 0. `run` writes the events of one device. `counted`
 * says what making.changed counts, of making.total. `limit` says where the
 * result stops; NULL: nowhere. */
struct edit_kind {
    const char *name, *summary, *example, *counted, *limit;
    uint32_t keys, needs, choice;
    enum frag_err (*run)(struct edit_job *job);
};

/* The kind of text that a value is. */
enum edit_form {
    FORM_COUNT,   /* a whole number above 0 */
    FORM_SIZE,    /* bytes above 0 */
    FORM_FACTOR,  /* a number above 0 */
    FORM_RANGE,   /* A..B, A.. or ..B, of whole numbers */
    FORM_SECONDS, /* the same, of seconds */
    FORM_LIST,    /* handles, separated by + */
    FORM_POOL,    /* OWNER:NUMBER */
    FORM_POOLS,   /* the same, separated by + */
    FORM_CHOICE,  /* one word of `choices` */
    FORM_TEXT
};

struct edit_key_row {
    const char *name, *value, *meaning;
    enum edit_form form;
    const char *choices; /* of FORM_CHOICE: "step-begin|step-end" */
};

extern const struct edit_kind edit_kinds[]; /* ended by a NULL name */
extern const struct edit_key_row edit_keys[KEY_COUNT];

/* The words of at=, in the order of the choices. */
enum { AT_STEP_BEGIN, AT_STEP_END };

/* Opens a device for reading; `track` is the device that its events are written
 * to. NOMEM, INVALID. source_close releases it, on error too. */
enum frag_err source_open(struct edit_source *s,
                          const struct frag_device_trace *device,
                          struct edit_track *track) FRAG_MUST_CHECK;
void source_close(struct edit_source *s);

/* Prepares the slots and marks for another pass over the source. */
void source_rewind(struct edit_source *s);

/* Drops the pools that no event uses; the start layout of `keeps` (NULL: none)
 * uses some, too. NOMEM. */
enum frag_err track_finish(struct edit_track *track,
                           const struct edit_source *keeps) FRAG_MUST_CHECK;

/* Whether the recorded layout at the start of the source is that of the track,
 * too. */
bool start_stays(const struct edit_track *track, const struct edit_source *s);
/* Copies the layout to a finished device. NOMEM. */
enum frag_err start_copy(const struct frag_device_trace *from,
                         struct frag_device_trace *to,
                         struct frag_trace *t) FRAG_MUST_CHECK;

/* The events of the track so far. */
static inline uint64_t track_count(const struct edit_track *track)
{
    return track->d->events.count;
}

/* Appends event i of the source. An event whose block has no slot in the output
 * is skipped. NOMEM. */
enum frag_err track_put(struct edit_track *track, struct edit_source *s,
                        uint64_t i) FRAG_MUST_CHECK;
/* Appends an event that no source has: EMPTY_CACHE, or the FREE of a slot. It
 * has the time of the event before it. */
enum frag_err track_add(struct edit_track *track, enum frag_op op,
                        uint32_t slot) FRAG_MUST_CHECK;
/* The appended event has the time of the event before it. */
void track_move_time(struct edit_track *track);
/* Appends the FREEs of all live blocks. */
enum frag_err track_free_all(struct edit_track *track) FRAG_MUST_CHECK;
/* Appends the marks of the source that lie before event i, and those directly
 * before it; and the changes of settings. */
enum frag_err track_marks(struct edit_track *track, struct edit_source *s,
                          uint64_t i) FRAG_MUST_CHECK;
/* Appends a change of settings or of the limit, with that text; NULL: it has
 * none. NOMEM. */
enum frag_err track_change(struct edit_track *track, struct edit_source *s,
                           const struct frag_setting_change *change,
                           const char *text) FRAG_MUST_CHECK;
/* The text of a change of settings; NULL: it is one of the limit. */
static inline const char *change_given(const struct frag_device_trace *d,
                                       const struct frag_setting_change *x)
{
    return x->kind == FRAG_CHANGE_SETTINGS ? d->strings[x->text] : NULL;
}
/* Appends all events and marks of the source. */
enum frag_err track_all(struct edit_track *track,
                        struct edit_source *s) FRAG_MUST_CHECK;

/* ---- selecting ---- */

/* Checks that what the edit selects by exists in the trace, and fills
 * making->sites. INVALID, NOMEM. */
enum frag_err select_open(struct making *m) FRAG_MUST_CHECK;
void select_close(struct making *m);
/* Whether the edit selects the request of event i, an ALLOC. */
bool select_has(const struct edit_job *job, uint64_t i);
/* Whether the edit selects the block that event i uses. */
bool select_has_block(const struct edit_job *job, uint64_t i);

/* Finds the steps of the source. INVALID if it has none. The caller closes
 * them. */
enum frag_err edit_steps(const struct edit_job *job,
                         struct frag_steps *out) FRAG_MUST_CHECK;

/* ---- the edits, one device at a time ---- */

enum frag_err run_slice(struct edit_job *job);
enum frag_err run_keep(struct edit_job *job);
enum frag_err run_drop(struct edit_job *job);
enum frag_err run_scale(struct edit_job *job);
enum frag_err run_pool(struct edit_job *job);
enum frag_err run_free(struct edit_job *job);
enum frag_err run_empty_cache(struct edit_job *job);
enum frag_err run_no_empty_cache(struct edit_job *job);
enum frag_err run_repeat(struct edit_job *job);
enum frag_err run_settings(struct edit_job *job);
enum frag_err run_no_settings(struct edit_job *job);

/* INVALID with "edit "TEXT": MESSAGE". */
enum frag_err edit_fail(const struct making *m, const char *format, ...)
    FRAG_PRINTF(2, 3);

#endif
