/* pickle.h - reads a Python pickle of protocol 2 to 5 as a stream.
 *
 * The reader knows the opcodes that build plain values and no others, so a
 * hostile file cannot run code. The reader builds no tree. The caller describes
 * in a schema which dictionaries and lists matter, by their place, and receives
 * the members of each one as soon as they are read. The reader forgets complete
 * containers. It skips everything that the schema does not name.
 *
 * Memory: the distinct texts, a code of 4 bytes for each memoized value, and
 * the values of lists that are not complete.
 *
 * Python's module pickletools documents the opcodes.
 */
#ifndef FRAG_TRACES_PICKLE_PICKLE_H
#define FRAG_TRACES_PICKLE_PICKLE_H

#include "traces/bytes/source.h"

enum pickle_tag {
    PICKLE_OTHER, /* n values that no schema uses */
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,  /* n, as int64_t */
    PICKLE_UINT, /* n, at least 2^63 */
    PICKLE_HUGE, /* an integer of more than 64 bits */
    PICKLE_FLOAT,
    PICKLE_TEXT,   /* n: its number; see pickle_text() */
    PICKLE_PAIR,   /* a tuple of two integers; see pickle_pair() */
    PICKLE_DONE,   /* n complete containers of `kind` */
    PICKLE_RESULT, /* a complete container of a kind with `keeps`; n is the
                    *result of its seal() */
    PICKLE_SEEN,   /* a reference to a container without `keeps` */
    PICKLE_LIST,   /* an open list; never passed to the caller */
    PICKLE_DICT,   /* an open dictionary; never passed to the caller */
    PICKLE_MARK,   /* a MARK; never passed to the caller */
};

struct pickle_value {
    uint8_t tag;   /* enum pickle_tag */
    uint8_t kind;  /* of a container */
    uint32_t slot; /* of an open container: 1 + its memo number; 0: none */
    union {
        uint64_t n;
        double f;
    };
};

enum pickle_shape { PICKLE_IS_LIST, PICKLE_IS_DICT };

enum { PICKLE_KINDS = 32 }; /* upper bound on the kinds of a schema */

/* A member of a dictionary whose value is a container. */
struct pickle_member {
    uint32_t word; /* the key, an index in the schema's words */
    uint8_t kind;  /* 0 ends the array */
};

/* A kind of container. The callbacks may be NULL. The reader calls them in the
 * order begin, add (any number of times), seal. No two containers of one kind
 * are open at the same time, so the caller needs one buffer for each kind. */
struct pickle_kind {
    const char *name; /* for messages: "a trace entry" */
    enum pickle_shape shape;
    uint8_t element; /* of a list: the kind of all its elements; 0: any */
    bool keeps;      /* the pickle may refer to a complete one again */
    const struct pickle_member *members; /* of a dictionary; NULL: none */

    enum frag_err (*begin)(void *user, uint8_t kind, struct frag_error *e);

    /* Adds items to the open container. A list receives `count` elements. A
     * dictionary receives `count` pairs: key, value, key, value... */
    enum frag_err (*add)(void *user, uint8_t kind,
                         const struct pickle_value *items, size_t count,
                         struct frag_error *e);

    /* The container is complete. Where `keeps` is set, *result, less than 2^24,
     * replaces the container in later references. */
    enum frag_err (*seal)(void *user, uint8_t kind, uint32_t *result,
                          struct frag_error *e);
};

struct pickle_schema {
    const char *const *words; /* word_count different texts; words[k] is the
                                 text with number k */
    size_t word_count;
    const struct pickle_kind *const *kinds; /* [0]: any other container */
    size_t kind_count;
    uint8_t root_dict, root_list;  /* kinds of the outermost value */
    struct pickle_member anywhere; /* a member of dictionaries of any kind */

    /* Called about once per MiB. An error ends the reading. May be NULL. */
    enum frag_err (*tick)(void *user, struct frag_error *e);
};

struct pickle;

/* Opens a reader that borrows source and schema; `user` is passed to all
 * callbacks. Returns NULL if the host has no memory. */
struct pickle *pickle_open(struct frag_source *source,
                           const struct pickle_schema *schema, void *user);
void pickle_close(struct pickle *p); /* NULL is fine */

/* Reads up to the end of the pickle (the opcode STOP). Bytes after the pickle
 * stay unread. Errors: CORRUPT (the message names the file, the offset and the
 * expectation), NOMEM, IO, or the error of a callback. */
enum frag_err pickle_read(struct pickle *p, struct frag_error *e);

/* The text, or the pair of integers, with a number. Only valid while the reader
 * is open. A text does not end with a NUL. */
const char *pickle_text(const struct pickle *p, uint64_t number,
                        size_t *length);
void pickle_pair(const struct pickle *p, uint64_t number, uint64_t pair[2]);

/* Describes a value for messages: "a text", "an integer of more than 64 bits",
 * "a trace entry". */
const char *pickle_describe(const struct pickle *p,
                            const struct pickle_value *value);

/* The offset of the current opcode, in bytes of the unpacked input. */
uint64_t pickle_where(const struct pickle *p);

#endif
