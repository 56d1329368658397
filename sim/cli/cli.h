/* cli.h - the description of a command, and the services that all commands
 * share: exit codes, error messages, signals, the time, checks of output paths.
 *
 * Data goes to stdout, messages go to stderr. Only this folder prints, exits,
 * catches signals or reads the clock.
 *
 * To add a command: write sim/cli/verbs/<name>.c and add VERB(<name>) to
 * verbs.h; the parser, `--help`, `fragsim help` and the man page read the same
 * tables. Only main.c names the commands; other code finds them through
 * struct call.
 */
#ifndef FRAG_SIM_CLI_CLI_H
#define FRAG_SIM_CLI_CLI_H

#include "sim/cli/options.h"
#include "sim/experiments/parallel.h"
#include "sim/results/results.h"

/* Exit codes: name, number, description in the manual. */
#define FRAG_EXITS(X)                                                   \
    X(DONE, 0,                                                          \
      "success; a simulated out-of-memory is a result, not a "          \
      "failure")                                                        \
    X(NO, 1, "the answer is no")                                        \
    X(USE, 2,                                                           \
      "wrong use: an unknown or invalid option, policy or "             \
      "parameter")                                                      \
    X(INPUT, 3,                                                         \
      "an input is malformed; the message names the file and the "      \
      "place; a command with several traces answers for the others")    \
    X(FILES, 4,                                                         \
      "a file could not be read or written, or the host has no memory") \
    X(DEVICE, 5, "there is no device, or the device failed")            \
    X(UNKNOWN, 6, "the recording holds too little for an answer")       \
    X(INTERRUPTED, 130, "interrupted; no output was changed")

enum exit_code {
#define X(name, code, text) EXIT_##name = code,
    FRAG_EXITS(X)
#undef X
};

/* What an exit code says of one command. */
struct exit_case {
    const char *verb;
    enum exit_code code;
    const char *text;
};
extern const struct exit_case exit_cases[]; /* ended by a NULL verb */

/* One run of a command. */
struct call {
    const struct verb *verb;
    const struct verb *const *verbs; /* all commands, ended by NULL */
    const char *name;                /* as the user typed it: the verb's name or
                                        an alias of it */
    const char *command;             /* the command line, quoted for a shell */
    const struct texts *args;        /* that are not options */
};

struct verb {
    const char *name;
    const char *args;    /* in the usage line, such as "TRACE..." */
    const char *summary; /* one line */
    const char *about;   /* paragraphs, separated by empty lines */
    const char *example; /* a command line, or NULL */
    const char *words;   /* that an argument may be, each after a blank, for the
                            completion; NULL: none are known */
    const struct option_row *options; /* ended by a NULL name */
    size_t size;          /* bytes of the struct of values, whose first member
                             is struct common */
    const void *defaults; /* a struct of that size */
    size_t args_min, args_max; /* arguments that are not options */
    int (*run)(const struct call *call, const void *values); /* exit code */
};

#define VERB(name) extern const struct verb verb_##name;
#include "sim/cli/verbs.h"
#undef VERB

/* A further name of a command. It shares the command's table of options and its
 * exit codes; the command may read the arguments in another way
 * (call->name). */
struct alias {
    const char *name, *verb;
    const char *summary; /* what the name adds, one line */
};
extern const struct alias aliases[]; /* ended by a NULL name */

/* The verb of that name or alias in `verbs` (ended by NULL); NULL if there is
 * none. */
const struct verb *verb_find(const struct verb *const *verbs, const char *name);

/* The verb that a user probably means by a name that no verb has; NULL if there
 * is none. */
const struct verb *verb_meant(const struct verb *const *verbs,
                              const char *name);

/* Reads the options of a verb from argv (argv[0] is its name), runs it and
 * returns its exit code. Wrong use ends the process (options_parse). `command`
 * is the command line, quoted for a shell. */
int command_run(const struct verb *const *verbs, const struct verb *verb,
                int argc, char **argv, const char *command);

/* Prints "fragsim VERB: MESSAGE" to stderr, in its printable form, and returns
 * the exit code of err. MESSAGE is the text of e, or the description of err if
 * e is NULL or empty. For FRAG_OK nothing is printed. After a signal MESSAGE is
 * "interrupted". */
int cli_fail(const struct call *call, enum frag_err err,
             const struct frag_error *e);
/* Writes that line to `out`, for the command of that name. */
void cli_put_failure(FILE *out, const char *name, enum frag_err err,
                     const struct frag_error *e);
/* The same as cli_fail for wrong use; returns EXIT_USE. */
int cli_misuse(const struct call *call, const char *format, ...)
    FRAG_PRINTF(2, 3);

/* Seconds since the epoch: SOURCE_DATE_EPOCH if it is set, so that equal runs
 * write equal files; else the clock. */
int64_t cli_now(void);
bool cli_is_reproducible(void); /* SOURCE_DATE_EPOCH is set and not empty */

/* From here on, a signal that ends the process removes its temporary files
 * (traces/bytes/temporary.h) first: SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE,
 * SIGXCPU, SIGALRM, SIGUSR1 and SIGUSR2; so does SIGBUS for a mapped file that
 * became shorter, which ends the process with EXIT_FILES and a message. */
void cli_clean_signals(void);
/* From cli_catch_signals on, the first SIGINT, SIGTERM or SIGHUP sets
 * cli_interrupted and closes stdin; the second ends the process. So does the
 * first after five seconds in which nobody called cli_interrupted: then the
 * program is inside a call that does not return. */
void cli_catch_signals(void);
bool cli_interrupted(void);

/* The threads for a command whose user requested `wanted` threads; 0: one for
 * each processor (see parallel_room). If the address space has room for fewer
 * threads, a note goes to stderr unless `quiet`. Work on the threads stops when
 * cli_interrupted() is true. */
struct parallel cli_threads(const struct call *call, uint64_t wanted,
                            bool quiet);

/* Whether text for `out` is coloured. This depends on --color, NO_COLOR, TERM
 * and whether `out` is a terminal. */
bool cli_colors(const struct common *common, FILE *out);

/* EXIT_DONE if `path` may be written: it is NULL, no regular file exists there,
 * or `force`. Else prints the reason and returns EXIT_FILES, or EXIT_USE if an
 * argument of the command is the same file, which `force` does not permit. */
int cli_may_write(const struct call *call, const char *path, bool force);
/* The same for an output that is renamed into place: a device or a folder is
 * refused too. */
int cli_may_replace(const struct call *call, const char *path, bool force);

/* The length of `arg` quoted for a shell. If `out` is not NULL, writes the
 * quoted text there, without a terminating 0. The quoted text is printable: an
 * argument that is not is written as $'...' with octal escapes, which bash, zsh
 * and ksh read. */
size_t cli_quote(const char *arg, char *out);
/* The quoted text, to be freed. NULL if the host has no memory. */
char *cli_quoted(const char *arg);

/* The program and the command, without times. */
struct frag_provenance cli_provenance(const struct call *call);
/* Prints the versions of the program, of its libraries and of its formats. */
void cli_version(FILE *out);

#endif
