/* stage.h - a stage is one layer of an input: the file itself, or the unpacker
 * of the stage below it. Private to traces/bytes/.
 *
 * A stage has a window: its next bytes, at[0] to at[count - 1]. fill() appends
 * bytes to the window until the stage ends. The window of a mapped file is the
 * whole file from the start.
 */
#ifndef FRAG_TRACES_BYTES_STAGE_H
#define FRAG_TRACES_BYTES_STAGE_H

#include "traces/base.h"

struct stage;

struct stage_ops {
    const char *name; /* "gzip": for messages */

    /* The offset that an error names depends on `room` of the calls of fill(),
     * so only the reader may call it, as it always did. */
    bool needs_reader;

    /* Returns whether a stream that starts with these bytes has this form. */
    bool (*recognize)(const unsigned char *bytes, size_t count);

    size_t size; /* of the state, which is zeroed at first */
    /* Prepares the state; if init fails, fini is called all the same. init is
     * NULL if there is nothing to do. */
    enum frag_err (*init)(struct stage *s, struct frag_error *e);
    void (*fini)(struct stage *s);

    /* Writes up to `room` bytes to `to` and their number to *made. *made is 0
     * only if s->ended is set. On error, *made is the number of bytes before
     * the error. */
    enum frag_err (*fill)(struct stage *s, unsigned char *to, size_t room,
                          size_t *made, struct frag_error *e);
};

struct stage {
    const struct stage_ops *ops;
    struct stage *below;     /* NULL for the file */
    const char *name;        /* of the file, for messages; borrowed */
    void *state;             /* of ops->size bytes; of the file: the source */
    unsigned char *buffer;   /* STAGE_BUFFER bytes; NULL until needed */
    const unsigned char *at; /* the window */
    size_t count;            /* bytes of the window */
    uint64_t used;           /* bytes skipped so far: the offset of `at` */
    uint64_t made;           /* bytes of stage_fill so far */
    bool ended;              /* the window is the end of the stage */
    bool open_ended; /* what is unpacked marks its own end, and other bytes
                        follow it */
};

enum { STAGE_BUFFER = 1 << 18 }; /* bytes */

/* The packed forms. */
extern const struct stage_ops unpack_gzip, unpack_xz, unpack_zstd, unpack_zip;

/* Calls fill(). CORRUPT if the stage has now unpacked more bytes than
 * frag_source_most allows for the file below it. */
enum frag_err stage_fill(struct stage *s, unsigned char *to, size_t room,
                         size_t *made, struct frag_error *e);
/* Extends the window to at least `want` bytes (at most STAGE_BUFFER / 2), fewer
 * only at the end of the stage. CORRUPT, IO, NOMEM. */
enum frag_err stage_peek(struct stage *s, size_t want, struct frag_error *e);
/* Removes the first `used` bytes, at most count, from the window. */
void stage_skip(struct stage *s, size_t used);

#endif
