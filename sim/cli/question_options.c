/* question_options.c - reads the options of a question. */
#include "sim/cli/question_options.h"

#include "sim/cli/cell_options.h"
#include "sim/validate/stats_file.h"

int question_check(const struct call *call, const struct question_values *v)
{
    const int given = (v->bounds[FRAG_BOUND_CAPACITY] != 0) +
                      (v->bounds[FRAG_BOUND_LIMIT] != 0) + (v->gpu != NULL);

    if (given > 1)
        return cli_misuse(call, "--capacity and --gpu bound the device, "
                                "--process-limit the process: expected one of "
                                "them");
    if (v->gpu && !frag_gpu_find(v->gpu))
        return cli_misuse(call,
                          "--gpu: expected " FRAG_GPU_IDS
                          ", found \"%.40s\"; of another GPU, --capacity "
                          "states the memory",
                          v->gpu);
    return EXIT_DONE;
}

static void take_bound(const struct question_values *v,
                       struct question_asked *asked)
{
    const enum frag_bound_kind kind =
        v->bounds[FRAG_BOUND_LIMIT] ? FRAG_BOUND_LIMIT : FRAG_BOUND_CAPACITY;

    asked->bound = frag_bound_at(v->bounds[kind], kind);
    asked->source =
        kind == FRAG_BOUND_LIMIT ? QUESTION_LIMIT : QUESTION_CAPACITY;
    if (!v->gpu)
        return;
    asked->bound.bytes = frag_gpu_room(frag_gpu_find(v->gpu));
    asked->source = QUESTION_GPU;
}

enum frag_err question_read(const struct question_values *v, const char *path,
                            struct question_asked *asked,
                            struct trace_reading *reading, struct frag_error *e)
{
    struct frag_stats_file *stats;

    FRAG_TRY(frag_stats_file_of(v->stats, path, &stats, e));
    *asked = (struct question_asked){
        .total = stats ? frag_stats_file_total(stats) : 0};
    take_bound(v, asked);
    *reading = (struct trace_reading){
        .kind = READING_RAW,
        .limit = v->recorded_limit,
        .ignores_file = true,
    };
    if (!reading->limit && stats)
        reading->limit = frag_stats_file_limit(stats);
    frag_stats_file_close(stats);
    return FRAG_OK;
}

enum frag_err question_settings(struct cell_settings *out, struct frag_error *e)
{
    static const struct cell_values defaults = CELL_DEFAULTS;

    FRAG_TRY(cell_settings_read(&defaults, out, e));
    out->from_requests = true; /* or only some settings would be charged for
                                  what the recorded job held */
    out->stop_at_oom = true;
    return FRAG_OK;
}
