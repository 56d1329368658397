/* main.c - the entry point: holds the table of all commands, finds the command
 * that the user named, and runs it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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
    struct nearest near = nearest_to(name);
    char hint[NEAREST_HINT];

    for (size_t i = 0; verbs[i]; i++)
        nearest_try(&near, verbs[i]->name);
    printable_line(stderr, "fragsim: there is no command \"%s\"%s", name,
                   nearest_hint(&near, hint));
    fputs("Try `fragsim help'.\n", stderr);
    return EXIT_USE;
}

static int run(const struct verb *verb, int argc, char **argv, char *command)
{
    const struct call call = {verb, verbs, command};
    void *values = malloc(verb->size);
    int code;

    if (!values)
        return cli_fail(&call, FRAG_NOMEM, NULL);
    memcpy(values, verb->defaults, verb->size);
    options_parse(verb, argc, argv, values);
    code = verb->run(&call, values);
    options_free(verb, values);
    free(values);
    if (fflush(stdout) != 0 && code == EXIT_DONE) {
        fprintf(stderr, "fragsim %s: stdout could not be written\n",
                verb->name);
        code = EXIT_FILES;
    }
    return code;
}

int main(int argc, char **argv)
{
    const struct verb *verb;
    char *command;
    int code;

    signal(SIGXFSZ, SIG_IGN); /* write() then reports EFBIG */
    if (argc < 2) {
        manual_overview(stderr, verbs);
        return EXIT_USE;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        cli_version(stdout);
        return EXIT_DONE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        manual_overview(stdout, verbs);
        return EXIT_DONE;
    }
    verb = verb_find(verbs, argv[1]);
    if (!verb)
        return unknown(argv[1]);
    command = command_line(argc, argv);
    code = run(verb, argc - 1, argv + 1, command ? command : "fragsim");
    free(command);
    return code;
}
