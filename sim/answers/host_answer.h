/* host_answer.h - what a process needs of pinned host memory, what of it the
 * rounding takes, and which setting of PyTorch's host allocator helps. */
#ifndef FRAG_SIM_ANSWERS_HOST_ANSWER_H
#define FRAG_SIM_ANSWERS_HOST_ANSWER_H

#include <stdio.h>

#include "sim/experiments/cell.h"
#include "sim/experiments/devices.h"
#include "sim/results/json.h"
#include "traces/facts.h"

enum { HOST_ANSWER_TRIED = 8 };

struct host_answer {
    const char *trace, *settings; /* as recorded; borrowed */
    struct frag_summary recorded; /* of the run with these settings */
    struct facts facts;           /* of the requests */
    bool is_of_driver; /* no recording of PyTorch: what the driver pinned */
    bool sizes_known;  /* the requested bytes are recorded */
    struct host_tried {
        const char *setting; /* that is added to the recorded ones */
        frag_size peak;      /* reserved */
    } tried[HOST_ANSWER_TRIED];
    size_t count;
};

/* Replays the device, which is FRAG_HOST_DEVICE, as recorded and with other
 * settings; requests to the driver are served as they were made. CORRUPT if
 * the device has no history, and the errors of cell_run; on error *out is
 * undefined. */
enum frag_err host_answer_make(const struct cell_settings *cell,
                               const struct input *in, struct host_answer *out,
                               struct frag_error *e) FRAG_MUST_CHECK;

void host_answer_put(const struct host_answer *a, FILE *out);
/* Writes an object; its sizes are in bytes. */
void host_answer_json(const struct host_answer *a, struct frag_json *j);

#endif
