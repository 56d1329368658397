/* options.h - the options of a command as a table of rows. The parser,
 * `--help`, the man page and the shell completions read the same table.
 */
#ifndef FRAG_SIM_CLI_OPTIONS_H
#define FRAG_SIM_CLI_OPTIONS_H

#include "sim/experiments/texts.h"
#include "traces/base.h"

enum option_kind {
    OPTION_SWITCH, /* bool */
    OPTION_TEXT,   /* const char * */
    OPTION_LIST,   /* struct texts: each use of the option appends a text */
    OPTION_SIZE,   /* frag_size */
    OPTION_TOTAL,  /* frag_size, at most FRAG_TOTAL_MOST */
    OPTION_NUMBER, /* uint64_t */
    OPTION_DEVICE, /* uint64_t: a number, or FRAG_HOST_DEVICE for "host" */
    OPTION_CHOICE, /* unsigned: index of the word in `choices` */
};

struct option_row {
    const char *name;  /* without the dashes */
    char key;          /* short option; 0: none */
    const char *value; /* name of the value in the help; NULL for a switch */
    enum option_kind kind;
    size_t offset;       /* of the value in the command's struct of values */
    const char *choices; /* of OPTION_CHOICE: "auto|always|never" */
    const char *help;
};

enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* The options of all commands: the first member of every command's values. */
struct common {
    struct texts args; /* arguments that are not options */
    unsigned color;    /* enum color */
    bool quiet;
    frag_size most_unpacked; /* bytes; 0: see frag_source_most */
};

extern const struct option_row common_options[]; /* ended by a NULL name */

/* Rows that several commands have; `at` is the offset of the value. */
/* clang-format off */
#define FORCE_OPTION(at)                                                       \
    {"force", 'f', NULL, OPTION_SWITCH, at, NULL,                              \
     "overwrite an existing file"}
#define JOBS_OPTION(at)                                                        \
    {"jobs", 'j', "N", OPTION_NUMBER, at, NULL,                                \
     "number of threads (default: the processors that the process may use)"}
#define PAGE_OPTION(at)                                                        \
    {"output", 'o', "FILE", OPTION_TEXT, at, NULL,                             \
     "file of the page: .html, which a browser also prints"}
#define RECORDED_LIMIT_OPTION(at)                                              \
    {"recorded-limit", 0, "SIZE", OPTION_SIZE, at, NULL,                       \
     "memory limit that was set in the recorded process, if there was one "    \
     "(default: what the counters or the recorded OOMs show)"}
#define STATS_OPTION(at)                                                       \
    {"stats", 0, "FILE", OPTION_TEXT, at, NULL,                                \
     "memory_stats of the recorded allocator as JSON (default: NAME.json "     \
     "beside NAME.pickle); `none' reads no file"}
#define STEP_MARK_OPTION(at)                                                   \
    {"step-mark", 0, "NAME", OPTION_TEXT, at, NULL,                            \
     "marks of the recording at whose ends steps begin, without a trailing "   \
     "number (default: those that fit best, or the period of the events)"}
/* clang-format on */

struct verb;

/* Reads argv (argv[0] is the verb) into `values`, which hold the defaults on
 * entry. Wrong use is reported on stderr and ends the process with EXIT_USE;
 * --help ends the process with EXIT_DONE. */
void options_parse(const struct verb *verb, int argc, char **argv,
                   void *values);
/* Refuses an option that does not exist, that lacks its value, or that has one
 * and must not: it names the nearest option on stderr and ends the process with
 * EXIT_USE. -h, if no option of the verb has that name, prints the help and
 * ends it with EXIT_DONE. It comes before options_parse. */
void options_check(const struct verb *verb, int argc, char **argv);
/* Frees the lists in `values`, not `values` itself. */
void options_free(const struct verb *verb, void *values);

/* Prints the text of `--help` and ends the process with EXIT_DONE. */
void options_help(const struct verb *verb);

#endif
