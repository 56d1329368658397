/* startup.h - what an inference server says of its memory while it starts:
 * reads the log of vLLM (0.19 to 0.33) or SGLang (0.5), line by line.
 *
 * Sources: the texts are those of vllm/v1/worker/gpu_worker.py,
 * gpu_model_runner.py and vllm/v1/core/kv_cache_utils.py, and of SGLang's model
 * runner and memory pool, whose GB are GiB too. A size that the log does not
 * tell is FRAG_UNLIMITED.
 */
#ifndef FRAG_SIM_ANSWERS_STARTUP_H
#define FRAG_SIM_ANSWERS_STARTUP_H

#include <stdio.h>

#include "sim/results/json.h"

struct startup_failure {
    const char *server; /* NULL: any */
    const char *phrase; /* of the log */
    const char *what;   /* happened, as a sentence without its subject */
    const char *advice; /* for a start, and for a request if the server ran */
    const char *advice_later;
};

/* The worst of all ranks: of the cache and the tokens the least, of the rest
 * the most. */
struct startup {
    const char *server;   /* NULL: no line of a server */
    frag_size total;      /* of the device */
    frag_size left;       /* free on the device when the server starts */
    frag_size budget;     /* that the server may use of it */
    frag_size weights;    /* with what the libraries took while they loaded */
    frag_size activation; /* most at once in the profile run */
    frag_size outside;    /* of PyTorch, that the profile run added */
    frag_size cache;      /* keys and values */
    uint64_t tokens;      /* that the cache holds */
    frag_size graphs;     /* CUDA graphs */
    frag_size
        cache_most; /* the cache that the server says would fill the GPU */
    bool is_up;     /* the server serves */
    const struct startup_failure *failure; /* the first; NULL: none */
    bool failed_later;                     /* when the server served */
    uint64_t line;                         /* of the log, of the failure */
};

/* Reads the lines of `in` to its end. */
void startup_read(FILE *in, struct startup *out);

/* Writes what is told, a line each, and the failure; the members of an object.
 */
void startup_put(const struct startup *s, FILE *out);
void startup_json(const struct startup *s, struct frag_json *j);

#endif
