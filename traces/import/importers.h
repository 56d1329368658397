/* importers.h - the list of all input formats. traces/importer.h defines what
 * an input format is. */
#ifndef FRAG_TRACES_IMPORT_IMPORTERS_H
#define FRAG_TRACES_IMPORT_IMPORTERS_H

#include "traces/importer.h"

#define IMPORTER(name) extern const struct frag_importer frag_importer_##name;
#include "traces/import/import_list.h"
#undef IMPORTER

/* All importers in the order of import_list.h. NULL ends the array. */
extern const struct frag_importer *const frag_importers[];

/* Returns CORRUPT for an input that no importer recognizes; reads the source,
 * because the line that identifies a log may be its last. The message names the
 * kind of the input if it is known, else the formats of the importers. IO,
 * NOMEM or CORRUPT if the source cannot be read. */
enum frag_err mistaken_explain(struct frag_source *source,
                               struct frag_error *e) FRAG_MUST_CHECK;

#endif
