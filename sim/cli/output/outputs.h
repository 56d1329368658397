/* outputs.h - the output options of a command (--output, --json, --csv,
 * --force) and the checks of their paths before the command starts. It writes
 * nothing.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_OUTPUTS_H
#define FRAG_SIM_CLI_OUTPUT_OUTPUTS_H

#include "sim/cli/cli.h"

enum { OUTPUTS_OWN = 2 };

/* The member `outputs` of a verb's values. Paths; NULL: no such output. */
struct outputs {
    const char *hdf5, *json, *csv;
    const char *own[OUTPUTS_OWN]; /* text outputs that only this verb has */
    bool force;
};

/* Rows for a verb's table of options. AT(field) is the offset of the field in
 * the verb's values. */
/* clang-format off */
#define OUTPUT_HDF5_OPTION(AT)                                                 \
    {"output", 'o', "FILE", OPTION_TEXT, AT(outputs.hdf5), NULL,               \
     "result file, HDF5; see `fragsim help results`"}

#define OUTPUT_JSON_OPTION(AT, help)                                           \
    {"json", 0, "FILE", OPTION_TEXT, AT(outputs.json), NULL, help}

#define OUTPUT_CSV_OPTION(AT)                                                  \
    {"csv", 0, "FILE", OPTION_TEXT, AT(outputs.csv), NULL,                     \
     "rows as CSV; - is stdout"}

#define OUTPUT_FORCE_OPTION(AT, help)                                          \
    {"force", 'f', NULL, OPTION_SWITCH, AT(outputs.force), NULL, help}

#define OUTPUT_FORCE_ALL "overwrite existing outputs"
/* clang-format on */

/* EXIT_DONE if no two outputs have the same path and the HDF5 file does not go
 * to stdout. Else prints the reason and returns EXIT_USE. */
int outputs_misused(const struct call *call, const struct outputs *o);

/* EXIT_DONE if no output exists, or existing outputs may be overwritten: with
 * `force`, or if they are `mine` (left by an interrupted run that this run
 * resumes). Else prints the reason and returns EXIT_FILES. */
int outputs_exist(const struct call *call, const struct outputs *o, bool mine);

/* Both checks; existing outputs are not mine. */
int outputs_check(const struct call *call, const struct outputs *o);

#endif
