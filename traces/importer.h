/* importer.h - the interface of an importer, which reads one input format. The
 * list of all importers is in traces/import/importers.h.
 *
 * To add an importer, write traces/import/import_NAME.c and add IMPORTER(NAME)
 * to traces/import/import_list.h.
 */
#ifndef FRAG_TRACES_IMPORTER_H
#define FRAG_TRACES_IMPORTER_H

#include "traces/base.h"

struct frag_source;       /* see traces/bytes/source.h */
struct frag_build;        /* see traces/build/build.h */
struct frag_read_options; /* see traces/trace.h */

/* The advice of messages to a user who has no trace. */
#define FRAG_RECORD_SNAPSHOT                                                \
    "record a snapshot: torch.cuda.memory._record_memory_history() before " \
    "the work, torch.cuda.memory._dump_snapshot(\"run.pickle\") after it"

struct frag_importer {
    const char *name;    /* equals the name of its file or folder */
    const char *summary; /* one line for `fragsim help formats` */
    const char *made;    /* how users make such a file: a command, or one short
                            sentence without a final stop */
    const char *lacks;   /* what the format does not hold, of streams, exact
                            sizes, times, stacks, pools and what the recorded
                            allocator did; NULL: it holds all of them */
    const char *note;    /* a sentence that every trace of this format has among
                            its notes: what its answers cannot know; NULL:
                            none. A fact of one file is a note that `read`
                            adds */

    /* Returns whether an input may have this format. `bytes` are its first
     * `count` bytes, unpacked, at most FRAG_SOURCE_WINDOW. The first importer
     * of the list that returns true reads the input. */
    bool (*recognize)(const unsigned char *bytes, size_t count);

    /* Reads the source to its end and passes everything to the builder. opts
     * may be NULL. CORRUPT, IO or CANCELLED with a message in e; NOMEM. */
    enum frag_err (*read)(struct frag_source *source, struct frag_build *build,
                          const struct frag_read_options *opts,
                          struct frag_error *e);
};

#endif
