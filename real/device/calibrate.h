/* calibrate.h - measures how long a device's memory calls take, through its
 * backend.
 *
 * The calls are timed as a replay makes them. For each size, several blocks are
 * allocated one after another, all are held at once, and then they are released
 * in the same order. Between two calls the host does other work, so that its
 * caches are in the state in which a program leaves them. One round goes
 * through all calls and sizes, so that a short disturbance of the machine
 * affects one round and not one size.
 *
 * This code does not depend on CUDA: on the arena it measures the arena's own
 * cost model.
 */
#ifndef FRAG_REAL_DEVICE_CALIBRATE_H
#define FRAG_REAL_DEVICE_CALIBRATE_H

#include "policies/device/backend.h"
#include "real/device/timings.h"

struct frag_calibration {
    struct frag_backend *mem; /* borrowed; holds no memory when the calibration
                               * starts */
    frag_size room;           /* most bytes to hold at once, >= 2 granules */
    unsigned rounds;          /* >= 1; one warm-up round is added */
    /* Called before each round. If it returns true, the calibration ends with
     * FRAG_CANCELLED. May be NULL. */
    frag_progress *progress;
    void *user;
};

/* Adds the timings to *out and leaves out->about unchanged. Returns FRAG_NOMEM,
 * FRAG_CANCELLED, FRAG_UNSUPPORTED (the device has no virtual memory calls) or
 * the error of a call of the backend, FRAG_OOM included. On error, all memory
 * is released to mem, except memory whose release fails twice, and *out holds
 * the timings made so far. */
enum frag_err frag_calibrate(const struct frag_calibration *c,
                             struct frag_timings *out,
                             struct frag_error *e) FRAG_MUST_CHECK;

/* Measures how slow the machine is at this moment: *pace is the time that a
 * fixed series of calls takes, after a warm-up, divided by the time that
 * `costs` predicts. It is 1 if the costs were measured on this machine and
 * nothing disturbs it, or if `room`, the most bytes to hold, is too small for
 * any of these calls. The errors are those of frag_calibrate except
 * FRAG_CANCELLED. On error, *pace is unchanged. */
enum frag_err frag_pace(struct frag_backend *mem, frag_size room,
                        const struct frag_costs *costs, double *pace,
                        struct frag_error *e) FRAG_MUST_CHECK;

#endif
