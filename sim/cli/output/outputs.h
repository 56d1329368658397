/* outputs.h - where a command's results go: the options that say so, and what
 * is looked at before it begins.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_OUTPUTS_H
#define FRAG_SIM_CLI_OUTPUT_OUTPUTS_H

#include "sim/cli/cli.h"

enum { OUTPUTS_OWN = 2 };

/* The member `outputs` of a verb's values; NULL for what is not wanted. */
struct outputs {
    const char *hdf5, *json, *csv;
    const char *own[OUTPUTS_OWN]; /* texts under options of the verb's own */
    bool force;
};

/* Rows of a verb's options; AT is offsetof the field in its values. */
/* clang-format off */
#define OUTPUT_HDF5_OPTION(AT)                                                 \
    {"output", 'o', "FILE", "result file, HDF5; see `fragsim help results`",   \
     OPTION_TEXT, AT(outputs.hdf5), NULL}

#define OUTPUT_JSON_OPTION(AT, help)                                           \
    {"json", 0, "FILE", help, OPTION_TEXT, AT(outputs.json), NULL}

#define OUTPUT_CSV_OPTION(AT)                                                  \
    {"csv", 0, "FILE", "rows as CSV; - is stdout", OPTION_TEXT,                \
     AT(outputs.csv), NULL}

#define OUTPUT_FORCE_OPTION(AT, help)                                          \
    {"force", 'f', NULL, help, OPTION_SWITCH, AT(outputs.force), NULL}

#define OUTPUT_FORCE_ALL "write over outputs that exist"
/* clang-format on */

/* EXIT_DONE if no two are the same and none goes where it cannot: an HDF5 file
 * to stdout. Else it is said, EXIT_USE. */
int outputs_misused(const struct call *call, const struct outputs *o);

/* EXIT_DONE if none is there, or they may be written over: by force, or as they
 * are mine. Else it is said, EXIT_FILES. */
int outputs_exist(const struct call *call, const struct outputs *o, bool mine);

/* Both, of outputs that cannot be mine. */
int outputs_check(const struct call *call, const struct outputs *o);

#endif
