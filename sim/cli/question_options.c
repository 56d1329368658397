/* question_options.c - reads the options of a question. */
#include "sim/cli/question_options.h"

#include "sim/validate/stats_file.h"

static enum frag_err read_bound(const struct one_bound *b,
                                struct question_asked *asked,
                                struct frag_error *e)
{
    if (!one_bound_is_given(b))
        return FRAG_OK;
    asked->source = b->gpu     ? QUESTION_GPU
                    : b->limit ? QUESTION_LIMIT
                               : QUESTION_CAPACITY;
    return one_bound_read(b, &asked->bound, e);
}

enum frag_err question_read(const struct question_values *v, const char *path,
                            struct question_asked *asked,
                            struct trace_reading *reading, struct frag_error *e)
{
    struct frag_stats_file *stats;

    *asked = (struct question_asked){.total = 0};
    FRAG_TRY(read_bound(&v->bound, asked, e));
    FRAG_TRY(frag_stats_file_of(v->stats, path, &stats, e));
    asked->total = stats ? frag_stats_file_total(stats) : 0;
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
