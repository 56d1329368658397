/* completion.c - the completion script: fixed shell code, filled with the words
 * of the tables. */
#include "sim/cli/manual.h"

#include <string.h>

#include "policies/policy.h"
#include "policies/torch/versions.h"
#include "sim/cli/cli.h"
#include "sim/results/columns.h"

/* ---- lists of words; a space precedes each word ---- */

static void put_verbs(FILE *out, const struct verb *const *verbs)
{
    for (size_t i = 0; verbs[i]; i++)
        fprintf(out, " %s", verbs[i]->name);
    for (const struct alias *a = aliases; a->name; a++)
        fprintf(out, " %s", a->name);
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

static void put_releases(FILE *out)
{
    for (int i = TORCH_MODEL_OLDEST; i <= TORCH_MODEL_NEWEST; i++)
        fprintf(out, " 2.%d", i);
}

static void put_measures(FILE *out)
{
    for (const struct frag_column *c = frag_summary_columns; c->name; c++)
        if (c->kind != FRAG_COLUMN_TEXT)
            fprintf(out, " %s", c->name);
}

/* The options, beside those of a choice, whose values are of a known set. */
static const struct {
    const char *name;
    void (*put)(FILE *out);
} known[] = {
    {"policy", put_policies},
    {"torch-version", put_releases},
    {"measure", put_measures},
};

static void (*put_of(const struct option_row *row))(FILE *out)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(row->name, known[i].name))
            return known[i].put;
    return NULL;
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
        const bool is_choice = row->kind == OPTION_CHOICE;

        if (!is_choice && !put_of(row))
            continue;
        fprintf(out, "    %s:--%s", v->name, row->name);
        if (row->key)
            fprintf(out, " | %s:-%c", v->name, row->key);
        fputs(") words=\"", out);
        if (is_choice)
            put_choices(out, row->choices);
        else
            put_of(row)(out);
        fputs("\" ;;\n", out);
    }
}

void completion_bash(FILE *out, const struct verb *const *verbs)
{
    fputs("# bash completion of fragsim\n"
          "_fragsim() {\n"
          "    local now=${COMP_WORDS[COMP_CWORD]} i=$COMP_CWORD words= more=\n"
          "    # bash divides a word at =: an option, = and its value.\n"
          "    [[ ${COMP_WORDS[i - 1]} != = ]] || ((i--))\n"
          "    [[ $now != = ]] || now=\n"
          "    case ${COMP_WORDS[1]}:${COMP_WORDS[i - 1]} in\n",
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
        if (verbs[i]->words)
            fprintf(out, "    %s:*) more=\"%s\" ;;\n", verbs[i]->name,
                    verbs[i]->words);
    }
    fputs(
        "    esac\n"
        "    if [ -n \"$words\" ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$now\")\n"
        "    else\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$more\" -- \"$now\"\n"
        "            compgen -f -- \"$now\")\n"
        "        compopt -o filenames 2>/dev/null\n"
        "    fi\n"
        "}\n"
        "complete -F _fragsim fragsim\n",
        out);
}
