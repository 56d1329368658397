/* json.h - writes JSON to a stream, value by value. The writer puts commas and
 * escapes; it holds no document, and a caller closes what it has opened.
 *
 * Values stand on one line, ", " between them, but where frag_json_line says
 * otherwise. Errors stay in ferror(out).
 */
#ifndef FRAG_SIM_RESULTS_JSON_H
#define FRAG_SIM_RESULTS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "traces/base.h"

FRAG_BEGIN_DECLS

/* Starts as {.out = FILE}. The rest is private. */
struct frag_json {
    FILE *out;
    uint64_t objects; /* a bit a level: 1 object, 0 array; the lowest is open */
    bool has_items;   /* what is open */
    bool starts_line; /* the next value or end */
    int indent;
};

/* Every value has the key of the member that it is, NULL in an array and at the
 * top. At most 64 levels. */
void frag_json_object(struct frag_json *j, const char *key);
void frag_json_array(struct frag_json *j, const char *key);
/* Closes the innermost object or array. */
void frag_json_end(struct frag_json *j);

/* Quoted and escaped, what is not UTF-8 as U+FFFD; NULL is null. */
void frag_json_text(struct frag_json *j, const char *key, const char *text);
void frag_json_number(struct frag_json *j, const char *key, uint64_t n);
/* The same, but UINT64_MAX means none and is null. */
void frag_json_count(struct frag_json *j, const char *key, uint64_t n);
/* The fewest digits that read back as it; null if it is not finite. */
void frag_json_real(struct frag_json *j, const char *key, double x);
/* With nine digits after the point. x is finite. */
void frag_json_seconds(struct frag_json *j, const char *key, double x);
void frag_json_bool(struct frag_json *j, const char *key, bool is_true);
void frag_json_null(struct frag_json *j, const char *key);

/* The next value, or the next end, starts a line with so many spaces. */
void frag_json_line(struct frag_json *j, int indent);

FRAG_END_DECLS

#endif
