/* printable.h - the printable form of a text that comes from an input: a file
 * name, a policy text, a note, a setting.
 *
 * Such a text may hold any bytes. Printed as it is, a line break in a file name
 * begins a line of its own, and an escape sequence changes the terminal. In the
 * printable form these characters are written as escapes:
 *   - tab, line feed and carriage return as \t, \n and \r;
 *   - other control characters of ASCII, and bytes that are not UTF-8, as \xNN;
 *   - other control characters of Unicode, line and paragraph separators, and
 *     characters that change the direction of writing, as \uNNNN.
 * All other characters stay, and so does a backslash: the form is for readers,
 * and the form of a form is the same text. JSON and HDF5 files hold the exact
 * text.
 */
#ifndef FRAG_TRACES_PRINTABLE_H
#define FRAG_TRACES_PRINTABLE_H

#include <stdio.h>

#include "traces/base.h"

/* Reads the UTF-8 character at text, which may be the terminating 0. Returns
 * its length in bytes; 0 if the bytes are not UTF-8, and then *code is
 * unchanged. */
size_t utf8_read(const char *text, uint32_t *code);

/* Whether the character of this code is written as it is. */
bool printable_code(uint32_t code);

enum { PRINTABLE_ROOM = 8 }; /* enough for the form of one character */

/* Writes the form of the first character of text, which is not empty, as a
 * string to `form`. Returns the number of bytes of the character in text. */
size_t printable_character(const char *text, char form[PRINTABLE_ROOM]);

/* Whether the text is its own printable form. */
bool printable_is(const char *text);

/* Writes the form of text to `form`, which has `room` bytes, as snprintf would:
 * what does not fit is left out, by whole characters of text. Returns the
 * length of the entire form. form may be NULL if room is 0. */
size_t printable_text(char *form, size_t room, const char *text);

/* Returns the form of text, which the caller frees. NULL if the host has no
 * memory. */
char *printable_copy(const char *text);

/* Writes the form of text to out. */
void printable_put(FILE *out, const char *text);

enum { PRINTABLE_LINE = 1 << 14, PRINTABLE_PIECE = 4096 };

/* Writes a line to out: the form of the formatted text, then a line break. Of a
 * text of more than PRINTABLE_LINE - 1 bytes the beginning is written, and then
 * three dots. A line of less than PRINTABLE_PIECE bytes is one write, also to
 * stderr, which has no buffer: lines of several processes that share a terminal
 * or a log stay whole. */
void printable_line(FILE *out, const char *format, ...) FRAG_PRINTF(2, 3);

#endif
