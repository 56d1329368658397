/* spelling.c - says what the user meant by a command or an option that does not
 * exist, and which value an option lacks. argp, which parses the options, knows
 * no suggestions. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "traces/nearest.h"
#include "traces/printable.h"

/* Names under which users look for a command. */
static const struct guess {
    const char *name, *verb;
} guesses[] = {
    {"analyse", "explain"}, {"analyze", "explain"}, {"bench", "replay"},
    {"convert", "import"},  {"draw", "plot"},       {"flamegraph", "top"},
    {"generate", "gen"},    {"leak", "leaks"},      {"list", "policies"},
    {"optimise", "tune"},   {"optimize", "tune"},   {"execute", "replay"},
    {"show", "info"},       {"simulate", "replay"}, {"stats", "summary"},
    {"verify", "validate"}, {"view", "report"},     {"visualize", "plot"},
    {"why", "explain"},
};

const struct verb *verb_meant(const struct verb *const *verbs, const char *name)
{
    struct nearest near = nearest_to(name);

    for (size_t i = 0; i < sizeof(guesses) / sizeof(*guesses); i++)
        if (!strcmp(guesses[i].name, name))
            return verb_find(verbs, guesses[i].verb);
    for (size_t i = 0; verbs[i]; i++)
        nearest_try(&near, verbs[i]->name);
    return near.found ? verb_find(verbs, near.found) : NULL;
}

/* -- options -------------------------------------------------------------- */

static _Noreturn void refuse(const struct verb *verb, const char *format, ...)
    FRAG_PRINTF(2, 3);

static _Noreturn void refuse(const struct verb *verb, const char *format, ...)
{
    char text[PRINTABLE_LINE];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    printable_line(stderr, "fragsim %s: %s", verb->name, text);
    fprintf(stderr, "Try `fragsim %s --help'.\n", verb->name);
    exit(EXIT_USE);
}

/* The kinds of names: an option of the verb, one that argp adds, or unknown. */
enum { BUILT_IN_COUNT = 2 };
static const struct option_row built_in[BUILT_IN_COUNT + 1] = {
    {.name = "help", .key = '?'}, {.name = "usage"}, {0}};

/* The tables of a verb's options. */
struct tables {
    const struct option_row *rows[3];
};

static struct tables tables_of(const struct verb *verb)
{
    return (struct tables){{verb->options, common_options, built_in}};
}

/* The option with that short name; NULL if there is none. */
static const struct option_row *find_short(const struct verb *verb, char key)
{
    const struct tables t = tables_of(verb);

    for (size_t i = 0; i < 3; i++)
        for (const struct option_row *r = t.rows[i]; r && r->name; r++)
            if (r->key == key)
                return r;
    return NULL;
}

/* The option whose name is the first `length` letters of `name`, or begins with
 * them. Of several that begin with them it returns the first: argp refuses the
 * ambiguous name. NULL if there is none; *near then has the nearest. */
static const struct option_row *find_long(const struct verb *verb,
                                          const char *name, size_t length,
                                          struct nearest *near)
{
    const struct tables t = tables_of(verb);
    const struct option_row *found = NULL;

    for (size_t i = 0; i < 3; i++)
        for (const struct option_row *r = t.rows[i]; r && r->name; r++) {
            nearest_try(near, r->name);
            if (strncmp(r->name, name, length) != 0)
                continue;
            if (!r->name[length])
                return r;
            found = found ? found : r;
        }
    return found;
}

/* Whether `text` is exactly an option of the verb. */
static bool is_option(const struct verb *verb, const char *text)
{
    struct nearest near = nearest_to(text);
    const struct option_row *row;

    if (text[0] != '-' || !text[1])
        return false;
    if (text[1] != '-')
        return !text[2] && find_short(verb, text[1]);
    row = find_long(verb, text + 2, strlen(text + 2), &near);
    return row && !strcmp(row->name, text + 2);
}

/* Refuses an option without its value; `next` is the next argument or NULL. */
static void check_value(const struct verb *verb, const struct option_row *row,
                        const char *next)
{
    if (!next)
        refuse(verb, "--%s: expected %s after it, found nothing", row->name,
               row->value);
    if (is_option(verb, next))
        refuse(verb,
               "--%s: expected %s after it, found the option %s; if %s is the "
               "value, write --%s=%s",
               row->name, row->value, next, next, row->name, next);
}

/* Checks "--name" or "--name=value". Returns the number of arguments that it
 * takes after itself. */
static int check_long(const struct verb *verb, const char *name,
                      const char *next)
{
    const size_t length = strcspn(name, "=");
    char word[64];
    struct nearest near;
    const struct option_row *row;

    snprintf(word, sizeof(word), "%.*s", (int)(length < 63 ? length : 63),
             name);
    near = nearest_to(word);
    row = find_long(verb, name, length, &near);
    if (!row && nearest_removed(verb->name, word))
        refuse(verb, "fragsim 0.2 removed the option --%s: %s", word,
               nearest_removed(verb->name, word));
    if (!row && near.found)
        refuse(verb, "there is no option --%s; did you mean --%s?", word,
               near.found);
    if (!row)
        refuse(verb, "there is no option --%s", word);
    if (!row->value && name[length])
        refuse(verb, "--%s: expected no value, found \"%s\"; write --%s alone",
               row->name, name + length + 1, row->name);
    if (!row->value || name[length])
        return 0;
    check_value(verb, row, next);
    return 1;
}

/* Checks "-abc", where the last option may have a value. Returns the number of
 * arguments that it takes after itself. */
static int check_short(const struct verb *verb, const char *keys,
                       const char *next)
{
    const size_t length = strcspn(keys, "=");
    struct nearest near = nearest_to(keys);
    const struct option_row *row = find_long(verb, keys, length, &near);

    if (length > 2 && row && !row->name[length])
        refuse(verb, "there is no option -%s; did you mean --%s?", keys,
               row->name);
    for (; *keys; keys++) {
        row = find_short(verb, *keys);
        if (!row && *keys == 'h')
            options_help(verb);
        if (!row)
            refuse(verb, "there is no option -%c", *keys);
        if (!row->value)
            continue;
        if (keys[1])
            return 0;
        check_value(verb, row, next);
        return 1;
    }
    return 0;
}

void options_check(const struct verb *verb, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;

        if (!strcmp(text, "--"))
            return;
        if (text[0] != '-' || !text[1]) {
            if (getenv("POSIXLY_CORRECT"))
                return;
            continue;
        }
        i += text[1] == '-' ? check_long(verb, text + 2, next)
                            : check_short(verb, text + 1, next);
    }
}
