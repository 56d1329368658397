/* text.c - finds the shortest text of a number, for which it tries more and
 * more digits until the text reads back as the same number, and lists texts. */
#include "traces/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const char *text_add(char *text, size_t room, const char *separator,
                     const char *format, ...)
{
    static const char dots[] = "...";
    const size_t used = strlen(text), most = room - sizeof(dots);
    const size_t gap = used ? strlen(separator) : 0;
    va_list args;
    int length;

    if (used >= strlen(dots) && !strcmp(text + used - strlen(dots), dots))
        return text;
    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || used + gap + (size_t)length > most)
        return strcpy(text + (used < most ? used : most), dots), text;
    memcpy(text + used, separator, gap);
    va_start(args, format);
    vsnprintf(text + used + gap, room - used - gap, format, args);
    va_end(args);
    return text;
}

char *text_make(const char *format, ...)
{
    va_list args;
    size_t room;
    char *text;

    va_start(args, format);
    room = (size_t)vsnprintf(NULL, 0, format, args) + 1;
    va_end(args);
    text = malloc(room);
    va_start(args, format);
    if (text)
        vsnprintf(text, room, format, args);
    va_end(args);
    return text;
}

bool text_choice(const char *choices, const char *word, uint64_t *index)
{
    for (*index = 0;; ++*index) {
        const size_t length = strcspn(choices, "|");

        if (length == strlen(word) && !memcmp(choices, word, length))
            return true;
        if (!choices[length])
            return false;
        choices += length + 1;
    }
}

bool text_ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), least = strlen(end);

    return length >= least && !strcmp(text + length - least, end);
}

void text_paragraph(FILE *out, int indent, const char *text)
{
    enum { WIDTH = 79 };
    int at = 0;

    while (*text) {
        const int n = (int)strcspn(text, " ");

        if (!at || at + 1 + n > WIDTH) {
            fprintf(out, "%s%*s", at ? "\n" : "", indent, "");
            at = indent;
        } else {
            at += fprintf(out, " ");
        }
        at += fprintf(out, "%.*s", n, text);
        text += n + (text[n] == ' ');
    }
    fputc('\n', out);
}
