/* answer.h - the one output of a command that answers: text on stdout, or the
 * same as JSON in a file. */
#ifndef FRAG_SIM_CLI_OUTPUT_ANSWER_H
#define FRAG_SIM_CLI_OUTPUT_ANSWER_H

#include "sim/cli/cli.h"

struct answer {
    /* Writes the answer: as text to out if j is NULL, else as the items of the
     * open array `results`. */
    enum frag_err (*put)(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e);
    /* Writes the members of the JSON object that follow `results`; may be NULL.
     */
    void (*put_after)(void *user, struct frag_json *j);
    void *user;
};

/* Writes the answer to the file `json` as JSON, or, if `json` is NULL, to
 * stdout as text. The output appears complete or not at all. Errors of put, of
 * sink_open and of sink_commit. */
enum frag_err answer_write(const struct call *call, const struct answer *a,
                           const char *json,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
