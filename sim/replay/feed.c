/* feed.c - replays events that come in windows: each window is a trace of its
 * own for the loop, and the slots and the numbers stay. */
#include "sim/replay/feed.h"

#include <stdlib.h>

#include "sim/replay/place.h"
#include "sim/replay/replay_parts.h"

enum { FIRST_SLOTS = 1024 };

struct frag_feed {
    struct run run;
    struct frag_replay spec;
    struct frag_device_trace window; /* the last one; its slots are those that
                                        there is room for */
    uint64_t done;                   /* number of events */
    struct stream_pool last;         /* of the last event */
    struct place *place;             /* contains this struct, if not NULL */
};

static void release(struct frag_feed *f)
{
    if (f->place)
        place_leave(f->place);
    else
        free(f);
}

static void lay_out(struct frag_feed *f, const struct frag_replay *spec)
{
    f->window = (struct frag_device_trace){.slots = FIRST_SLOTS,
                                           .stream_count = RUN_STREAMS};
    f->spec = (struct frag_replay){.trace = &f->window,
                                   .policy = spec->policy,
                                   .params = spec->params,
                                   .prepared = spec->prepared,
                                   .mem = spec->mem,
                                   .quantum = spec->quantum,
                                   .check = spec->check,
                                   .contents = spec->contents,
                                   .stop_at_oom = spec->stop_at_oom,
                                   .max_ooms = spec->max_ooms};
    f->run = (struct run){.spec = &f->spec,
                          .trace = &f->window,
                          .policy = frag_replay_policy(spec)};
    f->run.out.summary.start = FRAG_START_EMPTY;
}

enum frag_err frag_feed_open(const struct frag_replay *spec,
                             struct frag_feed **out, struct frag_error *e)
{
    const struct frag_policy *policy = frag_replay_policy(spec);
    struct place *place;
    struct frag_feed *f;
    enum frag_err err;

    if (policy->needs & FRAG_NEEDS_FUTURE)
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "%s: it places blocks by the whole trace, of which a "
                         "stream shows one window at a time; import the events "
                         "to a trace file and replay that",
                         policy->name);
    place =
        place_of_run(policy, sizeof(*f), offsetof(struct frag_feed, run.event));
    f = place ? place_memory(place) : malloc(sizeof(*f));
    if (!f)
        return frag_no_memory(e, "the replay of a stream");
    *f = (struct frag_feed){.place = place};
    lay_out(f, spec);
    f->run.error = e;
    place_part(place, "in init");
    err = run_open(&f->run);
    place_part(place, "");
    if (err == FRAG_OK)
        *out = f;
    else
        release(f);
    return err;
}

/* Makes room for at least `slots` slots. */
static enum frag_err fit_slots(struct frag_feed *f, uint32_t slots)
{
    const uint32_t old = f->window.slots;
    const uint32_t room = old > slots / 2 ? 2 * old : slots;

    if (slots <= old)
        return FRAG_OK;
    if (old > UINT32_MAX / 4 || run_grow(&f->run, room) != FRAG_OK)
        return frag_no_memory(f->run.error, "a table of blocks");
    f->window.slots = room;
    return FRAG_OK;
}

enum frag_err frag_feed_window(struct frag_feed *f,
                               const struct frag_device_trace *window,
                               struct frag_error *e)
{
    struct run *r = &f->run;
    enum frag_err err;
    uint32_t slots;

    if (r->stop || !window->count)
        return FRAG_OK;
    r->error = e;
    FRAG_TRY(fit_slots(f, window->slots));
    slots = f->window.slots;
    r->base = f->done;
    f->window = *window;
    f->window.slots = slots;
    r->follows_frees =
        window->free_streams && r->policy->needs & FRAG_HEARS_FREES;
    place_part(f->place, NULL);
    err = run_window(r, &f->done);
    place_part(f->place, "");
    FRAG_TRY(err);
    f->last = run_lane(r, f->done - 1 - r->base);
    return FRAG_OK;
}

enum frag_err frag_feed_end(struct frag_feed *f, struct frag_run *out,
                            struct frag_error *e)
{
    struct run *r = &f->run;
    enum frag_err err;

    r->error = e;
    place_part(f->place, "in fini");
    err = run_close(r, run_finish(r, f->done, 0, f->last));
    if (err == FRAG_OK)
        *out = r->out;
    else
        frag_run_free(&r->out);
    release(f);
    return err;
}

void frag_feed_close(struct frag_feed *f)
{
    if (!f)
        return;
    (void)run_close(&f->run, FRAG_CANCELLED);
    frag_run_free(&f->run.out);
    release(f);
}
