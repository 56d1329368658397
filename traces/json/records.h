/* records.h - reads the records of a JSON text in a stream: the objects at one
 * path of the text, each as a row of the values that the caller names.
 *
 * A path is a list of keys, separated by '/'; "[]" stands for the items of an
 * array. For example, "traceEvents/[]" are the objects of the array with that
 * name, and "traceEvents/[]/args/Addr" is one of their values. The path "" is
 * that of the values at the top of the text. Everything without a path is
 * skipped. The memory does not grow with the text. Syntax: RFC 8259; yajl
 * reads the tokens.
 */
#ifndef FRAG_TRACES_JSON_RECORDS_H
#define FRAG_TRACES_JSON_RECORDS_H

#include "traces/bytes/source.h"
#include "traces/trace.h"

enum { JSON_FIELDS = 32 }; /* of a schema, at most */

enum json_kind {
    JSON_ABSENT, /* the record lacks the field, or its value is an object or an
                    array */
    JSON_NULL,
    JSON_BOOLEAN, /* the text is "true" or "false" */
    JSON_NUMBER,  /* the text is as written */
    JSON_STRING,  /* the text is decoded */
};

/* The value of a field. If a record has several values at one path, it is the
 * first one. */
struct json_value {
    enum json_kind kind;
    const char *text; /* ends in a 0 byte; "" for JSON_ABSENT */
    size_t length;    /* bytes */
};

struct json_schema {
    const char *record;        /* the path of the records */
    const char *const *fields; /* paths of values; of the record, or of what
                                  stands before the records */
    size_t field_count;
    /* Called at the end of each record with one value for each field, which
     * are valid until it returns. `where` is the position at which the record
     * begins. An error ends the reading. */
    enum frag_err (*each)(void *user, const struct json_value *values,
                          uint64_t where);
};

struct json;

/* Opens a reader. `name` (borrowed) is for messages. NULL if the host has no
 * memory. */
struct json *json_open(const struct json_schema *schema, const char *name,
                       void *user);
void json_close(struct json *j); /* NULL is fine */

/* Reads the next part of the text; `where` is its position. CORRUPT with a
 * message for anything that is not JSON, for records that are no objects, for
 * more than 64 levels, and for a value of more than 16 MiB; errors of `each`;
 * NOMEM. After an error, only json_close may be called. */
enum frag_err json_feed(struct json *j, const char *text, size_t length,
                        uint64_t where, struct frag_error *e) FRAG_MUST_CHECK;

/* Reads a source to its end, which must be the end of the JSON text. Errors are
 * those of json_feed and of the source; CANCELLED by opts->progress. opts may
 * be NULL. */
enum frag_err json_read(struct frag_source *source,
                        const struct json_schema *schema,
                        const struct frag_read_options *opts, void *user,
                        struct frag_error *e) FRAG_MUST_CHECK;

#endif
