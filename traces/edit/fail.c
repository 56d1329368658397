/* fail.c - the error of an edit that cannot be applied to a trace. */
#include <stdarg.h>
#include <stdio.h>

#include "traces/edit/edit_parts.h"

enum frag_err edit_fail(const struct making *m, const char *format, ...)
{
    char text[384];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return frag_fail(m->error, FRAG_INVALID, "edit \"%.100s\": %s",
                     m->edit->text, text);
}
