/* space.h - the settings of PyTorch's allocator that a search may try.
 *
 * A point is one place, by its index, on each of the axes. Index 0 is PyTorch's
 * default, so a zeroed point changes nothing. A setting has one axis, except
 * roundup_power2_divisions, which has one for each class of request sizes.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_SPACE_H
#define FRAG_SIM_EXPERIMENTS_TUNE_SPACE_H

#include <gsl/gsl_rng.h>

#include "traces/base.h"

/* The settings: the name, a weight, and a caveat that the user must know before
 * exporting the setting ("": none). Of two points with equally many knobs, the
 * one with the lower sum of weights is the simpler one: a switch weighs least,
 * then a size, then what changes the requests, then what makes a job fail. */
#define TUNE_KNOBS(X)                                                       \
    X(EXPANDABLE, "expandable_segments", 1,                                 \
      "not on Windows or WSL, nor with cudaIpcGetMemHandle (custom "        \
      "all-reduce of inference servers), some NCCL and RDMA registrations") \
    X(LARGE, "large_segment_size_mb", 2,                                    \
      "PyTorch 2.11 and later; an older PyTorch does not know it")          \
    X(SPLIT, "max_split_size_mb", 2,                                        \
      "a free block of at least this size serves no smaller request")       \
    X(ROUNDING, "max_non_split_rounding_mb", 2, "")                         \
    X(DIVISIONS, "roundup_power2_divisions", 3,                             \
      "requests are rounded up, so the job allocates more memory")          \
    X(GC, "garbage_collection_threshold", 4,                                \
      "has an effect only with per_process_memory_fraction")                \
    X(LIMIT, "per_process_memory_fraction", 4,                              \
      "the job fails if it needs more, even if the device has memory left")

enum tune_knob {
#define X(upper, name, weight, caveat) TUNE_##upper,
    TUNE_KNOBS(X)
#undef X
        TUNE_KNOB_COUNT
};

extern const char *const tune_knob_names[TUNE_KNOB_COUNT];
extern const char *const tune_knob_caveats[TUNE_KNOB_COUNT];

enum {
    TUNE_CLASSES = 16, /* of request sizes: below 2 MiB, below 4 MiB, ... */
    TUNE_AXES = TUNE_DIVISIONS + TUNE_CLASSES + 2,
    TUNE_TEXT = 512, /* bytes that the text of any point fits in */
    TUNE_MOST_KNOBS = TUNE_KNOB_COUNT - 1 + TUNE_CLASSES, /* of any point */
};

struct tune_point {
    uint8_t at[TUNE_AXES];
};

struct tune_space {
    bool allowed[TUNE_KNOB_COUNT];
    unsigned least[TUNE_KNOB_COUNT]; /* no smaller value of the setting is
                                        tried; 0: no bound */
    unsigned version;    /* of PyTorch, whose rules a run follows; 0: 2.11 */
    unsigned classes;    /* of the sizes in the traces: 1 to TUNE_CLASSES */
    frag_size reference; /* bytes that equal a limit of 100 % */
    frag_size total; /* memory of the device; per_process_memory_fraction is a
                        share of it */
};

/* Forbids the settings and the values that a version of PyTorch 2 does not
 * know; see policies/torch/versions.h. */
void tune_restrict(struct tune_space *space, unsigned version);

/* The number of classes if the largest request has so many bytes. */
unsigned tune_classes(frag_size largest);

/* The setting of an axis, and the number of places on the axis. */
enum tune_knob tune_axis_knob(size_t axis);
size_t tune_axis_places(size_t axis);

/* Resets to the default what has no effect or must not be combined, so that
 * equal settings are equal points. */
void tune_settle(const struct tune_space *space, struct tune_point *p);

/* Writes the settings of a settled point in the format of
 * PYTORCH_CUDA_ALLOC_CONF; "" for the default. The text holds letters, digits
 * and the characters _ : , . [ ] > only, so a shell can quote it with '.
 * Returns text. */
const char *tune_text(const struct tune_space *space,
                      const struct tune_point *p, char text[TUNE_TEXT]);

/* Whether the setting differs from its default. */
bool tune_changes(const struct tune_point *p, enum tune_knob knob);

/* How complex a point is. */
struct tune_size {
    unsigned knobs;  /* settings that differ from the default; a list counts
                        once for each of its intervals of request sizes */
    unsigned weight; /* sum of the weights of these knobs */
};

struct tune_size tune_size(const struct tune_point *p);

/* Resets a setting to its default. */
void tune_reset(struct tune_point *p, enum tune_knob knob);

/* Moves all axes of roundup_power2_divisions to one place. */
void tune_set_divisions(struct tune_point *p, uint8_t place);

/* A random settled neighbour, which differs in one setting before it is
 * settled. */
struct tune_point tune_step(const struct tune_space *space,
                            const struct tune_point *p, gsl_rng *rng);

/* Computes point i of the coarse grid, settled; false if i is past the last
 * point. Points may repeat. */
bool tune_grid(const struct tune_space *space, size_t i, struct tune_point *p);

#endif
