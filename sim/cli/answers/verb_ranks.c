/* verb_ranks.c - the command ranks: compares the memory of the ranks of a
 * distributed job. The analysis is in sim/answers/ranks/ranks.h. */
#include "sim/answers/ranks/ranks.h"

#include "sim/cli/answers/replay_options.h"
#include "sim/cli/answers/text/ranks_text.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/outputs.h"

struct ranks_values {
    struct common common;
    struct replay_values replay;
    struct outputs outputs;
};

struct visits {
    struct ranks ranks;
    struct replay_settings settings;
    struct progress progress;
};

static enum frag_err visit(void *user, const struct input *in,
                           struct frag_error *e)
{
    struct visits *v = user;

    if (in->device->device == FRAG_HOST_DEVICE)
        return FRAG_OK; /* memory of the host is no rank's */
    progress_step(&v->progress, v->ranks.count + 1, 0, " events", 1, in->name);
    return ranks_add(&v->ranks, &v->settings, in, e);
}

struct shown {
    const struct ranks *ranks;
    bool color;
};

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    const struct shown *s = user;

    if (j)
        ranks_json(s->ranks, j);
    else if (ranks_text(s->ranks, out, s->color) != FRAG_OK)
        return frag_no_memory(e, "the table of the ranks");
    return FRAG_OK;
}

static void put_after(void *user, struct frag_json *j)
{
    ranks_json_answers(((const struct shown *)user)->ranks, j);
}

static enum frag_err write_out(const struct call *call,
                               const struct ranks_values *v,
                               const struct ranks *r, struct frag_error *e)
{
    struct shown shown = {r, cli_colors(&v->common, stdout)};

    return answer_write(call, &(const struct answer){put, put_after, &shown},
                        v->outputs.json, e);
}

static enum frag_err compare(const struct call *call,
                             const struct ranks_values *v,
                             struct unread *unread, struct frag_error *e)
{
    struct visits visits = {.ranks = {.capacity = replay_capacity(&v->replay)},
                            .progress = progress_start(&v->common)};
    const struct inputs inputs =
        replay_inputs(&v->common, &v->replay, &visits.progress, unread);
    struct cell_settings cell;
    enum frag_err err;

    FRAG_TRY(cell_settings_read(&(const struct cell_values){0}, &cell, e));
    visits.settings =
        (struct replay_settings){&cell, v->replay.policy, v->replay.mark,
                                 progress_tick, &visits.progress};
    err = inputs_each(&inputs, visit, &visits, e);
    progress_clear(&visits.progress);
    if (err == FRAG_OK)
        err = write_out(call, v, &visits.ranks, e);
    ranks_free(&visits.ranks);
    return err;
}

static int ranks_run(const struct call *call, const void *values)
{
    const struct ranks_values *v = values;
    struct unread unread = unread_of(call, &v->common);
    struct frag_error e = {""};
    const int code = outputs_check(call, &v->outputs);

    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    return unread_exit(&unread,
                       cli_fail(call, compare(call, v, &unread, &e), &e));
}

/* clang-format off */
#define AT(field) offsetof(struct ranks_values, field)
static const struct option_row options[] = {
    REPLAY_OPTIONS(AT, "memory of each device: the answer then says which rank "
                       "dies first there (default: no capacity is in "
                       "question)"),
    OUTPUT_JSON_OPTION(AT, "the same as JSON; - is stdout"),
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    {0},
};
/* clang-format on */

const struct verb verb_ranks = {
    .name = "ranks",
    .args = "TRACE...",
    .summary = "compare the ranks of a distributed job",
    .about =
        "A rank is a device of a trace: each file of one device is a rank, and "
        "a file of several devices has a rank for each. Ranks are numbered "
        "from 0 in the order of the files and devices. The table has a row for "
        "each rank; the peaks are those of the policy at unlimited capacity. "
        "Below the table are the imbalance, which is the largest value divided "
        "by the mean, and the rank that dies first: in the recordings, which "
        "report their OOMs, and with --capacity in a replay on devices of that "
        "size. Ranks that die are ordered by the recorded times, so the clocks "
        "of their hosts must agree. The recordings are taken as they are: "
        "all ranks stop when one of them dies, so a completed trace of that "
        "rank would be compared with shorter ones. A line below the table "
        "names the ranks that died; what they would have needed later is not "
        "in the values.\n\n"
        "An example with two recordings in traces/bundled/: `fragsim ranks "
        "multistream.pickle.xz leak_frames.pickle.xz -c 700MiB' takes them as "
        "two ranks. Rank 0 reserves 1.653 times the mean and is the one that "
        "dies at 700 MiB; rank 1 has 244 MiB left at its peak.",
    .example = "fragsim ranks snap_rank0.pickle snap_rank1.pickle -c 80GiB",
    .options = options,
    .size = sizeof(struct ranks_values),
    .defaults = &(const struct ranks_values){.replay = REPLAY_DEFAULTS},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = ranks_run,
};
