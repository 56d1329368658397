/* verb_gen.c - the command gen: generates a trace file from a generator, its
 * parameters and a seed. */
#include <string.h>

#include "sim/cli/cli.h"
#include "traces/bytes/sink.h"
#include "traces/gen/generator.h"
#include "traces/nearest.h"

struct gen_values {
    struct common common;
    const char *out;
    uint64_t seed;
    bool force;
};

static void print_generator(const struct frag_generator *g)
{
    printf("%-12s %s\n", g->name, g->summary);
    for (const struct frag_gen_param *p = g->params; p->name; p++) {
        printf("    %s=%s\n        %s", p->name, p->init, p->help);
        if (p->choices)
            printf(" (%s)", p->choices);
        putchar('\n');
    }
}

static enum frag_err unknown(const char *name, struct frag_error *e)
{
    struct nearest near = nearest_among("generator", name);
    char hint[NEAREST_HINT];

    for (size_t i = 0; frag_generators[i]; i++)
        nearest_try(&near, frag_generators[i]->name);
    nearest_hint(&near, hint);
    return frag_fail(e, FRAG_INVALID, "there is no generator \"%s\"%s", name,
                     *hint ? hint : "; `fragsim gen' lists all generators");
}

static enum frag_err generate(const struct gen_values *v, struct frag_error *e)
{
    const char *text = v->common.args.items[0];
    const size_t length = strcspn(text, ":");
    const struct frag_generator *g;
    struct frag_trace *trace;
    enum frag_err err;
    char name[64];

    snprintf(name, sizeof(name), "%.*s", (int)length, text);
    g = frag_generator_find(name);
    if (!g)
        return unknown(name, e);
    FRAG_TRY(frag_generate(g, text[length] ? text + length + 1 : "", v->seed,
                           &trace, e));
    err = frag_trace_write(trace, v->out, e);
    frag_trace_close(trace);
    return err;
}

static int gen_run(const struct call *call, const void *values)
{
    const struct gen_values *v = values;
    struct frag_error e = {""};
    int code;

    if (!v->common.args.count) {
        for (size_t i = 0; frag_generators[i]; i++)
            print_generator(frag_generators[i]);
        return EXIT_DONE;
    }
    if (!v->out || sink_is_stdout(v->out))
        return cli_misuse(call, "expected -o FILE: a trace file is HDF5 and "
                                "cannot go to stdout");
    code = cli_may_replace(call, v->out, v->force);
    if (code != EXIT_DONE)
        return code;
    return cli_fail(call, generate(v, &e), &e);
}

#define AT(field) offsetof(struct gen_values, field)
static const struct option_row options[] = {
    {"output", 'o', "FILE", OPTION_TEXT, AT(out), NULL, "the trace file"},
    {"seed", 0, "N", OPTION_NUMBER, AT(seed), NULL,
     "seed of the random numbers, below 2^32 - 1 (default: 1)"},
    FORCE_OPTION(AT(force)),
    {0},
};

const struct verb verb_gen = {
    .name = "gen",
    .args = "[NAME[:PARAMS] -o FILE]",
    .summary = "generate a trace; without a name, list the generators",
    .about =
        "The same parameters and the same seed make the same trace, byte for "
        "byte. The parameters follow the name: NAME:key=value,key=value.",
    .example = "fragsim gen training:steps=50,jitter=0.5 -o train.h5 --seed 7",
    .options = options,
    .size = sizeof(struct gen_values),
    .defaults = &(const struct gen_values){.seed = 1},
    .args_max = 1,
    .run = gen_run,
};
