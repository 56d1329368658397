/* dry_try.h - a program at several values: what it needs at each, and the
 * largest value that fits a GPU; or on several GPUs: what it takes of each.
 */
#ifndef FRAG_SIM_CLI_VERBS_DRY_DRY_TRY_H
#define FRAG_SIM_CLI_VERBS_DRY_DRY_TRY_H

#include "sim/cli/verbs/dry/dry_answer.h"

/* The program at one value, or on the GPU of that id. */
struct dry_row {
    char *value;              /* owned */
    struct dry_answer answer; /* without devices if there is none; owned */
};

struct dry_try {
    const char *values, *gpus;     /* as the user wrote them; one is NULL */
    const struct frag_gpu *gpu;    /* on which all values run */
    const struct texts *command;   /* the program, with {} in its arguments if
                                      there are values */
    const struct frag_gpu *judged; /* the GPU that was asked for; NULL: none */
    bool color;
    /* Runs a command on a GPU and finds its answer. */
    enum frag_err (*run)(void *user, const struct texts *command,
                         const struct frag_gpu *gpu, struct dry_answer *answer,
                         struct frag_error *e);
    void *user;
    struct dry_row *rows; /* owned */
    size_t count;
    uint64_t room;
};

/* Whether the values and the command can be tried: INVALID if not. */
enum frag_err dry_try_check(const struct dry_try *t,
                            struct frag_error *e) FRAG_MUST_CHECK;
/* Makes the runs. Errors of `run`; NOMEM. The caller frees the rows, on error
 * too. */
enum frag_err dry_try_all(struct dry_try *t,
                          struct frag_error *e) FRAG_MUST_CHECK;
void dry_try_free(struct dry_try *t);

/* Whether a value fits the GPU that was asked for, or any of the table; whether
 * the program fits one of the GPUs on which it ran. */
bool dry_try_fits(const struct dry_try *t);
/* The functions of a struct answer, whose user is the struct dry_try. */
enum frag_err dry_try_put(void *user, FILE *out, struct frag_json *j,
                          struct frag_error *e) FRAG_MUST_CHECK;
void dry_try_put_after(void *user, struct frag_json *j);

#endif
