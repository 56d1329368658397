/* conf.c - the command conf: explains and checks a value of
 * PYTORCH_CUDA_ALLOC_CONF. The judgement is in sim/answers/conf/. */
#include <stdlib.h>
#include <string.h>

#include "sim/cli/answers/text/conf_print.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/inputs.h"
#include "sim/experiments/recording.h"
#include "traces/grow.h"

struct values {
    struct common common;
    struct cell_values cell;
    const char *version, *trace, *capacity, *json;
    bool keys, force;
};

/* A text while it is judged, with what it does to the devices of a trace. */
struct judging {
    const struct values *values;
    const char *source; /* variable that held the text; NULL: an argument */
    struct conf_answer answer;
    struct cell_settings settings;
    struct bound_choice *capacity;
    struct progress progress;
    struct conf_effect *effects;
    size_t effect_count, effect_room;
};

/* ---- the recording ---- */

/* Copies what the answer needs of a trace, which is closed before it is
 * printed. */
static bool keep_trace(struct conf_effect *effect, const struct input *in)
{
    const struct frag_trace *t = in->trace;

    effect->trace = strdup(in->name);
    effect->notes = calloc(t->note_count + 1, sizeof(*effect->notes));
    if (!effect->trace || !effect->notes)
        return false;
    for (; effect->note_count < t->note_count; effect->note_count++) {
        effect->notes[effect->note_count] =
            strdup(t->notes[effect->note_count]);
        if (!effect->notes[effect->note_count])
            return false;
    }
    return true;
}

static enum frag_err replay_device(void *user, const struct input *in,
                                   struct frag_error *e)
{
    struct judging *g = user;
    struct conf_effect *effect;
    static const struct policy_choice none = {.text = ""};
    struct bound_facts facts;

    FRAG_TRY(input_has_history(in, e));
    FRAG_TRY(recording_facts(in->trace, in->device, &facts, e));
    if (!GROW(g->effects, g->effect_room, g->effect_count + 1))
        return frag_no_memory(e, "the results");
    effect = &g->effects[g->effect_count++];
    *effect = (struct conf_effect){
        .device = in->device->device,
        .bound = bound_choice_of(g->capacity, &none, &facts),
    };
    if (!keep_trace(effect, in))
        return frag_no_memory(e, "the results");
    for (int with_default = 0; with_default < 2; with_default++) {
        progress_step(&g->progress, (size_t)with_default + 1, 2, " events", 1,
                      with_default ? "default" : "settings");
        FRAG_TRY(conf_replay(
            &g->answer, with_default, &g->settings, in->device,
            in->trace->settings, effect->bound, progress_tick, &g->progress,
            with_default ? &effect->with_default : &effect->with_settings, e));
    }
    return FRAG_OK;
}

static enum frag_err replay_trace(struct judging *g, struct frag_error *e)
{
    const struct values *v = g->values;
    const char *capacity[] = {v->capacity}, *path[] = {v->trace};
    const struct texts bounds[FRAG_BOUND_KINDS] = {
        [FRAG_BOUND_CAPACITY] = {capacity, v->capacity ? 1 : 0}};
    const struct texts paths = {path, 1};
    size_t count;

    FRAG_TRY(bound_choices_read(bounds, &g->capacity, &count, e));
    if (count != 1)
        return frag_fail(e, FRAG_INVALID,
                         "--capacity: expected one capacity, found %zu", count);
    FRAG_TRY(cell_settings_read(&v->cell, &g->settings, e));
    g->settings.from_requests = true; /* as all that are compared */
    g->settings.points = g->settings.ooms = 0;
    const struct inputs inputs = {
        .paths = &paths,
        .device = v->cell.device,
        .reading = cell_reading(&v->cell),
        .says_notes = !v->common.quiet,
        .progress = &g->progress,
    };
    return inputs_each(&inputs, replay_device, g, e);
}

/* ---- the text ---- */

static enum frag_err read_version(const char *text, unsigned *version,
                                  struct frag_error *e)
{
    struct frag_error why;
    enum frag_err err;

    *version = TORCH_MODEL;
    if (!text)
        return FRAG_OK;
    err = torch_version_read(text, version, &why);
    return err == FRAG_OK ? FRAG_OK
                          : frag_fail(e, err, "--torch-version: %s", why.text);
}

/* Reads the variables of the environment. */
static enum frag_err read_environment(struct judging *g, unsigned version,
                                      struct frag_error *e)
{
    const char *values[CONF_VARIABLES];
    size_t used;

    for (size_t i = 0; i < CONF_VARIABLES; i++)
        values[i] = getenv(conf_variables[i]);
    used = conf_variable_used(values, version);
    g->source = used < CONF_VARIABLES ? conf_variables[used] : NULL;
    FRAG_TRY(conf_read(g->source ? values[used] : "", version, &g->answer, e));
    return conf_judge_variables(
        &g->answer, values, getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL,
        e);
}

static enum frag_err judge(struct judging *g, struct frag_error *e)
{
    const struct texts *args = &g->values->common.args;
    unsigned version;

    FRAG_TRY(read_version(g->values->version, &version, e));
    if (args->count && strcmp(args->items[0], "-") != 0)
        FRAG_TRY(conf_read(args->items[0], version, &g->answer, e));
    else
        FRAG_TRY(read_environment(g, version, e));
    return g->values->trace ? replay_trace(g, e) : FRAG_OK;
}

/* ---- the output ---- */

static void put_text(const struct judging *g, FILE *out)
{
    if (g->values->keys) {
        conf_put_keys(out);
        return;
    }
    conf_put_text(out, &g->answer, g->source);
    for (size_t i = 0; i < g->effect_count; i++)
        conf_put_effect(out, &g->effects[i]);
}

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    const struct judging *g = user;

    (void)e;
    if (!j)
        put_text(g, out);
    else if (g->values->keys)
        conf_put_keys_json(j);
    else
        conf_put_json(j, &g->answer, g->source, g->effects, g->effect_count);
    return FRAG_OK;
}

static void effect_free(struct conf_effect *effect)
{
    for (size_t i = 0; i < effect->note_count; i++)
        free(effect->notes[i]);
    free(effect->notes);
    free(effect->trace);
}

static void judging_close(struct judging *g)
{
    for (size_t i = 0; i < g->effect_count; i++)
        effect_free(&g->effects[i]);
    free(g->effects);
    free(g->capacity);
    conf_close(&g->answer);
}

static int check_options(const struct call *call, const struct values *v)
{
    if (v->keys && v->common.args.count)
        return cli_misuse(call, "--keys explains all settings; leave out the "
                                "text");
    if (v->keys && v->trace)
        return cli_misuse(call, "--keys replays nothing; leave out --trace");
    if (v->capacity && !v->trace)
        return cli_misuse(call, "--capacity is for a replay; pass --trace");
    return cli_may_write(call, v->json, v->force);
}

static int conf_run(const struct call *call, const void *values)
{
    struct judging g = {.values = values};
    struct frag_error e = {""};
    enum frag_err err = FRAG_OK;
    int code = check_options(call, g.values);

    if (code != EXIT_DONE)
        return code;
    g.progress = progress_start(&g.values->common);
    cli_catch_signals();
    if (!g.values->keys)
        err = judge(&g, &e);
    if (err == FRAG_OK)
        err = answer_write(call, &(const struct answer){put, NULL, &g},
                           g.values->json, &e);
    code = err == FRAG_OK && conf_level(&g.answer) <= CONF_IGNORED
               ? EXIT_NO
               : cli_fail(call, err, &e);
    judging_close(&g);
    return code;
}

/* clang-format off */
#define AT(field) offsetof(struct values, field)
static const struct option_row options[] = {
    {"torch-version", 0, "2.N",
     "version of PyTorch that reads the text (default: 2.11, whose placement "
     "the policy torch models)",
     OPTION_TEXT, AT(version), NULL},
    {"keys", 0, NULL, "explain all settings", OPTION_SWITCH, AT(keys), NULL},
    {"trace", 0, "TRACE",
     "also replay this trace with the settings and with the default",
     OPTION_TEXT, AT(trace), NULL},
    {"capacity", 'c', "SIZE",
     "memory of the device in that replay: a size such as 24GiB, a share of "
     "the trace's peak requested such as 0.9x, or inf (default)",
     OPTION_TEXT, AT(capacity), NULL},
    CELL_MODEL_OPTIONS(AT),
    {"json", 0, "FILE", "write the same as JSON; - is stdout", OPTION_TEXT,
     AT(json), NULL},
    {"force", 'f', NULL, "overwrite an existing file", OPTION_SWITCH,
     AT(force), NULL},
    {0},
};
#undef AT
/* clang-format on */

const struct verb verb_conf = {
    .name = "conf",
    .args = "[SETTINGS|-]",
    .summary = "explain and check a value of PYTORCH_CUDA_ALLOC_CONF",
    .about =
        "The command says of each setting what it does, its default, which "
        "versions of PyTorch know it, when it helps and what it costs. It "
        "names what PyTorch refuses (an unknown setting, a wrong value, a "
        "setting that the version does not know), what PyTorch ignores (a "
        "setting without an effect, or one that contradicts another), what is "
        "dangerous, and what else must be known. It prints the settings that "
        "are in force, and the shortest text with the same effect.\n\n"
        "Without SETTINGS, or with -, it reads the environment variables "
        "PYTORCH_CUDA_ALLOC_CONF, PYTORCH_HIP_ALLOC_CONF and "
        "PYTORCH_ALLOC_CONF: PyTorch uses the first of them that is set.\n\n"
        "The exit code is 1 if PyTorch refuses or ignores a part of the text. "
        "What is dangerous does not change the exit code.\n\n"
        "With --trace, it says what the settings do to that recording, "
        "compared with the default settings.",
    .example = "fragsim conf expandeable_segments:True,max_split_size_mb:64",
    .options = options,
    .size = sizeof(struct values),
    .defaults = &(const struct values){.cell = CELL_DEFAULTS},
    .args_min = 0,
    .args_max = 1,
    .run = conf_run,
};
