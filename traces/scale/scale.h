/* scale.h - how the requests of a job depend on its batch size, learned from
 * recordings of the same program at two or more batch sizes, and the trace that
 * the program would make at another batch size.
 *
 * The recording at the largest batch is the template. Each of its requests is
 * matched with a request of every other recording, by order, size and life. The
 * size of a matched request is a function of the batch: a line through two
 * recordings; through more, the line that fits them all, or else the line
 * through the two nearest. A trace at another batch size has the events of the
 * template, with these sizes.
 *
 * Some requests do not follow a line. A library may use another algorithm at
 * another batch size, which needs another workspace, or none. Whether two sizes
 * of a workspace belong to one algorithm cannot be told from them, and a line
 * through the sizes of two algorithms is far off. So a workspace, which is a
 * block that the very next event frees, follows a line only if three recordings
 * confirm it. Otherwise it grows in proportion to the batch, and so does every
 * request whose sizes cannot be those of one algorithm. A request without a
 * partner gets the size of requests that are as large as it in the template and
 * have partners; failing that, it grows in proportion too. struct
 * scale_requests says how many of each kind there are.
 */
#ifndef FRAG_TRACES_SCALE_SCALE_H
#define FRAG_TRACES_SCALE_SCALE_H

#include "traces/steps/step_blocks.h"

/* A recording of one device; borrowed. */
struct scale_recording {
    uint64_t batch; /* at least 1 */
    const struct frag_device_trace *device;
    const char *path; /* for messages */
};

/* The growth of the size of a request: it does not grow; it is a line; it
 * is proportional to the square of the batch; its partners have sizes that tell
 * nothing reliable; it has no partner. */
#define SCALE_KINDS(X)      \
    X(CONSTANT, "constant") \
    X(GROWING, "growing")   \
    X(SQUARE, "quadratic")  \
    X(CHANGED, "uncertain") \
    X(ALONE, "unmatched")

enum scale_kind {
#define X(name, text) SCALE_##name,
    SCALE_KINDS(X)
#undef X
        SCALE_KIND_COUNT
};

extern const char *const scale_kind_names[SCALE_KIND_COUNT];

/* The requests of the template of one kind. */
struct scale_requests {
    uint64_t count;
    frag_size bytes;      /* in the template; a sum over all requests */
    frag_size peak_bytes; /* of those that are live at its peak */
};

/* Sizes that a request may have instead of the predicted one. */
enum scale_law {
    SCALE_LAW_SHARE,  /* in proportion to the batch, from the template */
    SCALE_LAW_FIRST,  /* the same from the smallest recording that has it */
    SCALE_LAW_LINE,   /* a line through these two, unless the size falls */
    SCALE_LAW_SAME,   /* as in the nearest recording at no larger batch, or
                         else the smallest that has it */
    SCALE_LAW_ABSENT, /* 1 byte */
    SCALE_LAW_COUNT
};

/* Other sizes for all requests whose sizes are not known for sure: those that
 * are uncertain, those that have no partner and are like no others, and
 * workspaces that grow; each if it has at least 512 bytes in the template. A
 * workspace with exactly as many bytes a sample in every recording is taken for
 * a tensor, and known: libraries add aligned parts to theirs. */
struct scale_guess {
    enum scale_law law;
    double factor;    /* of the size that follows from the law */
    const char *text; /* what the sizes are then */
};

/* Guesses that together show how much a peak depends on these sizes. The laws
 * bound what a library may choose; the factors show what a small difference
 * does, because a block that is a little too large for a free block takes a
 * new segment. */
enum { SCALE_GUESSES = 6 };
extern const struct scale_guess scale_guesses[SCALE_GUESSES];

struct scaling {
    struct scale_recording *recordings; /* ascending by batch */
    size_t count;
    const struct frag_device_trace *template; /* that of the largest batch */
    struct blocks blocks;                     /* of the template */
    frag_size *sizes; /* of block b in recording r: [r * blocks.count + b];
                         0: no partner */
    uint8_t *kind;    /* enum scale_kind of each block */
    uint32_t *like;   /* the block whose size is used: the block itself, or one
                         that is as large in the template */
    struct scale_requests requests[SCALE_KIND_COUNT];
    struct scale_requests guessed; /* of any kind, to which guesses apply */
};

/* The size of a request as a function of the batch, near one batch size. */
struct scale_size {
    frag_size bytes;
    double per_sample; /* bytes by which it grows for one more sample */
};

/* Matches the requests of all recordings. The caller closes *out.
 * INVALID if there are fewer than two recordings, if two have the same batch
 * size, if one has no request, if they are too unlike to be compared, if fewer
 * than half of the requests of the shortest one have partners of plausible
 * sizes, or if no size grows with the batch; NOMEM. On error *out need not be
 * closed. */
enum frag_err scale_open(const struct scale_recording *recordings, size_t count,
                         struct scaling *out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void scale_close(struct scaling *s);

/* The size of a block of the template at a batch of at least 1. At least 1.
 * guess: NULL for the prediction. */
struct scale_size scale_at(const struct scaling *s, uint64_t block,
                           uint64_t batch, const struct scale_guess *guess);

/* A trace for a batch size. */
struct scaled {
    struct frag_device_trace device; /* borrows all columns but the sizes */
    bool recorded; /* it is the recording at this batch size, as it is */
    uint64_t *bytes;
};

/* Makes the trace for a batch size; guess: NULL for the prediction. It has no
 * recorded answers, unless it is itself a recording, which no guess changes.
 * The caller closes *out before the scaling. INVALID if the batch is 0 or so
 * large that a size has no room in 63 bits; NOMEM; on error *out need not be
 * closed. */
enum frag_err scale_make(const struct scaling *s, uint64_t batch,
                         const struct scale_guess *guess, struct scaled *out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void scaled_close(struct scaled *s);

#endif
