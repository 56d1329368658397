/* space.h - the settings of PyTorch's allocator that a search may try.
 *
 * A point is a place on each of the axes, by index; index 0 is PyTorch's
 * default, so a zeroed point changes nothing. One axis a setting, but for
 * roundup_power2_divisions, which has one for each class of sizes.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_SPACE_H
#define FRAG_SIM_EXPERIMENTS_TUNE_SPACE_H

#include <gsl/gsl_rng.h>

#include "traces/base.h"

/* The settings: name, and what a user must know before exporting it ("":
 * nothing). */
#define TUNE_KNOBS(X)                                                       \
    X(EXPANDABLE, "expandable_segments",                                    \
      "not on Windows or WSL, nor with cudaIpcGetMemHandle (custom "        \
      "all-reduce of inference servers), some NCCL and RDMA registrations") \
    X(LARGE, "large_segment_size_mb",                                       \
      "PyTorch 2.11 and later; before, it is an unknown setting")           \
    X(SPLIT, "max_split_size_mb",                                           \
      "a free block of this size and more serves no smaller request")       \
    X(ROUNDING, "max_non_split_rounding_mb", "")                            \
    X(DIVISIONS, "roundup_power2_divisions",                                \
      "requests are rounded up, so memory that is asked for grows")         \
    X(GC, "garbage_collection_threshold",                                   \
      "works under per_process_memory_fraction only")                       \
    X(LIMIT, "per_process_memory_fraction",                                 \
      "the job fails where it needs more, whatever the device has left")

enum tune_knob {
#define X(upper, name, caveat) TUNE_##upper,
    TUNE_KNOBS(X)
#undef X
        TUNE_KNOB_COUNT
};

extern const char *const tune_knob_names[TUNE_KNOB_COUNT];
extern const char *const tune_knob_caveats[TUNE_KNOB_COUNT];

enum {
    TUNE_CLASSES = 16, /* of sizes: below 2 MiB, below 4 MiB, ... */
    TUNE_AXES = TUNE_DIVISIONS + TUNE_CLASSES + 2,
    TUNE_TEXT = 512, /* room for the settings of any point */
};

struct tune_point {
    uint8_t at[TUNE_AXES];
};

struct tune_space {
    bool allowed[TUNE_KNOB_COUNT];
    unsigned classes;    /* of sizes that are requested: 1 to TUNE_CLASSES */
    frag_size reference; /* bytes that a limit of 100 % stands for */
    frag_size total;     /* of the device, for the fraction */
};

/* How many classes there are up to a request of so many bytes. */
unsigned tune_classes(frag_size largest);

/* The setting an axis belongs to, and how many places it has. */
enum tune_knob tune_axis_knob(size_t axis);
size_t tune_axis_places(size_t axis);

/* Takes out what has no effect or must not be combined, so that equal settings
 * are equal points. */
void tune_settle(const struct tune_space *space, struct tune_point *p);

/* The settings of a settled point as PYTORCH_CUDA_ALLOC_CONF takes them, ""
 * for the default. Returns text. */
const char *tune_text(const struct tune_space *space,
                      const struct tune_point *p, char text[TUNE_TEXT]);

/* Whether the point changes the setting. */
bool tune_changes(const struct tune_point *p, enum tune_knob knob);

/* Sets all classes of roundup_power2_divisions to one place. */
void tune_set_divisions(struct tune_point *p, uint8_t place);

/* A settled neighbour: one setting moved. */
struct tune_point tune_step(const struct tune_space *space,
                            const struct tune_point *p, gsl_rng *rng);

/* Point i of the coarse grid, settled; false behind the last. Points may
 * repeat. */
bool tune_grid(const struct tune_space *space, size_t i, struct tune_point *p);

#endif
