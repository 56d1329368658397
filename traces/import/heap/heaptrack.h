/* heaptrack.h - the state of the reader of heaptrack's data, and the calls
 * between its two source files. Private to traces/import/heap/. heaptrack.c
 * describes the format.
 */
#ifndef FRAG_TRACES_IMPORT_HEAP_HEAPTRACK_H
#define FRAG_TRACES_IMPORT_HEAP_HEAPTRACK_H

#include "traces/bytes/fields.h"
#include "traces/import/heap/calls.h"
#include "traces/trace.h"

enum { HEAPTRACK_FORMAT = 3, HEAPTRACK_FRAMES = 256 };

/* Frames of a code address, innermost first: its functions inlined and not. */
struct heaptrack_place {
    uint64_t first, count; /* rows of heaptrack.frames */
};

/* A t line. */
struct heaptrack_node {
    uint64_t place;  /* index in heaptrack.places */
    uint32_t parent; /* 1 + index of a node; 0: none */
    uint32_t stack;  /* 1 + the stack that begins here; 0: not built yet */
};

/* An a line: blocks of one size and one stack. */
struct heaptrack_kind {
    uint64_t bytes;
    uint32_t node; /* 1 + index of a node; 0: none */
    uint32_t live; /* how many of its blocks */
};

struct heaptrack {
    struct frag_source *source;
    struct calls calls;
    bool is_raw, is_attached;
    bool in_command; /* between the command and the line I after it */
    uint64_t format; /* of the file */

    uint32_t *strings; /* their numbers in the builder */
    uint64_t string_count, string_room;
    struct frag_frame *frames;
    uint64_t frame_count, frame_room;
    struct heaptrack_place *places;
    uint64_t place_count, place_room;
    struct heaptrack_node *nodes;
    uint64_t node_count, node_room;
    struct heaptrack_kind *kinds;
    uint64_t kind_count, kind_room;

    struct frag_frame stack[HEAPTRACK_FRAMES]; /* that is being built */
};

/* Reads the next number of a line. Returns false at the end of the line, and
 * sets *ok to false for a field that is no number. */
bool heaptrack_next(struct fields *rest, uint64_t *value, bool *ok);

/* Reads exactly `count` numbers. Returns false for a line with others. */
bool heaptrack_numbers(struct fields *rest, uint64_t *values, unsigned count);

/* Fails with CORRUPT: file, line, `expected`, and the line. */
enum frag_err heaptrack_malformed(const struct heaptrack *h,
                                  const char *expected, struct fields line);

/* These add the rest of an s line, an i line and a t line. CORRUPT, NOMEM. */
enum frag_err heaptrack_string(struct heaptrack *h, struct fields rest);
enum frag_err heaptrack_code(struct heaptrack *h, struct fields rest);
enum frag_err heaptrack_node(struct heaptrack *h, struct fields rest);

/* Sets *stack to the number of the stack that begins at a node; `node` is 1 +
 * its index, or 0 for the empty stack. NOMEM. */
enum frag_err heaptrack_stack(struct heaptrack *h, uint32_t node,
                              uint32_t *stack);

#endif
