/* dry_process.h - what one process of a program left that ran without a GPU:
 * the path of its snapshot, and its notes (real/dry/dry_notes.h,
 * fragsim_dry.py).
 */
#ifndef FRAG_SIM_CLI_VERBS_DRY_DRY_PROCESS_H
#define FRAG_SIM_CLI_VERBS_DRY_DRY_PROCESS_H

#include "traces/base.h"

/* A line of the file of notes. */
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

/* The number of the first note of that kind whose name begins with the number
 * of the device; 0 if there is none. */
uint64_t dry_note_of_device(const struct dry_process *p, const char *kind,
                            uint32_t device);
/* The most bytes of host memory that the process had pinned. */
static inline frag_size dry_pinned(const struct dry_process *p)
{
    return dry_note_of_device(p, "pinned", 0);
}
/* The most bytes of host memory that it had, pinned ones included. */
static inline frag_size dry_host(const struct dry_process *p)
{
    return dry_note_of_device(p, "host", 0);
}
/* Says in `text` how a process ended that did not end by itself
 * (real/dry/dry_live.h); `status` is the exit code of the program. False if it
 * ended by itself. */
bool dry_death(const struct dry_process *p, int status, char *text,
               size_t room);
/* The name of the first note of that kind; NULL if there is none. */
const char *dry_note_name(const struct dry_process *p, const char *kind);

#endif
