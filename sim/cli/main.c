/* main.c - the entry point: holds the table of all commands, finds the command
 * that the user named, and runs it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/cli.h"
#include "sim/cli/manual.h"
#include "traces/nearest.h"
#include "traces/printable.h"

static const struct verb *const verbs[] = {
#define VERB(name) &verb_##name,
#include "sim/cli/verbs.h"
#undef VERB
    NULL,
};

/* The command line, quoted for a shell; to be freed. NULL if the host has no
 * memory. */
static char *command_line(int argc, char **argv)
{
    size_t room = strlen("fragsim") + 1, at;
    char *line;

    for (int i = 1; i < argc; i++)
        room += 1 + cli_quote(argv[i], NULL);
    line = malloc(room);
    if (!line)
        return NULL;
    at = (size_t)sprintf(line, "fragsim");
    for (int i = 1; i < argc; i++) {
        line[at++] = ' ';
        at += cli_quote(argv[i], line + at);
    }
    line[at] = '\0';
    return line;
}

static int unknown(const char *name)
{
    const struct verb *meant = verb_meant(verbs, name);
    const char *instead = nearest_removed("command", name);

    if (instead) {
        printable_line(stderr,
                       "fragsim: fragsim 0.2 removed the command \"%s\": %s",
                       name, instead);
        return EXIT_USE;
    }
    if (access(name, F_OK) == 0) {
        printable_line(stderr, "fragsim: expected a command before the file %s",
                       name);
        printable_line(stderr, "Try `fragsim replay %s' or `fragsim help'.",
                       name);
        return EXIT_USE;
    }
    if (*name == '-')
        printable_line(
            stderr, "fragsim: expected a command before the option %s", name);
    else if (meant)
        printable_line(stderr,
                       "fragsim: there is no command \"%s\"; did you mean "
                       "\"%s\" (%s)?",
                       name, meant->name, meant->summary);
    else
        printable_line(stderr, "fragsim: there is no command \"%s\"", name);
    if (*name != '-' && meant)
        fprintf(stderr, "Try `fragsim %s --help' or `fragsim help'.\n",
                meant->name);
    else
        fputs("Try `fragsim help'.\n", stderr);
    return EXIT_USE;
}

static bool is_one_of(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(text, *list))
            return true;
    return false;
}

/* Rewrites the ways in which users ask for help to "help [VERB]". */
static void ask_help(int argc, char **argv)
{
    static const char *const flags[] = {"--help", "-h", NULL};
    static char help[] = "help";

    if (is_one_of(argv[1], flags))
        argv[1] = help;
    else if (argc == 3 && !strcmp(argv[2], help) && verb_find(verbs, argv[1]) &&
             access(help, F_OK) != 0) {
        argv[2] = argv[1];
        argv[1] = help;
    }
}

int main(int argc, char **argv)
{
    static const char *const version_flags[] = {"--version", "-V", "version",
                                                NULL};
    const struct verb *verb;
    char *command;
    int code;

    signal(SIGXFSZ, SIG_IGN); /* write() then reports EFBIG */
    cli_clean_signals();
    if (argc < 2) {
        manual_overview(stderr, verbs);
        return EXIT_USE;
    }
    if (is_one_of(argv[1], version_flags)) {
        cli_version(stdout);
        return EXIT_DONE;
    }
    ask_help(argc, argv);
    verb = verb_find(verbs, argv[1]);
    if (!verb)
        return unknown(argv[1]);
    command = command_line(argc, argv);
    code = command_run(verbs, verb, argc - 1, argv + 1,
                       command ? command : "fragsim");
    free(command);
    return code;
}
