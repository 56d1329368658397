/* verdict.h - what happened to a job, what to do now, and how sure that is: one
 * cause and one action, in the words of a person who has to act.
 *
 * The answers of explain (at the recorded failure, and at a bound that the
 * caller chooses), of tune, and the need decide. No change is promised that was
 * not replayed. Nothing is printed here; texts may hold names of the program,
 * which are not printable yet (traces/printable.h).
 */
#ifndef FRAG_SIM_ANSWERS_VERDICT_VERDICT_H
#define FRAG_SIM_ANSWERS_VERDICT_VERDICT_H

#include "sim/answers/explain/explain.h"

/* What to do: the word, and when it is chosen. The first that holds is. */
#define VERDICT_ACTIONS(X)                                                   \
    X(RECORD, "record", "the file has no history, or too little of it")      \
    X(LEAK, "fix_leak",                                                      \
      "a leak is the cause, or was found in a job that "                     \
      "lives")                                                               \
    X(OUTSIDE, "free_device",                                                \
      "memory outside PyTorch is the cause, and the "                        \
      "job would fit without it")                                            \
    X(NOTHING, "nothing", "the job fits as it is")                           \
    X(SETTING, "setting", "a setting of the allocator is enough")            \
    X(PROGRAM, "change_program", "a change of the program helps")            \
    X(DEVICE, "larger_device",                                               \
      "nothing else is known to be enough; a setting that may be enough is " \
      "named after it")

enum verdict_action {
#define X(name, word, text) VERDICT_##name,
    VERDICT_ACTIONS(X)
#undef X
        VERDICT_ACTION_COUNT
};

extern const char *const verdict_action_words[VERDICT_ACTION_COUNT];

/* What happened: a cause of explain for a job that died or went on after a
 * failure, or that would fail at the bound; or one of these. */
enum verdict_state {
    VERDICT_DIED,   /* of a failed request */
    VERDICT_CAUGHT, /* a request failed, and the program went on */
    VERDICT_WOULD,  /* nothing failed, but something does at the bound */
    VERDICT_FITS,   /* nothing failed, and nothing does at the bound */
    VERDICT_UNSEEN, /* the file has no history */
    VERDICT_STATES
};

extern const char *const verdict_state_words[VERDICT_STATES];

enum { VERDICT_TEXT = 1024, VERDICT_NEEDS = 2 };

/* What the job needs with a setting: the one with which it ran, and expandable
 * segments, or, if it ran with these, PyTorch's default. */
struct verdict_need {
    char setting[TUNE_TEXT]; /* "" for PyTorch's default */
    frag_size bytes;         /* the least bound from which on nothing fails;
                                FRAG_UNLIMITED: not known */
    bool is_most;            /* less may do: the search took too long */
    bool is_open;            /* the job died, and needs more; how much more is
                                not known */
    frag_size enough;        /* of a job that died: enough with a probability of
                                FRAG_SPREAD_LEVEL for all further steps; 0: not known
                                */
};

struct verdict_question {
    struct question about; /* as recorded, READING_RAW; its bound is finite */
    const struct frag_trace *rest; /* the whole run of a job that died; NULL:
                                      its recording is completed */
    const char *at; /* the failure that is explained, as for explain_make */
    const struct cell_settings *settings;
    const struct texts *without; /* as in struct tune_ladder */
    struct parallel on;
    /* Is told what comes next, and the progress of that, by one thread. */
    void (*began)(void *user, unsigned stage, const char *name);
    frag_progress *progress;
    void *user;
};

enum { VERDICT_STAGES = 3 }; /* of `began', from 1 */

struct verdict {
    /* The answers on which the verdict rests. */
    struct verdict_question question;
    struct explain explained[2];
    const struct explain *failure; /* the recorded one; NULL: there is none */
    const struct explain *here; /* at the bound; `failure' if that is its bound;
                                   NULL: the file has no history */
    struct frag_trace *own;     /* the completed trace; NULL with question.rest
                                 */
    const struct frag_trace *whole; /* the trace to which the next apply */
    const struct frag_device_trace *device; /* of it */
    struct frag_completion completion;      /* of a job that died */
    struct tune_case tuned;
    struct tune_ladder ladder; /* no rungs for a file without history */
    struct verdict_need needs[VERDICT_NEEDS]; /* of two rungs */

    /* The verdict. */
    enum verdict_state state;
    enum explain_cause cause; /* NONE unless DIED, CAUGHT or WOULD */
    enum verdict_action action;
    const struct tune_rung *rung; /* of SETTING, or one that is worth trying
                                     beside another action; else NULL */
    const struct explain_change *change; /* of PROGRAM, and of LEAK if freeing
                                            was replayed; else NULL */
    frag_size saved;                     /* bytes of the peak, by the action */
    char happened[VERDICT_TEXT], todo[VERDICT_TEXT], sure[VERDICT_TEXT];
};

/* Answers. The pointers of the question are borrowed until verdict_close.
 * CANCELLED; errors of explain_make, tune_climb and frag_capacity_need. On
 * error *v need not be closed. */
enum frag_err verdict_make(const struct verdict_question *question,
                           struct verdict *v,
                           struct frag_error *e) FRAG_MUST_CHECK;
void verdict_close(struct verdict *v); /* zeroed, or closed, is fine */

/* The bytes of a need that a device must have: enough for further steps, if
 * that is known. */
static inline frag_size verdict_need_bytes(const struct verdict_need *n)
{
    return n->enough > n->bytes ? n->enough : n->bytes;
}

/* Decides, from the answers. Private to sim/answers/verdict/. */
void verdict_decide(struct verdict *v);

#endif
