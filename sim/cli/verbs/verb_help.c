/* verb_help.c - the command help: prints the manual, a part of it, or the
 * completion of command lines. */
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/cli/manual.h"
#include "traces/nearest.h"

struct help_values {
    struct common common;
    bool man;
    unsigned completion; /* 0: no script; 1: that for bash */
};

/* `meant` is the nearest name or NULL. */
static int unknown(const struct call *call, const char *what, const char *name,
                   const char *meant)
{
    if (meant)
        return cli_misuse(call,
                          "there is no %s \"%s\"; did you mean \"%s\"? Type "
                          "`fragsim help %s'",
                          what, name, meant, meant);
    return cli_misuse(call, "there is no %s \"%s\"; `fragsim help' lists them",
                      what, name);
}

static int print_man(const struct call *call, const char *name)
{
    const struct verb *verb = name ? verb_find(call->verbs, name) : NULL;
    const struct verb *meant = name ? verb_meant(call->verbs, name) : NULL;

    if (name && !verb)
        return unknown(call, "command", name, meant ? meant->name : NULL);
    if (verb)
        manual_verb_page(stdout, verb);
    else
        manual_page(stdout, call->verbs);
    return EXIT_DONE;
}

static int help_run(const struct call *call, const void *values)
{
    const struct help_values *v = values;
    const char *name = v->common.args.count ? v->common.args.items[0] : NULL;
    const struct verb *verb;
    struct nearest near;

    if (v->man)
        return print_man(call, name);
    if (v->completion) {
        completion_bash(stdout, call->verbs);
        return EXIT_DONE;
    }
    if (!name) {
        manual_overview(stdout, call->verbs);
        return EXIT_DONE;
    }
    verb = verb_find(call->verbs, name);
    if (verb)
        options_help(verb);
    near = nearest_to(name);
    for (size_t i = 0; topics[i].name; i++) {
        nearest_try(&near, topics[i].name);
        if (!strcmp(topics[i].name, name)) {
            topics[i].print(stdout);
            return EXIT_DONE;
        }
    }
    verb = verb_meant(call->verbs, name);
    return unknown(call, "command or topic", name,
                   near.found || !verb ? near.found : verb->name);
}

#define AT(field) offsetof(struct help_values, field)
static const struct option_row options[] = {
    {"man", 0, NULL, OPTION_SWITCH, AT(man), NULL,
     "print the man page of fragsim, or of a command, as roff"},
    {"completion", 0, "SHELL", OPTION_CHOICE, AT(completion), "none|bash",
     "print the completion script for bash"},
    {0},
};

const struct verb verb_help = {
    .name = "help",
    .args = "[COMMAND|TOPIC]",
    .summary = "explain a command or a topic",
    .about =
        "The topics are words, formats, recipes, results, versions, edits and "
        "exits.",
    .options = options,
    .size = sizeof(struct help_values),
    .defaults = &(const struct help_values){.man = false},
    .args_max = 1,
    .run = help_run,
};
