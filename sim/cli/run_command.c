/* run_command.c - runs a command: reads its options, and lets it answer. */
#include <stdlib.h>
#include <string.h>

#include "sim/cli/apart.h"
#include "sim/cli/cli.h"
#include "sim/experiments/plugin.h"
#include "traces/bytes/source.h"

/* In the environment, the bound is that of the programs that this one runs,
 * too. */
static void allow_unpacked(frag_size bytes)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
    if (bytes)
        setenv(SOURCE_MOST_VARIABLE, text, 1);
}

int command_run(const struct verb *const *verbs, const struct verb *verb,
                int argc, char **argv, const char *command)
{
    void *values = malloc(verb->size);
    const struct common *common = values;
    const struct call call = {verb, verbs, argv[0], command, &common->args};
    int code;

    if (!values)
        return cli_fail(&call, FRAG_NOMEM, NULL);
    memcpy(values, verb->defaults, verb->size);
    options_check(verb, argc, argv);
    options_parse(verb, argc, argv, values);
    allow_unpacked(common->most_unpacked);
    plugin_guard(apart_continue, &call);
    code = verb->run(&call, values);
    options_free(verb, values);
    free(values);
    /* A write that failed earlier shows only in the error flag. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_DONE) {
        fprintf(stderr, "fragsim %s: stdout could not be written\n",
                verb->name);
        code = EXIT_FILES;
    }
    return code;
}
