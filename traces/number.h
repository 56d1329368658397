/* number.h - a real number as text. It writes numbers only; the readers of each
 * format parse their own.
 */
#ifndef FRAG_TRACES_NUMBER_H
#define FRAG_TRACES_NUMBER_H

enum { FRAG_NUMBER_TEXT = 32 };

/* The shortest of the decimals with 6 to 17 digits that read back as the same
 * number, without trailing zeros: "0.1", "100000", "1e+06". Not finite: "nan",
 * "inf", "-inf". Returns text. */
const char *frag_number_format(double number, char text[FRAG_NUMBER_TEXT]);

#endif
