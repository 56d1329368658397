/* batch_text.h - prints which batch sizes fit, as text and as JSON.
 */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_BATCH_TEXT_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_BATCH_TEXT_H

#include "sim/answers/batch.h"
#include "sim/cli/cli.h"

/* A recording that the answer rests on; borrowed. */
struct batch_source {
    uint64_t batch;
    struct frag_trace *trace;
    const struct frag_device_trace *device;
};

/* The answer with what it rests on. */
struct batch_report {
    const struct batch_question *question;
    const struct batch_answer *answer;
    const struct batch_source *sources;
    size_t source_count;
};

/* NOMEM. */
enum frag_err batch_text(const struct batch_report *r, FILE *out, bool color,
                         struct frag_error *e) FRAG_MUST_CHECK;
void batch_json(const struct batch_report *r, const struct call *call,
                FILE *out);

#endif
