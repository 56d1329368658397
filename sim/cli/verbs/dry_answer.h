/* dry_answer.h - what `fragsim dry` says about one process of the program: the
 * peaks, the need, the GPUs on which it fits, and what the stand-ins could not
 * answer. Private to sim/cli/verbs/.
 */
#ifndef FRAG_SIM_CLI_VERBS_DRY_ANSWER_H
#define FRAG_SIM_CLI_VERBS_DRY_ANSWER_H

#include "real/device/gpus.h"
#include "sim/cli/options.h"

/* A line of the file of notes (real/dry/notes.h, real/dry/fragsim_dry.py). */
struct dry_note {
    char kind[16];
    uint64_t number;
    char *name;
};

struct dry_process {
    char number[32]; /* of the process */
    long rank;       /* -1: none */
    char *trace;     /* path of the snapshot */
    struct dry_note *notes;
    size_t count;
    uint64_t room;
};

/* Reads the notes and the rank. CORRUPT, IO, NOMEM. */
enum frag_err dry_notes_read(const char *path, struct dry_process *out,
                             struct frag_error *e) FRAG_MUST_CHECK;
void dry_process_free(struct dry_process *p);

/* Prints the answer. `gpu` is that of the run; is_kept: the trace has the name
 * that the user gave. Errors of reading and replaying the trace. */
enum frag_err dry_answer(const struct dry_process *p,
                         const struct frag_gpu *gpu,
                         const struct common *common, bool is_kept,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
