/* holders.h - what holds the memory of a device at one moment: the live blocks,
 * in groups. A group is all blocks of one site, size, age, and so on.
 *
 * A block that the program has freed while another stream may still use it
 * (pending) holds memory too, so it counts.
 */
#ifndef FRAG_SIM_ANSWERS_HELD_HOLDERS_H
#define FRAG_SIM_ANSWERS_HELD_HOLDERS_H

#include <stdio.h>

#include "sim/answers/held/memory_classes.h"
#include "sim/answers/moment.h"
#include "traces/steps/steps.h"

/* The ways to group blocks, and their words on the command line. */
#define HOLDERS_BY(X)       \
    X(SITE, "site")         \
    X(FUNCTION, "function") \
    X(CALLER, "caller")     \
    X(STACK, "stack")       \
    X(SIZE, "size")         \
    X(CLASS, "class")       \
    X(AGE, "age")           \
    X(POOL, "pool")         \
    X(STREAM, "stream")     \
    X(METADATA, "metadata")

enum holders_by {
#define X(name, text) HOLDERS_BY_##name,
    HOLDERS_BY(X)
#undef X
        HOLDERS_BY_COUNT
};

extern const char *const holders_by_names[HOLDERS_BY_COUNT];

struct holders_options {
    enum holders_by by;
    const char *filter; /* only blocks with a frame whose function, or whose
                           file and line as "FILE:LINE", contains this text;
                           NULL: all blocks */
    bool short_paths;   /* sites and functions of files with the same last part
                           of the path are one group */
    bool steps;         /* find the steps, for the ages of the groups */
};

struct holder {
    char *name;               /* short, for readers; not printable yet */
    char *key;                /* differs between any two groups */
    frag_size bytes, pending; /* of its blocks; bytes include pending */
    uint64_t blocks;
    uint64_t oldest, newest; /* events of ALLOCs */
    uint32_t stack;          /* of its oldest block */
};

struct holders {
    const struct frag_trace *trace; /* borrowed, as device */
    const struct frag_device_trace *device;
    enum holders_by by;
    uint64_t event;          /* the moment */
    uint8_t *classes;        /* of the blocks, by event; NULL: not grouped so */
    bool has_stacks;         /* the device has a recorded stack */
    struct frag_steps steps; /* count 0 if they were not searched or found */
    frag_size requested, pending; /* of all live blocks at the moment */
    uint64_t live;                /* number of them */
    frag_size failed;     /* bytes of the request at the event, if the recorded
                             allocator could not meet it: they are not held; else
                             0 */
    frag_size bytes;      /* of the blocks that pass the filter */
    uint64_t blocks;      /* number of them */
    struct holder *items; /* most bytes first, then in the order of the names */
    uint64_t count;
};

/* How a recording like this one has stacks: the end of a sentence. */
const char *holders_stacks_remedy(const struct frag_trace *t);

/* The grouping that shows most: by site, or by size without stacks. */
enum holders_by holders_best(const struct frag_trace *t,
                             const struct frag_device_trace *d);

/* Groups the blocks that are live directly after the event. The caller closes
 * *out before the trace. INVALID if there is no such event, or if the grouping
 * or the filter needs stacks that the trace lacks; NOMEM; on
 * error *out need not be closed. */
enum frag_err holders_find(const struct frag_trace *t,
                           const struct frag_device_trace *d, uint64_t event,
                           const struct holders_options *options,
                           struct holders *out,
                           struct frag_error *e) FRAG_MUST_CHECK;
void holders_close(struct holders *h);

/* Whether nearly all bytes lie in the first group, so that another grouping
 * tells more: a program that only calls a library. */
bool holders_is_one(const struct holders *h);

/* The age of a block at the moment in steps: the number of boundaries of steps
 * since the event. UINT64_MAX if it was allocated before the first step, or if
 * no steps are known. */
uint64_t holders_age_steps(const struct holders *h, uint64_t event);

/* The age in seconds; NAN if it was allocated before the recording, or if no
 * times were recorded. */
double holders_age_seconds(const struct holders *h, uint64_t event);

/* Writes one line for each distinct stack of the groups, "a;b;c BYTES", as
 * flame graphs take it. The groups must be those of HOLDERS_BY_STACK. */
void holders_put_folded(const struct holders *h, FILE *out);

#endif
