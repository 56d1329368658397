/* conf.h - what a release of PyTorch makes of each setting of its allocator,
 * and which settings are then in force.
 *
 * Whether a value is accepted is decided by the torch policy, whose grammar is
 * that of the release; which release knows a setting, by
 * policies/torch/versions.h. tests/recordings/check_keys.py compares both with
 * the parsers of PyTorch's releases.
 */
#ifndef FRAG_SIM_ANSWERS_CONF_CONF_H
#define FRAG_SIM_ANSWERS_CONF_CONF_H

#include "policies/torch/versions.h"
#include "sim/experiments/cell.h"

enum conf_status {
    CONF_ACCEPTED,
    CONF_IGNORED, /* PyTorch accepts it, and it has no effect */
    CONF_UNKNOWN, /* a release that fragsim does not know may have it */
    CONF_REFUSED, /* PyTorch raises an error */
    CONF_STATUSES
};
extern const char *const conf_status_names[CONF_STATUSES]; /* "accepted", ... */

/* A text of settings. */
struct conf_source {
    const char *variable; /* of the environment; NULL: an argument */
    const char *text;     /* NULL: the variable is not set */
};

/* An argument, or the variables of the environment in the order in which
 * PyTorch looks for them: it uses the first that is set. */
enum { CONF_SOURCES = 3 };

struct conf_input {
    struct conf_source sources[CONF_SOURCES]; /* an argument is the first */
    bool uncached; /* PYTORCH_NO_CUDA_MEMORY_CACHING is set */
};

enum { CONF_MOST = 1000 }; /* characters of all texts */
enum { CONF_WHY = 400, CONF_TEXT = CONF_MOST + 16 };

/* One setting, as the user wrote it but for white space. */
struct conf_item {
    const struct conf_source *source;
    const char *key, *value; /* value is "" if there is none */
    size_t place; /* the number of commas before it in all sources: equal in all
                     releases, which divide a text in different ways */
    enum conf_status status;
    char why[CONF_WHY]; /* a sentence; "" if the setting is accepted */
    bool is_read;       /* the torch policy can follow it */
};

struct conf_answer {
    const struct conf_input *input;
    unsigned version;
    struct conf_item *items; /* in the order of the texts */
    size_t count;
    char text[CONF_TEXT]; /* those that are neither refused nor unknown */
    bool is_driver;       /* backend:cudaMallocAsync serves the program */
    struct frag_params *used, *defaults; /* the torch policy's settings, of
                                            `text` and without any */
    char *words[CONF_SOURCES];           /* storage of the items' texts */
};

/* Reads settings as a version of PyTorch 2 does (policies/torch/versions.h). A
 * wrong setting has its status, it is no error. INVALID: the text is too long;
 * NOMEM. The caller closes *out, on error too. *input outlives *out. */
enum frag_err conf_read(const struct conf_input *input, unsigned version,
                        struct conf_answer *out,
                        struct frag_error *e) FRAG_MUST_CHECK;
void conf_close(struct conf_answer *a);

/* The most serious status. */
enum conf_status conf_verdict(const struct conf_answer *a);

/* The setting in whose text the given place lies; NULL: there is none. */
const struct conf_item *conf_item_at(const struct conf_answer *a, size_t place);

#endif
