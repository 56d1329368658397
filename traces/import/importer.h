/* importer.h - what an input format is.
 *
 * To add one: write traces/import_<name>.c, add IMPORTER(<name>) to
 * traces/import/list.h.
 */
#ifndef FRAG_TRACES_IMPORT_IMPORTER_H
#define FRAG_TRACES_IMPORT_IMPORTER_H

#include "traces/build/build.h"
#include "traces/bytes/source.h"

struct frag_importer {
    const char *name;    /* the file's name without import_ */
    const char *summary; /* one line for `fragsim help formats` */

    /* Whether the first bytes (up to FRAG_SOURCE_WINDOW) look like the format;
     * the first importer of the list that says so reads the input. */
    bool (*recognize)(const unsigned char *bytes, size_t count);

    /* Reads all of the source into the builder. */
    enum frag_err (*read)(struct frag_source *source, struct frag_build *build,
                          const struct frag_read_options *opts,
                          struct frag_error *e);
};

#define IMPORTER(name) extern const struct frag_importer frag_importer_##name;
#include "traces/import/list.h"
#undef IMPORTER

/* In the order of importers.h; NULL ends the array. */
extern const struct frag_importer *const frag_importers[];

#endif
