/* json.h - writes JSON to a stream, value by value.
 *
 * The writer inserts commas and escapes. It keeps no document in memory and
 * does not check the structure: the caller closes each object and array that it
 * has opened. Values are written on one line, separated by ", ", unless
 * frag_json_line starts a new line. The caller checks ferror(out) for write
 * errors.
 */
#ifndef FRAG_SIM_RESULTS_JSON_H
#define FRAG_SIM_RESULTS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "traces/base.h"

FRAG_BEGIN_DECLS

/* A writer. Initialize it as {.out = FILE}; the other members are private. */
struct frag_json {
    FILE *out;
    uint64_t objects; /* one bit for each level: 1 object, 0 array. The lowest
                         bit is the innermost level */
    bool has_items;   /* the innermost level has an item */
    bool starts_line; /* the next value or end starts a new line */
    int indent;       /* number of spaces at the start of that line */
};

/* In every call, `key` is the member's name inside an object. It is NULL inside
 * an array and at the top level. Objects and arrays nest at most 64 deep. */
void frag_json_object(struct frag_json *j, const char *key);
void frag_json_array(struct frag_json *j, const char *key);
/* Closes the innermost object or array. */
void frag_json_end(struct frag_json *j);

/* Writes a quoted and escaped string. Bytes that are not UTF-8 are written as
 * U+FFFD. A NULL text is written as null. */
void frag_json_text(struct frag_json *j, const char *key, const char *text);
void frag_json_number(struct frag_json *j, const char *key, uint64_t n);
/* As frag_json_number, but UINT64_MAX means none and is written as null. */
void frag_json_count(struct frag_json *j, const char *key, uint64_t n);
/* Writes an array of texts. */
void frag_json_texts(struct frag_json *j, const char *key,
                     const char *const *texts, size_t count);
/* Writes the shortest decimal number that reads back as x; null if x is not
 * finite. */
void frag_json_real(struct frag_json *j, const char *key, double x);
/* Writes x, which is finite, with nine digits after the point. */
void frag_json_seconds(struct frag_json *j, const char *key, double x);
void frag_json_bool(struct frag_json *j, const char *key, bool is_true);
void frag_json_null(struct frag_json *j, const char *key);

/* The next value, or the next frag_json_end, starts a new line that begins with
 * `indent` spaces. */
void frag_json_line(struct frag_json *j, int indent);
/* Opens an object or an array on a new line, as frag_json_line starts it. */
void frag_json_new_object(struct frag_json *j, int indent, const char *key);
void frag_json_new_array(struct frag_json *j, int indent, const char *key);

FRAG_END_DECLS

#endif
