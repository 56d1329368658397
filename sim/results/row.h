/* row.h - short forms for the columns of an answer, which take the kind of a
 * column from the type of its field. ROW is the struct of the rows: JSON_ROW,
 * JSON_OBJECT and JSON_ROWS define it, and so does a file with a table of its
 * own.
 */
#ifndef FRAG_SIM_RESULTS_ROW_H
#define FRAG_SIM_RESULTS_ROW_H

#include "sim/results/columns.h"

/* clang-format off */
#define COLUMN(type, key, field)                                               \
    {.name = key, .kind = type, .offset = offsetof(ROW, field)}
/* A text, of one of the two kinds. */
#define TEXT(key, field)                                                       \
    COLUMN(_Generic(&((ROW *)0)->field, char **: FRAG_COLUMN_TEXT,             \
                    const char **: FRAG_COLUMN_TEXT,                           \
                    default: FRAG_COLUMN_CHARS), key, field)
/* A number of the type that the field has. */
#define NUMBER_KIND(type, field)                                               \
    _Generic(&((type *)0)->field, uint64_t *: FRAG_COLUMN_COUNT,               \
             uint32_t *: FRAG_COLUMN_COUNT32, uint16_t *: FRAG_COLUMN_COUNT16, \
             bool *: FRAG_COLUMN_BOOL, double *: FRAG_COLUMN_REAL)
#define NUMBER(key, field)   COLUMN(NUMBER_KIND(ROW, field), key, field)
#define FILLED(key, field)   COLUMN(FRAG_COLUMN_FILLED, key, field)
#define POSITIVE(key, field) COLUMN(FRAG_COLUMN_POSITIVE, key, field)
#define NOT(key, field)      COLUMN(FRAG_COLUMN_NOT, key, field)
#define NS(key, field)       COLUMN(FRAG_COLUMN_NS, key, field)
#define BOUND(field)                                                           \
    COLUMN(FRAG_COLUMN_CAPACITY, "capacity_bytes", field),                     \
    COLUMN(FRAG_COLUMN_LIMIT, "process_limit_bytes", field)
/* The text at the index of an enum or a bool. */
#define WORD(key, field, texts)                                                \
    {.name = key, .offset = offsetof(ROW, field), .words = texts,              \
     .kind = sizeof(((ROW *)0)->field) == 1 ? FRAG_COLUMN_WORD8                \
                                            : FRAG_COLUMN_WORD}
#define LINE(indent) {.kind = FRAG_COLUMN_LINE, .offset = indent}
#define END          {.kind = FRAG_COLUMN_END}

/* Writes the columns that follow of a struct: as members of the open object, as
 * an object (null if the row is NULL), or as an array of objects on a line that
 * begins with `indent` spaces, with a line for each row. */
#define JSON_ROW(j, type, row, ...)                                            \
    do {                                                                       \
        ROW_TABLE(type, __VA_ARGS__);                                          \
        frag_row_json(j, columns, row);                                        \
    } while (0)
#define JSON_OBJECT(j, key, type, row, ...)                                    \
    do {                                                                       \
        ROW_TABLE(type, __VA_ARGS__);                                          \
        frag_object_json(j, key, columns, row);                                \
    } while (0)
#define JSON_ROWS(j, key, indent, type, rows, count, ...)                      \
    do {                                                                       \
        ROW_TABLE(type, __VA_ARGS__);                                          \
        frag_rows_json(j, key, indent, columns, rows, count, sizeof(ROW));     \
    } while (0)
#define ROW_TABLE(type, ...)                                                   \
    typedef struct type ROW;                                                   \
    static const struct frag_column columns[] = {__VA_ARGS__, END}
/* clang-format on */

#endif
