/* text.h - writes numbers, lists and paragraphs as text, and finds a word in a
 * list.
 */
#ifndef FRAG_TRACES_TEXT_H
#define FRAG_TRACES_TEXT_H

#include <stdio.h>

#include "traces/base.h"

enum { FRAG_NUMBER_TEXT = 32 };

/* Writes the number with the fewest digits, from 6 to 17, that read back as the
 * same number, without trailing zeros: "0.1", "100000", "1e+06". Numbers that
 * are not finite are "nan", "inf" and "-inf". Returns text. */
const char *frag_number_format(double number, char text[FRAG_NUMBER_TEXT]);

/* Appends the formatted piece to the string `text`, after `separator` unless
 * the string is empty. The string has `room` bytes, 4 or more. A piece is
 * complete or absent: instead of a piece without room, and of all later ones,
 * the string ends with "...". Returns text. */
const char *text_add(char *text, size_t room, const char *separator,
                     const char *format, ...) FRAG_PRINTF(4, 5);

/* The formatted text, to be freed; NULL if the host has no memory. */
char *text_make(const char *format, ...) FRAG_PRINTF(1, 2);

bool text_ends_with(const char *text, const char *end);

/* Prints a paragraph on lines of at most 79 characters, with `indent` blanks
 * before each. */
void text_paragraph(FILE *out, int indent, const char *text);

/* Sets *index to that of the word among those that bars separate, as in
 * "start|clock|turns". False if it is none of them. */
bool text_choice(const char *choices, const char *word, uint64_t *index);

#endif
