/* completion.c - the completion scripts: the fixed shell code, filled with the
 * words of the tables. */
#include "sim/cli/completion.h"

#include <string.h>

#include "policies/policy.h"
#include "sim/cli/cli.h"
#include "sim/cli/manual.h"

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

/* Calls `put` for each option of the verb and for each common option. */
static void each_option(FILE *out, const struct verb *v,
                        void (*put)(FILE *out, const struct verb *v,
                                    const struct option_row *row))
{
    const struct option_row *const lists[] = {v->options, common_options};

    for (size_t i = 0; i < 2; i++)
        for (const struct option_row *row = lists[i]; row && row->name; row++)
            put(out, v, row);
}

/* ---- bash ---- */

static void bash_option(FILE *out, const struct verb *v,
                        const struct option_row *row)
{
    (void)v;
    fprintf(out, " --%s", row->name);
    if (row->key)
        fprintf(out, " -%c", row->key);
}

static void bash_value(FILE *out, const struct verb *v,
                       const struct option_row *row)
{
    if (!has_words(row))
        return;
    fprintf(out, "    %s:--%s", v->name, row->name);
    if (row->key)
        fprintf(out, " | %s:-%c", v->name, row->key);
    fputs(") words=\"", out);
    put_words(out, row);
    fputs("\" ;;\n", out);
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
    for (size_t i = 0; verbs[i]; i++)
        each_option(out, verbs[i], bash_value);
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
        each_option(out, verbs[i], bash_option);
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

/* ---- zsh ---- */

/* Prints text so that it can stand inside '...[text]...' of _arguments, or
 * after "name:". */
static void zsh_text(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *text))
            fprintf(out, "\\%c", *text);
        else
            fputc(*text == '\n' ? ' ' : *text, out);
}

static void zsh_option(FILE *out, const struct verb *v,
                       const struct option_row *row)
{
    (void)v;
    fputs(" \\\n            ", out);
    if (row->key)
        fprintf(out, "{-%c,--%s%s}'[", row->key, row->name,
                row->value ? "=" : "");
    else
        fprintf(out, "'--%s%s[", row->name, row->value ? "=" : "");
    zsh_text(out, row->help);
    fputc(']', out);
    if (row->value) {
        fputc(':', out);
        zsh_text(out, row->value);
        fputc(':', out);
    }
    if (row->value && has_words(row)) {
        fputc('(', out);
        put_words(out, row);
        fputc(')', out);
    } else if (row->value) {
        fputs("_files", out);
    }
    fputc('\'', out);
}

static void zsh_verb(FILE *out, const struct verb *const *verbs,
                     const struct verb *v)
{
    fprintf(out, "    %s)\n        _arguments", v->name);
    each_option(out, v, zsh_option);
    if (!strcmp(v->name, "help")) {
        fputs(" \\\n            '*:command:(", out);
        put_verbs(out, verbs);
        put_topics(out);
        fputs(")'\n        ;;\n", out);
    } else {
        fputs(" \\\n            '*:file:_files'\n        ;;\n", out);
    }
}

void completion_zsh(FILE *out, const struct verb *const *verbs)
{
    fputs("#compdef fragsim\n"
          "_fragsim() {\n"
          "    local -a verbs\n"
          "    verbs=(\n",
          out);
    for (size_t i = 0; verbs[i]; i++) {
        fprintf(out, "        '%s:", verbs[i]->name);
        zsh_text(out, verbs[i]->summary);
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe command verbs\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $words[1] in\n",
          out);
    for (size_t i = 0; verbs[i]; i++)
        zsh_verb(out, verbs, verbs[i]);
    fputs("    esac\n}\n_fragsim \"$@\"\n", out);
}
