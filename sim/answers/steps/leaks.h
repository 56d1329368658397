/* leaks.h - the places in a program that keep more and more memory.
 *
 * The blocks of a trace are grouped by the site of their ALLOC (sites.h); of a
 * recording without stacks, by size and stream, and the blocks of all groups
 * that do not grow once more by stream alone, for sizes that vary. Of each
 * group two quantities are known at the places of the recording's windows
 * (windows.h): the bytes of its blocks that are kept, which live at two places
 * or more, and the bytes of all its blocks, which also shows a block that is
 * replaced by a larger one again and again. A group grows if one of them does
 * (growth.h) in the second half, or else in the last quarter; and the groups
 * that grow leak only if what the whole program keeps rises with them.
 *
 * Marked steps are enough evidence. Without them the same picture has innocent
 * causes: the layers of a pass, the load of a model, the cache of one
 * generation. A group is then judged only if none of the reasons below stands
 * against it, or if its stacks show 64 rounds of the program's own loop: with a
 * backward pass or an optimizer in each; with a call of a module in each, of
 * which most stays; or, for the only group that grows, with blocks of one size,
 * or with one block that is replaced outside of all modules. A block that waits
 * for another stream counts as freed.
 *
 * All bytes are as requested.
 */
#ifndef FRAG_SIM_ANSWERS_STEPS_LEAKS_H
#define FRAG_SIM_ANSWERS_STEPS_LEAKS_H

#include "sim/answers/steps/growth.h"
#include "sim/answers/steps/windows.h"

enum leaks_verdict {
    LEAKS_NONE, /* no group grows, and repetitions were seen */
    LEAKS_FOUND,
    LEAKS_UNKNOWN, /* the recording cannot tell */
};

extern const char *const leaks_verdict_names[]; /* "none", "leak", "unknown" */

/* Why the growth of a group may be no leak, or why growth cannot be judged: the
 * word; the sentence, which says what to record; and how it ends the sentence
 * "growth could not be judged". SURE: nothing stands against it. */
#define LEAKS_REASONS(X)                                                       \
    X(SURE, NULL, NULL, NULL)                                                  \
    X(SHORT, "few events", "The recording has too few events: record longer",  \
      "too few events were recorded")                                          \
    X(FEW, "few marked steps",                                                 \
      "Fewer than seven complete steps are marked: record longer",             \
      "fewer than seven complete steps are marked")                            \
    X(UNMARKED, "few repetitions",                                             \
      "No step is marked, and the live memory does not come back four times "  \
      "in the second half, which would show where work ends: record longer, "  \
      "or mark the steps",                                                     \
      "no step is marked, and the live memory seldom comes back")              \
    X(SLOWS, "slows down",                                                     \
      "What grows slows down, like a cache that fills up: record longer",      \
      "what grows slows down")                                                 \
    X(LATE, "begins late",                                                     \
      "What grows began in the second half, like one more phase of a "         \
      "program: record longer",                                                \
      "what grows began in the second half")                                   \
    X(REPLACED, "is extended",                                                 \
      "What grows is replaced by a larger block again and again, like the "    \
      "cache of one generation; no marked step shows where the work ends",     \
      "one block is replaced by larger ones")                                  \
    X(PILES_UP, "piles up",                                                    \
      "Most of what is allocated stays, as in the load of a model or a "       \
      "forward pass; no marked step shows where the work ends",                \
      "nothing shows where a step ends")                                       \
    X(NO_STACKS, "no stacks",                                                  \
      "No step is marked, and what grows has no Python stacks, without which " \
      "a loop of the program looks like the layers of one pass",               \
      "no step is marked, and what grows has no stacks")                       \
    X(ONE_CALL, "one call",                                                    \
      "What grows was allocated in single calls of a module, an optimizer or " \
      "a loader: each may free it when it returns",                            \
      "what grows was allocated in single calls")

enum leaks_reason {
#define X(name, word, text, clause) LEAKS_##name,
    LEAKS_REASONS(X)
#undef X
};

extern const struct leaks_reason_row {
    const char *word, *text, *clause;
} leaks_reasons[];

/* A group that grows. */
struct leak {
    enum leaks_reason reason; /* against a leak */
    uint64_t from;            /* the place from which its growth was judged */
    uint64_t first;           /* ALLOC of its first block that counts */
    uint32_t stack;           /* of its newest such block; 0 if not recorded */
    frag_stream stream;       /* of that block */
    frag_size least, most;    /* bytes of its blocks that were examined */
    uint64_t blocks;          /* its blocks that are live at the last place */
    frag_size held;           /* bytes of these */
    struct growth growth;     /* a window; of the examined places */
    double rate;              /* bytes a unit: a step or 1,000 events */
    uint64_t value_count;
    frag_size values[WINDOWS_MOST + 1]; /* bytes of its blocks at each place */
    uint64_t rounds; /* without marked steps: of the program's own loop, if the
                        group grows alike in each; else 0 */
    bool replaced;   /* its block is replaced by a larger one again and again */
};

struct leaks {
    enum leaks_verdict verdict;
    enum leaks_reason reason; /* SURE unless the verdict is unknown */
    struct windows windows;
    uint64_t from; /* the first place that was examined */
    uint64_t count, room;
    struct leak *items; /* if the verdict is unknown, what may leak. By growth,
                           the fastest first; of equal ones the one that began
                           last, since its blocks often keep those of the
                           others */
    double rate;        /* bytes a unit, of all */
    frag_size held;     /* by them, at the last place */
    frag_size peak;     /* most bytes requested in the examined windows */
    double seconds_per_unit; /* of the examined windows; NAN: no times */
};

/* Examines the events of a device before `end`, which is at most their number.
 * `mark` is as for frag_steps_find. The caller closes *out. INVALID as
 * frag_steps_find; NOMEM; on error *out need not be closed. */
enum frag_err leaks_find(const struct frag_trace *t,
                         const struct frag_device_trace *d, uint64_t end,
                         const char *mark, struct leaks *out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void leaks_close(struct leaks *l);

/* The units, after the last place, until memory that is `used` now does not fit
 * `capacity` any more; UINT64_MAX if nothing leaks. */
uint64_t leaks_units_left(const struct leaks *l, frag_size used,
                          frag_size capacity);

#endif
