/* mistaken.h - recognizes files that users take for a trace by mistake, and
 * says what they are and what to do. Private to traces/import/. */
#ifndef FRAG_TRACES_IMPORT_MISTAKEN_H
#define FRAG_TRACES_IMPORT_MISTAKEN_H

#include "traces/base.h"

struct frag_source; /* see traces/bytes/source.h */

/* Returns CORRUPT for an input that no importer recognizes; reads the source,
 * because the line that identifies a log may be its last. The message names the
 * kind of the input if it is known, else the formats of the importers. IO,
 * NOMEM or CORRUPT if the source cannot be read. */
enum frag_err mistaken_explain(struct frag_source *source,
                               struct frag_error *e) FRAG_MUST_CHECK;

#endif
