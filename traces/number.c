/* number.c - finds the shortest text of a number: it tries more and more digits
 * until the text reads back as the same number. */
#include "traces/number.h"

#include <stdio.h>
#include <stdlib.h>

const char *frag_number_format(double number, char text[FRAG_NUMBER_TEXT])
{
    enum { LEAST = 6, MOST = 17 };

    for (int digits = LEAST; digits <= MOST; digits++) {
        snprintf(text, FRAG_NUMBER_TEXT, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return text;
}
