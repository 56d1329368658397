/* cli.h - what a command is, and what all of them share.
 *
 * stdout is data, stderr is words. Only this folder prints, exits, catches
 * signals or asks for the time.
 *
 * To add a command: write sim/cli/verbs/<name>.c, add VERB(<name>) to verbs.h;
 * the parser, `--help`, `fragsim help` and the man page read the same tables.
 * Only main.c names the commands; the others find them through the call.
 */
#ifndef FRAG_SIM_CLI_CLI_H
#define FRAG_SIM_CLI_CLI_H

#include "sim/cli/options.h"
#include "sim/results/results.h"

/* How a process ends. */
#define FRAG_EXITS(X)                                            \
    X(DONE, 0,                                                   \
      "done; a simulated out-of-memory is a result, not a "      \
      "failure")                                                 \
    X(NO, 1,                                                     \
      "a check said no: validate found a divergence, --check a " \
      "broken policy, tune no setting within the bounds")        \
    X(USE, 2, "wrong use: an option, a policy, a parameter")     \
    X(INPUT, 3, "bad input: the words name file and place")      \
    X(FILES, 4,                                                  \
      "something could not be read or written, or the host "     \
      "has no memory")                                           \
    X(DEVICE, 5, "no device, or a device error")                 \
    X(INTERRUPTED, 130, "interrupted; no output was touched")

enum exit_code {
#define X(name, code, text) EXIT_##name = code,
    FRAG_EXITS(X)
#undef X
};

/* A command at work. */
struct call {
    const struct verb *verb;
    const struct verb *const *verbs; /* all commands, ended by NULL */
    const char *command; /* the whole command line, quoted for a shell */
};

struct verb {
    const char *name;
    const char *args;                 /* of the usage line, as "TRACE..." */
    const char *summary;              /* one line */
    const char *about;                /* paragraphs, parted by an empty line */
    const char *example;              /* a command line, or NULL */
    const struct option_row *options; /* ended by a NULL name */
    size_t size;          /* of the values: a struct whose first member is
                             struct common */
    const void *defaults; /* of that size */
    size_t args_min, args_max;
    int (*run)(const struct call *call, const void *values); /* exit code */
};

#define VERB(name) extern const struct verb verb_##name;
#include "sim/cli/verbs.h"
#undef VERB

/* Of verbs (ended by NULL) the one of that name; NULL if there is none. */
const struct verb *verb_find(const struct verb *const *verbs, const char *name);

/* Says the words on stderr, after "fragsim VERB: ", and returns the exit code
 * of err. The words are the error's text where it has none. */
int cli_fail(const struct call *call, enum frag_err err,
             const struct frag_error *e);
/* The same for what the user got wrong. */
int cli_misuse(const struct call *call, const char *format, ...)
    FRAG_PRINTF(2, 3);

/* Seconds since the epoch: SOURCE_DATE_EPOCH if it is set, so that equal runs
 * make equal files. */
int64_t cli_now(void);
bool cli_is_reproducible(void);

/* Whether SIGINT or SIGTERM came since cli_catch_signals(). */
void cli_catch_signals(void);
bool cli_interrupted(void);

/* Whether to colour what goes to out, after --color, NO_COLOR, TERM and what
 * out is. */
bool cli_colors(const struct common *common, FILE *out);

/* EXIT_DONE if path may be written: no file is there, or force. */
int cli_may_write(const struct call *call, const char *path, bool force);
/* The same for an output that is renamed into place: no device, no folder. */
int cli_may_replace(const struct call *call, const char *path, bool force);

/* The length of arg quoted for a shell; writes it, without a 0, if out is not
 * NULL. */
size_t cli_quote(const char *arg, char *out);

/* Opens the object that `--json` prints, up to its list of results. */
void cli_json_open(const struct call *call, struct frag_json *j, FILE *out);

/* Versions of the program and its libraries, one a line. */
void cli_version(FILE *out);

#endif
