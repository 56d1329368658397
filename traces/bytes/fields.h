/* fields.h - splits a line of a text format into fields and reads numbers, for
 * the importers of text formats.
 */
#ifndef FRAG_TRACES_BYTES_FIELDS_H
#define FRAG_TRACES_BYTES_FIELDS_H

#include "traces/base.h"

struct frag_source; /* see traces/bytes/source.h */

/* A part of a line. The text does not end in a 0 byte. */
struct field {
    const char *text;
    size_t length;
};

/* The part of a line that is not split yet. `at` is NULL after the last
 * field. */
struct fields {
    const char *at, *end;
};

/* Returns the fields of a line. */
static inline struct fields fields_of(const char *line, size_t length)
{
    return (struct fields){line, line + length};
}

/* Sets *out to the next field, without the blanks and without one pair of
 * double quotes around it, and moves *f past the separator. Between two
 * separators lies an empty field. A separator within quotes separates, too.
 * Returns false after the last field. */
bool fields_next(struct fields *f, char separator, struct field *out);

/* Returns the field without the blanks, tabs and CR around it, and without one
 * pair of double quotes. */
struct field field_trimmed(struct field f);

/* Returns the field without the UTF-8 byte order mark with which spreadsheets
 * begin a file. */
struct field field_unmarked(struct field f);

/* Returns the first line of the beginning of a file, without its end. */
struct field field_first_line(const unsigned char *bytes, size_t count);

bool field_is(struct field f, const char *word);
/* The index of the word that the field is; -1 if it is none of them. */
int field_among(struct field f, const char *const words[], int count);
bool field_begins(struct field f, const char *start);
bool field_contains(struct field f, const char *text); /* text is not "" */

/* Finds columns by the names in a header: column[k] is the index of the field
 * that equals names[k], -1 if the header has none; of two equal fields the
 * first counts. `names` ends with NULL. Returns the number of fields. */
int fields_columns(struct field header, const char *const names[],
                   int column[]);

/* Splits a line at commas: found[k] is the field with the index column[k],
 * empty if the line has none. Returns the number of fields. */
int fields_pick(struct field line, const int column[], int names,
                struct field found[]);

/* These read a whole field as a number: decimal digits; digits that
 * are hexadecimal after 0x and decimal else. They return false for anything
 * else, for an empty field, and for 2^64 and more. */
bool field_decimal(struct field f, uint64_t *value);
bool field_number(struct field f, uint64_t *value);
bool field_pointer(struct field f, uint64_t *value); /* 0x..., or (nil) */

/* Writes "NAME:LINE: expected X, found "F"" to e and returns CORRUPT. The name
 * is that of the source; at most 60 bytes of the field are shown. */
enum frag_err field_wrong(const struct frag_source *source, uint64_t line,
                          const char *expected, struct field found,
                          struct frag_error *e);

#endif
