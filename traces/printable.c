/* printable.c - writes the characters of a text that must not reach a terminal
 * or a line of output as escapes. */
#include "traces/printable.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

size_t utf8_read(const char *text, uint32_t *code)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least; /* a smaller code has a shorter form */
    } forms[] = {{0x80, 0x00, 0},
                 {0xe0, 0xc0, 0x80},
                 {0xf0, 0xe0, 0x800},
                 {0xf8, 0xf0, 0x10000}};
    const unsigned char *at = (const unsigned char *)text;

    for (size_t n = 0; n < sizeof(forms) / sizeof(*forms); n++) {
        uint32_t found = at[0] & (unsigned char)~forms[n].mask;

        if ((at[0] & forms[n].mask) != forms[n].lead)
            continue;
        for (size_t i = 1; i <= n; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return 0;
            found = found << 6 | (at[i] & 0x3f);
        }
        if (found < forms[n].least || found > 0x10ffff ||
            (found >= 0xd800 && found <= 0xdfff))
            return 0;
        *code = found;
        return n + 1;
    }
    return 0;
}

bool printable_code(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } escaped[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     /* control characters */
        {0x2028, 0x2029},                   /* separators of lines */
        {0x061c, 0x061c}, {0x200e, 0x200f}, /* direction of writing */
        {0x202a, 0x202e}, {0x2066, 0x2069},
    };

    for (size_t i = 0; i < sizeof(escaped) / sizeof(*escaped); i++)
        if (code >= escaped[i].first && code <= escaped[i].last)
            return false;
    return true;
}

/* Writes the escape of the control character or byte. */
static void escape_byte(unsigned char byte, char form[PRINTABLE_ROOM])
{
    static const char bytes[] = "\t\n\r", letters[] = "tnr";
    const char *known = byte ? strchr(bytes, byte) : NULL;

    if (known)
        snprintf(form, PRINTABLE_ROOM, "\\%c", letters[known - bytes]);
    else
        snprintf(form, PRINTABLE_ROOM, "\\x%02x", byte);
}

size_t printable_character(const char *text, char form[PRINTABLE_ROOM])
{
    uint32_t code;
    const size_t length = utf8_read(text, &code);

    if (length && printable_code(code)) {
        memcpy(form, text, length);
        form[length] = '\0';
    } else if (length < 2) {
        escape_byte((unsigned char)*text, form);
    } else {
        snprintf(form, PRINTABLE_ROOM, "\\u%04x", (unsigned)code & 0xffff);
    }
    return length ? length : 1;
}

bool printable_is(const char *text)
{
    uint32_t code;

    while (*text) {
        const size_t length = utf8_read(text, &code);

        if (!length || !printable_code(code))
            return false;
        text += length;
    }
    return true;
}

size_t printable_text(char *form, size_t room, const char *text)
{
    size_t all = 0, used = 0;
    char one[PRINTABLE_ROOM];

    while (*text) {
        text += printable_character(text, one);
        if (used == all && used + strlen(one) < room) {
            memcpy(form + used, one, strlen(one));
            used += strlen(one);
        }
        all += strlen(one);
    }
    if (room)
        form[used] = '\0';
    return all;
}

char *printable_copy(const char *text)
{
    const size_t room = printable_text(NULL, 0, text) + 1;
    char *form = malloc(room);

    if (form)
        printable_text(form, room, text);
    return form;
}

/* Writes the form of text, and then `end`, in as few pieces as possible: a
 * piece is one system call if the stream has no buffer, as stderr. */
static void put_form(FILE *out, const char *text, const char *end)
{
    char form[PRINTABLE_PIECE + PRINTABLE_ROOM];
    size_t used = 0;

    while (*text) {
        text += printable_character(text, form + used);
        used += strlen(form + used);
        if (used >= PRINTABLE_PIECE) {
            fwrite(form, 1, used, out);
            used = 0;
        }
    }
    memcpy(form + used, end, strlen(end));
    fwrite(form, 1, used + strlen(end), out);
}

void printable_put(FILE *out, const char *text)
{
    put_form(out, text, "");
}

void printable_line(FILE *out, const char *format, ...)
{
    char text[PRINTABLE_LINE];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    put_form(out, text, length < (int)sizeof(text) ? "\n" : "...\n");
}
