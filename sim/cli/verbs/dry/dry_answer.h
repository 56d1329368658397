/* dry_answer.h - what a program needs that ran without a GPU: for each device
 * of each process the need under each setting, the place of the peak in the
 * program, and whether it fits a GPU.
 */
#ifndef FRAG_SIM_CLI_VERBS_DRY_DRY_ANSWER_H
#define FRAG_SIM_CLI_VERBS_DRY_DRY_ANSWER_H

#include "real/device/gpus.h"
#include "sim/answers/held/memory_classes.h"
#include "sim/answers/sites.h"
#include "sim/answers/startup.h"
#include "sim/cli/cli.h"
#include "sim/cli/verbs/dry/dry_process.h"
#include "sim/experiments/capacity/spans.h"

/* The notes of the stand-ins that the answer lists: kind, heading. */
#define DRY_LISTS(X)                                                           \
    X("read", "values that the program read from the device, that nothing "    \
              "tells; they were 0")                                            \
    X("drawn", "values that the program read from the device and that hang "   \
               "on drawn numbers")                                             \
    X("assumed", "values that the program read from the device, as --assume "  \
                 "says")                                                       \
    X("exact", "values that the program read from the device, which were "     \
               "computed")                                                     \
    X("size", "workspaces whose size is not known; they were 0 bytes, or as "  \
              "said here")                                                     \
    X("room", "lines of the program that ask how much memory is free")         \
    X("guess", "answers that a GPU would compute; those of the stand-ins are " \
               "fixed")                                                        \
    X("lacks", "functions that the stand-ins lack; they failed")

enum { DRY_WAYS = 2 };

/* A setting of the allocator. The answer compares the one with which the
 * program ran, which is the first, and the one that people try. */
struct dry_way {
    const char *name, *params; /* params NULL: PyTorch's default */
};

/* A request, and where in the program it is. */
struct dry_place {
    uint64_t event;       /* FRAG_NEVER: none */
    uint64_t step, steps; /* from 1; step 0: before the first, steps + 1: after
                             the last of the steps */
    bool is_open;         /* the first or last step, known in part */
    frag_size bytes;      /* of the request */
    frag_size live;       /* bytes requested by live blocks, with it */
    char site[SITE_TEXT]; /* function, file and line; "": not recorded */
    bool is_after;        /* the request has no stack, as those of the backward
                             pass: the site is that of the last one that has */
};

/* A device that a process used. */
struct dry_device {
    const struct dry_process *process;
    uint32_t device;   /* as the process counts */
    uint64_t gpu;      /* as the machine counts */
    frag_size outside; /* bytes of the device that PyTorch's allocator did not
                          take: the context and libraries */
    frag_size counted_allocated, counted_reserved,
        counted_requested;     /* peaks, by PyTorch */
    frag_size traced_reserved; /* the same peak by the trace */
    bool died;                 /* a request failed */
    struct {
        struct frag_capacity_span need, unlimited;
    } ways[DRY_WAYS]; /* of the run that needs most */
    struct dry_bounds {
        frag_size least, most;
    } need[DRY_WAYS], reserved[DRY_WAYS]; /* of all runs; reserved: the peak */
    struct class_row classes[CLASS_COUNT];
    struct dry_place peak;  /* the first event with most bytes live */
    struct dry_place death; /* the first request that fails on the GPU of the
                               answer, as the program ran */
};

struct dry_answer {
    const struct frag_gpu *gpu;
    struct dry_way ways[DRY_WAYS];
    char *settings;        /* of the allocator as the program ran; owned */
    int status;            /* exit code of the program */
    unsigned runs;         /* with other drawn values, the first included */
    unsigned left_out;     /* of these, ended in another way than the first */
    bool is_kept;          /* the traces have the names that the user gave */
    struct startup server; /* what a server said of its memory */
    bool color;            /* of the text */
    struct dry_process *processes; /* owned */
    size_t process_count;
    struct dry_device *devices; /* in the order of the processes */
    size_t count;
    uint64_t room;
};

/* Reads the traces of the processes and fills `devices`. Errors of reading and
 * replaying them; the caller frees *a, on error too. */
enum frag_err dry_answer_find(struct dry_answer *a, const struct common *common,
                              struct frag_error *e) FRAG_MUST_CHECK;
void dry_answer_free(struct dry_answer *a);

/* Bytes that a GPU has to supply to all that use the device's GPU under the
 * setting, and the bytes of that GPU that are taken by others then. The need is
 * FRAG_UNLIMITED if there is none. */
frag_size dry_need(const struct dry_answer *a, const struct dry_device *d,
                   size_t way);
frag_size dry_outside(const struct dry_answer *a, const struct dry_device *d,
                      const struct frag_gpu *g);
/* What PyTorch can have of the GPU beside them and what the driver keeps. */
frag_size dry_room(const struct dry_answer *a, const struct dry_device *d,
                   const struct frag_gpu *g);
/* Whether that is enough under the setting. */
bool dry_fits(const struct dry_answer *a, const struct dry_device *d,
              const struct frag_gpu *g, size_t way);
/* What stays free of the GPU of the answer as the program ran; 0 if it does not
 * fit. */
frag_size dry_left(const struct dry_answer *a, const struct dry_device *d);
/* Whether all devices fit the GPU under the setting. */
bool dry_all_fit(const struct dry_answer *a, const struct frag_gpu *g,
                 size_t way);
/* The smallest need of all runs; dry_need is the largest. */
frag_size dry_least(const struct dry_answer *a, const struct dry_device *d,
                    size_t way);
/* Whether the smallest needs of all runs are enough for the GPU. */
bool dry_may_fit(const struct dry_answer *a, const struct frag_gpu *g,
                 size_t way);
/* Whether the answer holds for that GPU, too: not for another than that on
 * which the program ran if it asks how much memory is free. */
bool dry_tells(const struct dry_answer *a, const struct frag_gpu *g);
/* Whether the processes have a note of that kind (fragsim_dry.py). */
bool dry_has(const struct dry_answer *a, const char *kind);
/* Sets the bounds of the device to those of its own run; the peak reserved as
 * the program ran is that which PyTorch counted. */
void dry_bounds_of(struct dry_device *d, size_t way);
/* Adds a run with other drawn values: the needs are those of the run that needs
 * most, and *a that run; *other is what remains. If it ended in another way or
 * used other devices, it is counted as left out. */
void dry_add_run(struct dry_answer *a, struct dry_answer *other);
/* Moves both ends by the mean gap between the runs, once, after the last run:
 * the next draw may need more than all before. That is the best estimate of the
 * ends of a uniform distribution (Goodman, JASA 47, 1952). */
void dry_widen(struct dry_answer *a);
/* Whether two runs need the same. */
bool dry_is_same(const struct dry_answer *a, const struct dry_answer *other);
/* How many devices use the GPU of this one. */
size_t dry_sharers(const struct dry_answer *a, const struct dry_device *d);
/* The smallest GPU of the table on which all devices fit under the setting;
 * NULL: none. */
const struct frag_gpu *dry_smallest(const struct dry_answer *a, size_t way);
/* The device that needs most as the program ran. */
const struct dry_device *dry_largest(const struct dry_answer *a);
/* Whether a request failed. */
bool dry_died(const struct dry_answer *a);
/* Whether PyTorch counted more memory than the trace of the device has; whether
 * that is so of any device, or a process left no trace. */
bool dry_lacks_memory(const struct dry_device *d);
bool dry_any_lacks_memory(const struct dry_answer *a);
/* Whether the program ended by itself and its traces have all memory, so that
 * the numbers are those of a whole run. */
bool dry_is_whole(const struct dry_answer *a);

/* The evidence for the answer and its limits: calls `put` for each, a sentence
 * without the full stop. */
void dry_limits(const struct dry_answer *a,
                void (*put)(void *user, const char *text), void *user);

/* The function of a struct answer, whose user is the struct dry_answer. */
enum frag_err dry_put(void *user, FILE *out, struct frag_json *j,
                      struct frag_error *e) FRAG_MUST_CHECK;
/* The member `server` of the JSON. */
void dry_put_server(const struct dry_answer *a, struct frag_json *j);
/* The JSON, as the items of the open array `results`. */
void dry_put_json(const struct dry_answer *a, struct frag_json *j);
#endif
