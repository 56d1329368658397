/* completion.c - the completion script: fixed shell code, filled with the words
 * of the tables. */
#include "sim/cli/manual.h"

#include <string.h>

#include "policies/policy.h"
#include "sim/cli/cli.h"

/* ---- lists of words; a space precedes each word ---- */

static void put_verbs(FILE *out, const struct verb *const *verbs)
{
    for (size_t i = 0; verbs[i]; i++)
        fprintf(out, " %s", verbs[i]->name);
}

static void put_topics(FILE *out)
{
    for (size_t i = 0; topics[i].name; i++)
        fprintf(out, " %s", topics[i].name);
}

static void put_policies(FILE *out)
{
    for (size_t i = 0; frag_policies[i]; i++)
        fprintf(out, " %s", frag_policies[i]->name);
}

/* The words of "a|b|c". */
static void put_choices(FILE *out, const char *choices)
{
    fputc(' ', out);
    for (; *choices; choices++)
        fputc(*choices == '|' ? ' ' : *choices, out);
}

/* Whether the option's value is one of a known set of words. */
static bool has_words(const struct option_row *row)
{
    return row->kind == OPTION_CHOICE || !strcmp(row->name, "policy");
}

static void put_words(FILE *out, const struct option_row *row)
{
    if (row->kind == OPTION_CHOICE)
        put_choices(out, row->choices);
    else
        put_policies(out);
}

static void put_options(FILE *out, const struct option_row *row)
{
    for (; row && row->name; row++) {
        fprintf(out, " --%s", row->name);
        if (row->key)
            fprintf(out, " -%c", row->key);
    }
}

/* The cases of the words that may follow an option. */
static void put_values(FILE *out, const struct verb *v,
                       const struct option_row *row)
{
    for (; row && row->name; row++) {
        if (!has_words(row))
            continue;
        fprintf(out, "    %s:--%s", v->name, row->name);
        if (row->key)
            fprintf(out, " | %s:-%c", v->name, row->key);
        fputs(") words=\"", out);
        put_words(out, row);
        fputs("\" ;;\n", out);
    }
}

void completion_bash(FILE *out, const struct verb *const *verbs)
{
    fputs("# bash completion of fragsim\n"
          "_fragsim() {\n"
          "    local now=${COMP_WORDS[COMP_CWORD]} words=\n"
          "    local before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    [ \"$before\" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    [ \"$now\" != = ] || now=\n"
          "    case ${COMP_WORDS[1]}:$before in\n",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        put_values(out, verbs[i], verbs[i]->options);
        put_values(out, verbs[i], common_options);
    }
    fputs("    help:help) words=\"", out);
    put_verbs(out, verbs);
    put_topics(out);
    fputs("\" ;;\n    *:fragsim | *:*/fragsim) words=\"", out);
    put_verbs(out, verbs);
    fputs("\" ;;\n    esac\n"
          "    [ -n \"$words\" ] || case ${COMP_WORDS[1]}:$now in\n",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        fprintf(out, "    %s:-*) words=\"", verbs[i]->name);
        put_options(out, verbs[i]->options);
        put_options(out, common_options);
        fputs("\" ;;\n", out);
    }
    fputs(
        "    esac\n"
        "    if [ -n \"$words\" ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$now\")\n"
        "    else\n"
        "        mapfile -t COMPREPLY < <(compgen -f -- \"$now\")\n"
        "        compopt -o filenames 2>/dev/null\n"
        "    fi\n"
        "}\n"
        "complete -F _fragsim fragsim\n",
        out);
}
