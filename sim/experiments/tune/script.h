/* script.h - what the requests of one half of a trace made a policy ask of the
 * device: recorded in one run, and played together with that of the other half.
 * Private to sim/experiments/tune/.
 *
 * The two halves are the requests of PyTorch's small pools and of its large
 * pools. Blocks of one half never serve the other. The halves meet at the
 * device only: the driver chooses the addresses of both, and among equal free
 * blocks the policy takes the lowest address. A run of a half is therefore
 * determined by its requests, its settings, and the order of the addresses of
 * its own ranges, as long as no call fails.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_SCRIPT_H
#define FRAG_SIM_EXPERIMENTS_TUNE_SCRIPT_H

#include "sim/experiments/cell.h"

enum half { LARGE, SMALL, HALVES };

enum script_call {
    SCRIPT_SEGMENT_ALLOC, /* makes the next range */
    SCRIPT_SEGMENT_FREE,
    SCRIPT_VA_RESERVE, /* makes the next range */
    SCRIPT_VA_FREE,
    SCRIPT_PHYS_CREATE, /* makes the next handle */
    SCRIPT_PHYS_RELEASE,
    SCRIPT_MAP,
    SCRIPT_UNMAP,
    SCRIPT_SYNCHRONIZE,
    SCRIPT_STREAM_USED,
};

/* One call. Ranges and handles are counted in the order in which the script
 * makes them. */
struct script_row {
    uint64_t event; /* of the whole trace */
    frag_size at;   /* offset in the range, in bytes */
    frag_size size; /* bytes; STREAM_USED: the stream */
    uint32_t call;  /* enum script_call */
    uint32_t range, phys;
};

struct script {
    struct script_row *rows;
    uint64_t count, row_room;
    frag_addr *addr; /* of each range, in the run that was recorded */
    uint64_t ranges, range_room;
    uint64_t handles;
};

void script_free(struct script *s); /* zeroed is fine */

/* Plays a script on a backend. */
struct player {
    const struct script *script;
    struct frag_backend *device; /* that hears of streams, if a meter is above
                                    it; NULL: the backend that plays */
    uint64_t next;               /* row */
    frag_addr *addr;
    frag_phys *phys;
    uint64_t ranges, handles; /* made so far */
};

/* NOMEM; then *p need not be closed. */
enum frag_err player_open(struct player *p,
                          const struct script *script) FRAG_MUST_CHECK;
void player_close(struct player *p);
/* Plays all rows before `event`. The error of the first call that fails. */
enum frag_err player_play(struct player *p, struct frag_backend *mem,
                          uint64_t event) FRAG_MUST_CHECK;
/* Plays both scripts: in an event, the rows of the large half first, as
 * empty_cache does. */
enum frag_err players_play(struct player p[HALVES], struct frag_backend *mem,
                           uint64_t event) FRAG_MUST_CHECK;
/* Whether the ranges that the player made have the same order of addresses as
 * the first ranges of the script, in the run that was recorded. Compares all
 * pairs. */
bool script_agrees(const struct script *s, const struct player *p);

/* A backend that passes all calls on to an arena and records them. */
struct recorder {
    struct frag_backend base;
    struct frag_backend *under;
    const struct frag_device_trace *trace; /* of the run */
    const uint64_t *event; /* the whole trace's events; NULL: it is the run's */
    const uint64_t *now;   /* the run's current event; set by frag_replay */
    struct player *other;  /* plays beside the run before each call; NULL: none.
                              Then the run has the large half only */
    struct script halves[HALVES];
    struct recorded_range *ranges;
    uint64_t range_count, range_room;
    struct recorded_phys *handles;
    uint64_t handle_count, handle_room;
    bool failed; /* the run met a failure or was out of memory: the halves are
                    not valid */
};

void recorder_close(struct recorder *r);

/* Cell settings whose backend is an arena under a recorder. */
struct recording {
    struct cell_settings settings; /* must be the first member */
    struct recorder *recorder;
};

struct recording recording_of(const struct cell_settings *settings,
                              struct recorder *r);

#endif
