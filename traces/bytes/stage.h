/* stage.h - one layer of an input: the file itself, or what unpacks the layer
 * below it. Private to traces/bytes/.
 *
 * A stage shows a window of its bytes, at[0 .. count), which grows by fill()
 * until the stage has ended. A mapped file is one window from the start.
 */
#ifndef FRAG_TRACES_BYTES_STAGE_H
#define FRAG_TRACES_BYTES_STAGE_H

#include "traces/base.h"

struct stage;

struct stage_ops {
    const char *name; /* "gzip": for messages */

    /* Whether a stream that starts with these bytes is of this form. */
    bool (*recognize)(const unsigned char *bytes, size_t count);

    enum frag_err (*init)(struct stage *s, struct frag_error *e);
    void (*fini)(struct stage *s);

    /* Writes up to room bytes to `to` and says how many; 0 of them only with
     * s->ended set. */
    enum frag_err (*fill)(struct stage *s, unsigned char *to, size_t room,
                          size_t *made, struct frag_error *e);
};

struct stage {
    const struct stage_ops *ops;
    struct stage *below; /* NULL for the file */
    const char *name;    /* of the file; borrowed */
    void *state;         /* of ops */
    unsigned char *buffer;
    const unsigned char *at;
    size_t count;
    uint64_t used; /* bytes skipped so far: the offset of `at` */
    bool ended;    /* nothing comes after the window */
};

enum { STAGE_BUFFER = 1 << 18 };

/* The packed forms. */
extern const struct stage_ops unpack_gzip, unpack_xz, unpack_zstd, unpack_zip;

/* Makes at least want <= STAGE_BUFFER / 2 bytes visible, fewer only at the end
 * of the stage. CORRUPT, IO, NOMEM. */
enum frag_err stage_peek(struct stage *s, size_t want, struct frag_error *e);
void stage_skip(struct stage *s, size_t used); /* <= count */

#endif
