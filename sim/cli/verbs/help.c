/* help.c - the command help: prints the manual, a part of it, or the completion
 * of command lines. */
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/cli/completion.h"
#include "sim/cli/manual.h"

enum shell { NO_SHELL, BASH, ZSH };

struct values {
    struct common common;
    bool man;
    unsigned completion; /* enum shell */
};

static int print_man(const struct call *call, const char *name)
{
    const struct verb *verb = name ? verb_find(call->verbs, name) : NULL;

    if (name && !verb)
        return cli_misuse(call,
                          "there is no command \"%s\"; `fragsim help' "
                          "lists them",
                          name);
    if (verb)
        manual_verb_page(stdout, verb);
    else
        manual_page(stdout, call->verbs);
    return EXIT_DONE;
}

static int help_run(const struct call *call, const void *values)
{
    const struct values *v = values;
    const char *name = v->common.args.count ? v->common.args.items[0] : NULL;
    const struct verb *verb;

    if (v->man)
        return print_man(call, name);
    if (v->completion != NO_SHELL) {
        (v->completion == BASH ? completion_bash : completion_zsh)(stdout,
                                                                   call->verbs);
        return EXIT_DONE;
    }
    if (!name) {
        manual_overview(stdout, call->verbs);
        return EXIT_DONE;
    }
    verb = verb_find(call->verbs, name);
    if (verb)
        options_help(verb);
    for (size_t i = 0; topics[i].name; i++)
        if (!strcmp(topics[i].name, name)) {
            topics[i].print(stdout);
            return EXIT_DONE;
        }
    return cli_misuse(call,
                      "there is no command or topic \"%s\"; `fragsim "
                      "help' lists them",
                      name);
}

static const struct option_row options[] = {
    {"man", 0, NULL, "print the man page of fragsim, or of a command, as roff",
     OPTION_SWITCH, offsetof(struct values, man), NULL},
    {"completion", 0, "SHELL", "print the completion script for bash or zsh",
     OPTION_CHOICE, offsetof(struct values, completion), "none|bash|zsh"},
    {0},
};

const struct verb verb_help = {
    .name = "help",
    .args = "[COMMAND|TOPIC]",
    .summary = "explain a command or a topic",
    .about = "The topics are words, formats, results and exits.",
    .options = options,
    .size = sizeof(struct values),
    .defaults = &(const struct values){.man = false},
    .args_max = 1,
    .run = help_run,
};
