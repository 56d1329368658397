/* cli_versions.h - the versions of the tool and of the formats and interfaces
 * that other programs rely on, each with what it promises. CHANGELOG.md says
 * what each of them changed. */
#ifndef FRAG_SIM_CLI_CLI_VERSIONS_H
#define FRAG_SIM_CLI_CLI_VERSIONS_H

#include <stdio.h>

#include "sim/cli/options.h"
#include "sim/results/results.h"

struct version {
    const char *name;
    const char *text; /* the version; NULL: it is the number */
    unsigned number;
    const char *promise;
};
extern const struct version versions[]; /* ended by a NULL name */

enum { VERSION_ROOM = 32 };

/* Writes the version of a row to text and returns text. */
const char *version_text(const struct version *v, char text[VERSION_ROOM]);

/* Prints all versions but that of the tool in one line. */
void versions_line(FILE *out);

/* Says on stderr, unless common->quiet, that the result file at `path` has an
 * earlier schema that is deprecated. */
void versions_note(const struct common *common, const char *path,
                   const struct frag_loaded *file);

#endif
