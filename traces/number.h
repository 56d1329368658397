/* number.h - writes a real number as text. It does not read numbers: the reader
 * of each format parses the numbers of that format. */
#ifndef FRAG_TRACES_NUMBER_H
#define FRAG_TRACES_NUMBER_H

enum { FRAG_NUMBER_TEXT = 32 };

/* Writes the number with the fewest digits, from 6 to 17, that read back as the
 * same number, without trailing zeros: "0.1", "100000", "1e+06". Numbers that
 * are not finite are "nan", "inf" and "-inf". Returns text. */
const char *frag_number_format(double number, char text[FRAG_NUMBER_TEXT]);

#endif
