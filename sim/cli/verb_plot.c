/* verb_plot.c - figures of a result file, drawn by the scripts in plots/. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/cli/gnuplot.h"

struct values {
    struct common common;
    struct texts runs;
    const char *out, *keep;
    bool force;
};

/* Runs of a file that are to be shown. */
struct selection {
    const struct frag_loaded_run **runs;
    size_t count;
    bool one_trace;
};

/* -- labels -------------------------------------------------------------- */

/* Text of a TSV cell: no tab or line end survives, nor what a figure has no
 * room for. */
static void cell(FILE *out, const char *text)
{
    enum { LETTERS = 84 };

    for (int i = 0; *text && i < LETTERS; i++, text++)
        fputc((unsigned char)*text < 0x20 || *text == '"' ? ' ' : *text, out);
    if (*text)
        fputs("...", out);
}

/* Two decimals are what can be read from a figure. */
static void put_size(FILE *out, frag_size size)
{
    if (size >= FRAG_GIB)
        fprintf(out, "%.2f GiB", (double)size / (double)FRAG_GIB);
    else
        fprintf(out, "%.2f MiB", (double)size / (double)FRAG_MIB);
}

static void put_label(FILE *out, const struct selection *s,
                      const struct frag_loaded_run *r)
{
    char size[FRAG_SIZE_TEXT];

    if (!s->one_trace) {
        cell(out, r->trace);
        fputs(": ", out);
    }
    cell(out, r->policy);
    if (r->device)
        fprintf(out, ", device %" PRIu64, r->device);
    if (r->capacity != FRAG_UNLIMITED)
        fprintf(out, " on %s", frag_size_format(r->capacity, size));
}

static void put_trace(FILE *out, const struct selection *s)
{
    if (s->one_trace && s->count)
        cell(out, s->runs[0]->trace);
    else
        fputs("several traces", out);
}

static void put_ooms(FILE *out, uint64_t ooms)
{
    if (ooms)
        fprintf(out, ", %" PRIu64 " OOM%s", ooms, ooms > 1 ? "s" : "");
}

/* -- timeline ------------------------------------------------------------ */

/* A step as its corners, which gnuplot fills as one shape. */
static void put_step(FILE *out, uint64_t event, const struct frag_point *from,
                     const struct frag_point *to)
{
    if (from->allocated_max == to->allocated_max &&
        from->reserved_max == to->reserved_max)
        return;
    fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", event,
            from->allocated_max, from->reserved_max);
    fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", event,
            to->allocated_max, to->reserved_max);
}

static void timeline_points(FILE *out, const struct selection *s)
{
    const struct frag_point nothing = {0};

    fputs("# event\tallocated\treserved\n", out);
    for (size_t i = 0; i < s->count; i++) {
        const struct frag_run *m = &s->runs[i]->run;
        const struct frag_point *last = &nothing;

        fprintf(out, "%s0\t0\t0\n", i ? "\n\n" : "");
        for (uint64_t k = 0; k < m->point_count; last = &m->points[k++])
            put_step(out, m->points[k].event, last, &m->points[k]);
        fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
                m->summary.events, last->allocated_max, last->reserved_max);
    }
}

static void timeline_ooms(FILE *out, const struct selection *s)
{
    /* A row that is drawn nowhere: gnuplot has no empty files. */
    fputs("run\tevent\treserved\n-1\t0\t0\n", out);
    for (size_t i = 0; i < s->count; i++)
        for (uint64_t k = 0; k < s->runs[i]->run.oom_count; k++)
            fprintf(out, "%zu\t%" PRIu64 "\t%" PRIu64 "\n", i,
                    s->runs[i]->run.ooms[k].event,
                    s->runs[i]->run.ooms[k].reserved);
}

static void timeline_runs(FILE *out, const struct selection *s)
{
    fputs("label\ttrace\tcapacity\tevents\n", out);
    for (size_t i = 0; i < s->count; i++) {
        const struct frag_loaded_run *r = s->runs[i];

        put_label(out, s, r);
        fputs(" \u2014 peak ", out);
        put_size(out, r->run.summary.peak_reserved);
        put_ooms(out, r->run.summary.num_ooms);
        fputc('\t', out);
        put_trace(out, s);
        fprintf(out, "\t%" PRId64 "\t%" PRIu64 "\n", (int64_t)r->capacity,
                r->run.summary.events);
    }
}

/* -- compare ------------------------------------------------------------- */

static void compare_rows(FILE *out, const struct selection *s)
{
    fputs("label\tnote\trequested\treserved\tooms\ttrace\n", out);
    for (size_t i = 0; i < s->count; i++) {
        const struct frag_loaded_run *r = s->runs[i];
        const struct frag_summary *m = &r->run.summary;

        put_label(out, s, r);
        fputc('\t', out);
        put_size(out, m->peak_reserved);
        fprintf(out, ", %.2fx", m->overhead);
        put_ooms(out, m->num_ooms);
        fprintf(out, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t",
                m->peak_requested, m->peak_reserved, m->num_ooms);
        put_trace(out, s);
        fputc('\n', out);
    }
}

/* -- the command --------------------------------------------------------- */

/* The figures: a script and the files it reads. */
static const struct figure {
    const char *name;
    struct {
        const char *suffix;
        void (*write)(FILE *out, const struct selection *s);
    } files[3];
} figures[] = {
    {"timeline",
     {{".tsv", timeline_points},
      {".ooms.tsv", timeline_ooms},
      {".runs.tsv", timeline_runs}}},
    {"compare", {{".tsv", compare_rows}}},
};

enum { FIGURES = sizeof(figures) / sizeof(*figures) };

static const struct figure *figure_find(const char *name)
{
    for (size_t i = 0; i < FIGURES; i++)
        if (!strcmp(figures[i].name, name))
            return &figures[i];
    return NULL;
}

static bool can_draw(const char *out)
{
    static const char *const suffixes[] = {".svg", ".png", ".pdf"};
    const char *dot = strrchr(out, '.');

    for (size_t i = 0; dot && i < sizeof(suffixes) / sizeof(*suffixes); i++)
        if (!strcmp(dot, suffixes[i]))
            return true;
    return false;
}

/* The runs named by --run ("0,2"), or all. */
static enum frag_err choose(const struct frag_loaded *l,
                            const struct texts *wanted, struct selection *s,
                            struct frag_error *e)
{
    for (size_t i = 0; i < wanted->count; i++) {
        const char *text = wanted->items[i];
        char *end = NULL;

        for (; !end || *end == ','; text = end + 1) {
            unsigned long long n = strtoull(text, &end, 10);
            const struct frag_loaded_run **more;

            if (end == text || n >= l->count || (*end && *end != ','))
                return frag_fail(e, FRAG_INVALID,
                                 "--run: expected numbers below %" PRIu64
                                 ", found \"%s\"",
                                 l->count, wanted->items[i]);
            more = realloc(s->runs, (s->count + 1) * sizeof(*more));
            if (!more)
                return FRAG_NOMEM;
            s->runs = more;
            s->runs[s->count++] = &l->runs[n];
        }
    }
    return FRAG_OK;
}

static enum frag_err choose_all(const struct frag_loaded *l,
                                struct selection *s)
{
    s->runs = calloc(l->count + 1, sizeof(*s->runs));
    if (!s->runs)
        return FRAG_NOMEM;
    for (; s->count < l->count; s->count++)
        s->runs[s->count] = &l->runs[s->count];
    return FRAG_OK;
}

static enum frag_err write_files(const struct figure *f,
                                 const struct gnuplot *g,
                                 const struct selection *s,
                                 struct frag_error *e)
{
    for (size_t i = 0; i < 3 && f->files[i].suffix; i++) {
        FILE *data = gnuplot_data(g, f->files[i].suffix, e);

        if (!data)
            return FRAG_IO;
        f->files[i].write(data, s);
        FRAG_TRY(gnuplot_written(data, e));
    }
    return FRAG_OK;
}

static enum frag_err draw(const struct figure *f, const struct values *v,
                          const struct selection *s, struct frag_error *e)
{
    struct gnuplot g;
    enum frag_err err;

    FRAG_TRY(gnuplot_open(&g, f->name, v->keep, e));
    err = write_files(f, &g, s, e);
    if (err == FRAG_OK)
        err = gnuplot_draw(&g, v->out, e);
    gnuplot_close(&g);
    return err;
}

static enum frag_err plot(const struct figure *f, const struct values *v,
                          struct frag_error *e)
{
    struct frag_loaded loaded;
    struct selection s = {.one_trace = true};
    enum frag_err err;

    FRAG_TRY(frag_results_load(v->common.args.items[0], &loaded, e));
    err = v->runs.count ? choose(&loaded, &v->runs, &s, e)
                        : choose_all(&loaded, &s);
    for (size_t i = 1; i < s.count; i++)
        s.one_trace =
            s.one_trace && !strcmp(s.runs[i]->trace, s.runs[0]->trace);
    if (err == FRAG_OK && !s.count)
        err = frag_fail(e, FRAG_INVALID, "%s: it holds no runs",
                        v->common.args.items[0]);
    if (err == FRAG_OK)
        err = draw(f, v, &s, e);
    free(s.runs);
    frag_results_unload(&loaded);
    return err;
}

static int plot_run(const struct call *call, const void *values)
{
    const struct values *v = values;
    const char *name = v->common.args.items[1];
    const struct figure *f = figure_find(name);
    struct frag_error e = {""};
    int code;

    if (!f)
        return cli_misuse(call,
                          "there is no figure \"%s\"; there are timeline and "
                          "compare",
                          name);
    if (!v->out || !can_draw(v->out))
        return cli_misuse(call, "expected -o FILE.svg, FILE.png or FILE.pdf");
    code = cli_may_replace(call, v->out, v->force);
    if (code != EXIT_DONE)
        return code;
    return cli_fail(call, plot(f, v, &e), &e);
}

/* clang-format off */
#define AT(field) offsetof(struct values, field)
static const struct option_row options[] = {
    {"output", 'o', "FILE", "the figure: .svg, .png or .pdf", OPTION_TEXT,
     AT(out), NULL},
    {"force", 'f', NULL, "write over a figure that exists", OPTION_SWITCH,
     AT(force), NULL},
    {"run", 0, "N,...", "only these runs, as numbered in /runs (default: all)",
     OPTION_LIST, AT(runs), NULL},
    {"keep", 0, "DIR", "keep the gnuplot script and its data there",
     OPTION_TEXT, AT(keep), NULL},
    {0},
};
/* clang-format on */

const struct verb verb_plot = {
    .name = "plot",
    .args = "RESULTS timeline|compare -o FILE",
    .summary = "draw a figure of a result file",
    .about =
        "timeline: reserved and allocated memory over the events of each run, "
        "with capacity and OOM points. compare: peak reserved of each run "
        "against peak requested. Drawn by gnuplot with a script that can be "
        "kept, edited and run by hand.",
    .example = "fragsim plot results.h5 compare -o compare.svg",
    .options = options,
    .size = sizeof(struct values),
    .defaults = &(const struct values){.out = NULL},
    .args_min = 2,
    .args_max = 2,
    .run = plot_run,
};
