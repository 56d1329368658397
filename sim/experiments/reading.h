/* reading.h - how an experiment reads its traces: as they were recorded, or,
 * for a job that died, completed (traces/steps/complete.h); then edited
 * (traces/edit/edit.h). */
#ifndef FRAG_SIM_EXPERIMENTS_READING_H
#define FRAG_SIM_EXPERIMENTS_READING_H

#include "traces/edit/edit.h"
#include "traces/steps/complete.h"

enum reading_kind {
    READING_COMPLETED, /* the trace of a job that died is completed */
    READING_RECORDED,  /* notes say how far the recording reaches */
    READING_RAW,       /* the trace and the notes of its reader */
};

struct trace_reading {
    enum reading_kind kind;
    frag_size limit;   /* as in struct frag_read_options; 0: that of the file of
                          counters beside the trace (frag_stats_file_limit), and
                          not known without such a file */
    bool ignores_file; /* the file of counters is not read */
    bool holds_alone;  /* the answer is about what is held and hangs on no
                          settings: changes of settings that the recording does
                          not tell are not looked for */
    struct frag_completion_options completion;
    const struct frag_edits *edits; /* borrowed; NULL: none */
    size_t threads;                 /* as in struct frag_read_options */
};

/* Opens a trace and treats it as its reading says. Other traces that the edits
 * name are opened with the same reading, without the edits. A file with the
 * name of the counters that is another file is ignored, and a note says so.
 * `progress` and `user` are as in struct frag_read_options. Errors of
 * frag_trace_open, frag_trace_complete and frag_edits_apply. */
enum frag_err reading_open(const struct trace_reading *reading,
                           const char *path, frag_progress *progress,
                           void *user, struct frag_trace **out,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
