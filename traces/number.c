/* Finds the shortest text of a number by trying more and more digits. */
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
