/* question.h - what an answer is about: a device of a recording, and the memory
 * in which its job shall run. Every command that answers asks here, so that all
 * of them speak of the same bound, and say which.
 */
#ifndef FRAG_SIM_EXPERIMENTS_QUESTION_H
#define FRAG_SIM_EXPERIMENTS_QUESTION_H

#include "sim/experiments/recording.h"

/* Where the bound comes from: the word in JSON, and a noun phrase. The user's
 * comes first; then the first of the others that is known. */
#define QUESTION_SOURCES(X)                                                    \
    X(CAPACITY, "capacity", "the capacity that was asked for")                 \
    X(GPU, "gpu", "what a process can have of that GPU")                       \
    X(LIMIT, "process_limit", "the process limit that was asked for")          \
    X(RECORDED, "recorded_limit", "the memory limit of the recorded process")  \
    X(INFERRED, "inferred_limit",                                              \
      "the least limit of the recorded process with which it fails as it did") \
    X(FAILURE, "failure",                                                      \
      "what the device could give when the recorded request failed")           \
    X(TOTAL, "total", "the memory of the recorded device")

enum question_source {
#define X(name, word, phrase) QUESTION_##name,
    QUESTION_SOURCES(X)
#undef X
        QUESTION_SOURCE_COUNT
};

extern const char *const question_words[QUESTION_SOURCE_COUNT];

/* What the user asked for. */
struct question_asked {
    struct frag_bound bound; /* of 0 bytes: none; FRAG_UNLIMITED: the least need
                                is asked for */
    enum question_source source; /* of that bound */
    bool or_least;   /* if no bound is known, the least need is asked for */
    frag_size total; /* of the recorded device; 0: not known */
};

struct question {
    const struct frag_trace *trace; /* borrowed, as recorded or completed */
    const struct frag_device_trace *device;
    struct frag_bound bound; /* of an inferred limit, the least value */
    enum question_source source;
    frag_size total;       /* of the recorded device; 0: not known */
    uint32_t place, count; /* it is device `place' of `count', from 1 */
};

/* Finds the bound. INVALID if none is known: the message says what to add. */
enum frag_err question_make(const struct question_asked *asked,
                            const struct frag_trace *t,
                            const struct frag_device_trace *d,
                            struct question *out,
                            struct frag_error *e) FRAG_MUST_CHECK;

/* Whether the bound is that which the recording has. */
bool question_is_recorded(const struct question *q);

enum { QUESTION_TEXT = 256 };

/* Writes the bound, from where it is, and which GPU of several it is about.
 * Returns text. */
const char *question_text(const struct question *q, char text[QUESTION_TEXT]);

#endif
