/* pickle.h - reads a Python pickle of protocol 2 to 5 as a stream.
 *
 * It knows opcodes that build plain values and no others, so a hostile file
 * cannot run code. It keeps no tree: the user says in a schema which dicts and
 * lists matter, by their place, and gets each one's members as soon as they
 * are there; what is complete is forgotten. Everything else is read over.
 *
 * Memory: the distinct texts, one code for each memoized value (a few bits
 * where values repeat), and the values of lists that are not complete.
 */
#ifndef FRAG_TRACES_PICKLE_PICKLE_H
#define FRAG_TRACES_PICKLE_PICKLE_H

#include "traces/bytes/source.h"

enum pickle_tag {
    PICKLE_OTHER, /* what a schema has no use for; n of them */
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,  /* n, as int64_t */
    PICKLE_UINT, /* n, at least 2^63 */
    PICKLE_HUGE, /* an integer of more than 64 bits */
    PICKLE_FLOAT,
    PICKLE_TEXT,   /* n: its number; see pickle_text() */
    PICKLE_PAIR,   /* a tuple of two integers; see pickle_pair() */
    PICKLE_DONE,   /* n containers of `kind`, complete */
    PICKLE_RESULT, /* one of a kind with `keeps`; n is what seal() said */
    PICKLE_SEEN,   /* a reference to a container without `keeps` */
    PICKLE_LIST,   /* still open; never given to a user */
    PICKLE_DICT,   /* likewise */
    PICKLE_MARK,   /* likewise */
};

struct pickle_value {
    uint8_t tag;   /* enum pickle_tag */
    uint8_t kind;  /* of a container */
    uint32_t slot; /* of an open container: 1 + where it is in the memo */
    union {
        uint64_t n;
        double f;
    };
};

enum pickle_shape { PICKLE_IS_LIST, PICKLE_IS_DICT };

enum { PICKLE_KINDS = 32 }; /* at most */

/* A member of a dict that is a container itself. */
struct pickle_member {
    uint32_t word; /* the key, an index in the schema's words */
    uint8_t kind;  /* 0 ends the array */
};

/* A kind of container. The calls may be NULL. Within a kind they come in the
 * order begin, take..., seal, and no two containers of one kind are open at a
 * time, so that one record a kind is enough. */
struct pickle_kind {
    const char *name; /* "a trace entry" */
    enum pickle_shape shape;
    uint8_t element; /* of a list: the kind of all its elements; 0: any */
    bool keeps;      /* a complete one may be referred to again */
    const struct pickle_member *members; /* of a dict; NULL: none */

    enum frag_err (*begin)(void *user, uint8_t kind, struct frag_error *e);

    /* count elements, or count pairs of key and value one after the other. */
    enum frag_err (*take)(void *user, uint8_t kind,
                          const struct pickle_value *items, size_t count,
                          struct frag_error *e);

    /* Complete. *result stands for it where `keeps`; less than 2^24. */
    enum frag_err (*seal)(void *user, uint8_t kind, uint32_t *result,
                          struct frag_error *e);
};

struct pickle_schema {
    const char *const *words; /* word_count of them, all different; the text of
                                 number k is words[k] */
    size_t word_count;
    const struct pickle_kind *const *kinds; /* [0] stands for all others */
    size_t kind_count;
    uint8_t root_dict, root_list;  /* kinds of the outermost value */
    struct pickle_member anywhere; /* a member of dicts of any kind */

    /* Called about once in a MiB; an error ends the reading. May be NULL. */
    enum frag_err (*tick)(void *user, struct frag_error *e);
};

struct pickle;

/* A reader of source, which it borrows, as it does the schema. NULL if the
 * host has no memory. */
struct pickle *pickle_open(struct frag_source *source,
                           const struct pickle_schema *schema, void *user);
void pickle_close(struct pickle *p); /* NULL is fine */

/* Reads up to the end of the pickle (STOP); bytes after it are left. CORRUPT
 * (the words name file, offset, and what was expected), NOMEM, IO, or what a
 * call of the schema answered. */
enum frag_err pickle_read(struct pickle *p, struct frag_error *e);

/* While reading: a text, not ended by a NUL, and a pair. */
const char *pickle_text(const struct pickle *p, uint64_t number,
                        size_t *length);
void pickle_pair(const struct pickle *p, uint64_t number, uint64_t pair[2]);
uint64_t pickle_text_count(const struct pickle *p);

/* "a text", "an integer of more than 64 bits", "a trace entry": for messages.
 */
const char *pickle_describe(const struct pickle *p,
                            const struct pickle_value *value);

/* Where the opcode being read is, in bytes of the unpacked pickle. */
uint64_t pickle_where(const struct pickle *p);

#endif
