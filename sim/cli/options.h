/* options.h - options as rows: one table a command, read by the parser, the
 * help and the man page.
 */
#ifndef FRAG_SIM_CLI_OPTIONS_H
#define FRAG_SIM_CLI_OPTIONS_H

#include "sim/experiments/texts.h"
#include "traces/base.h"

enum option_kind {
    OPTION_SWITCH, /* bool */
    OPTION_TEXT,   /* const char * */
    OPTION_LIST,   /* struct texts: one more each time it is given */
    OPTION_SIZE,   /* frag_size */
    OPTION_NUMBER, /* uint64_t */
    OPTION_RATIO,  /* double, > 0 and <= 1 */
    OPTION_CHOICE, /* unsigned: index of the word in `choices` */
};

struct option_row {
    const char *name;  /* without the dashes */
    char key;          /* its letter, 0 if none */
    const char *value; /* what the help calls it; NULL for a switch */
    const char *help;
    enum option_kind kind;
    size_t offset;       /* of the value */
    const char *choices; /* "auto|always|never" */
};

enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* First member of every command's values. */
struct common {
    struct texts args;
    unsigned color; /* enum color */
    bool quiet;
};

extern const struct option_row common_options[]; /* ended by a NULL name */

struct verb;

/* Reads argv (argv[0] is the verb) into values, which hold the defaults. Wrong
 * use is said on stderr and ends the process with EXIT_USE; --help ends it with
 * EXIT_DONE. */
void options_parse(const struct verb *verb, int argc, char **argv,
                   void *values);
void options_free(const struct verb *verb, void *values);

/* Prints what --help prints, and ends the process with EXIT_DONE. */
void options_help(const struct verb *verb);

#endif
