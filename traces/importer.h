/* importer.h - what an input format is. Which ones there are is said in
 * traces/import/importers.h.
 *
 * To add one: write traces/import/<name>.c, add IMPORTER(<name>) to
 * traces/import/list.h.
 */
#ifndef FRAG_TRACES_IMPORTER_H
#define FRAG_TRACES_IMPORTER_H

#include "traces/base.h"

struct frag_source;       /* see traces/bytes/source.h */
struct frag_build;        /* see traces/build/build.h */
struct frag_read_options; /* see traces/trace.h */

struct frag_importer {
    const char *name;    /* that of its file or folder */
    const char *summary; /* one line for `fragsim help formats` */

    /* Whether the first bytes (up to FRAG_SOURCE_WINDOW) look like the format;
     * the first importer of the list that says so reads the input. */
    bool (*recognize)(const unsigned char *bytes, size_t count);

    /* Reads all of the source into the builder. */
    enum frag_err (*read)(struct frag_source *source, struct frag_build *build,
                          const struct frag_read_options *opts,
                          struct frag_error *e);
};

#endif
