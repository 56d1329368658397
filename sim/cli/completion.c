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

/* The words that an option's value may be; NULL: any text. */
static const char *choices_of(const struct option_row *row)
{
    return row->kind == OPTION_CHOICE ? row->choices : NULL;
}

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
        if (!choices_of(row) && !put_of(row))
            continue;
        fprintf(out, "    %s:--%s", v->name, row->name);
        if (row->key)
            fprintf(out, " | %s:-%c", v->name, row->key);
        fputs(") words=\"", out);
        if (choices_of(row))
            put_choices(out, choices_of(row));
        else
            put_of(row)(out);
        fprintf(out, "\"%s ;;\n",
                put_of(row) == put_policies ? " policy=$whole" : "");
    }
}

/* The cases of the keys of each policy's parameters. */
static void put_keys(FILE *out)
{
    for (size_t i = 0; frag_policies[i]; i++) {
        const struct frag_param *p = frag_policies[i]->params;

        fprintf(out, "        %s) words=\"", frag_policies[i]->name);
        for (; p && p->name; p++)
            fprintf(out, " %s", p->name);
        fprintf(out, "\" end=%c ;;\n", frag_policies[i]->configure ? ':' : '=');
    }
}

void completion_bash(FILE *out, const struct verb *const *verbs)
{
    fputs(
        "# bash completion of fragsim\n"
        "_fragsim() {\n"
        "    local now=${COMP_WORDS[COMP_CWORD]} i=$COMP_CWORD\n"
        "    local words= more= policy= end= whole=$now head= before\n"
        "    # bash divides words at : = and @; `whole' is the undivided one.\n"
        "    while ((i > 2)) && [[ ${COMP_WORDS[i - 1]} != -* ]] &&\n"
        "        [[ ${COMP_WORDS[i]} == [:=@] ||\n"
        "            ${COMP_WORDS[i - 1]} == [:=@] ]]; do\n"
        "        ((i--))\n"
        "        whole=${COMP_WORDS[i]}$whole\n"
        "    done\n"
        "    whole=${whole#=} before=${COMP_WORDS[i - 1]}\n"
        "    [[ $now != [:=@] ]] || now=\n"
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
          "    [ -n \"$words\" ] || case ${COMP_WORDS[1]}:$whole in\n",
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
    fputs("    conf:?*) policy=torch:$whole ;;\n"
          "    policies:?*) policy=$whole ;;\n"
          "    esac\n"
          "    if [[ $policy == *:* ]]; then\n"
          "        policy=${policy/@*:/:}\n"
          "        whole=${policy#*:} words= more=\n"
          "        [[ ${whole##*,} == *[:=]* ]] || case ${policy%%:*} in\n",
          out);
    put_keys(out);
    fputs("        esac\n"
          "        [ -n \"$words\" ] || return 0\n"
          "        head=${now%\"${now##*,}\"} now=${now##*,}\n"
          "        compopt -o nospace 2>/dev/null\n"
          "    elif [[ $policy == torch@* ]]; then\n"
          "        words=\"recorded",
          out);
    put_releases(out);
    fputs("\"\n"
          "    fi\n"
          "    if [ -n \"$words\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -P \"$head\" -S \"$end\" "
          "-W \"$words\" -- \"$now\")\n"
          "    else\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$more\" -- \"$now\"\n"
          "            compgen -f -- \"$now\")\n"
          "        compopt -o filenames 2>/dev/null\n"
          "    fi\n"
          "}\n"
          "complete -F _fragsim fragsim\n",
          out);
}
