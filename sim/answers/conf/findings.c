/* findings.c - the findings of an answer: adds one, and finds the most serious.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/answers/conf/conf_parts.h"

const char *const conf_level_names[] = {
#define X(upper, lower) #lower,
    CONF_LEVELS(X)
#undef X
        NULL,
};

bool conf_say(struct conf_answer *a, enum conf_level level, size_t item,
              const char *format, ...)
{
    struct conf_finding *list =
        realloc(a->findings, (a->finding_count + 1) * sizeof(*list));
    struct conf_finding *f;
    va_list args;

    if (!list)
        return false;
    a->findings = list;
    f = &list[a->finding_count];
    f->place = a->finding_count++;
    f->level = level;
    f->item = item;
    va_start(args, format);
    vsnprintf(f->text, sizeof(f->text), format, args);
    va_end(args);
    if (level == CONF_REFUSED && item != SIZE_MAX)
        a->items[item].refused = true;
    return true;
}

bool conf_say_useless(struct conf_answer *a, size_t item, const char *why)
{
    a->items[item].useless = true;
    return conf_say(a, CONF_IGNORED, item, "%s", why);
}

enum conf_level conf_level(const struct conf_answer *a)
{
    enum conf_level most = CONF_FINE;

    for (size_t i = 0; i < a->finding_count; i++)
        if (a->findings[i].level < most)
            most = a->findings[i].level;
    return most;
}
