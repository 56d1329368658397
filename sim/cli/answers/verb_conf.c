/* verb_conf.c - the command conf: explains and checks a value of
 * PYTORCH_CUDA_ALLOC_CONF. The judgement is in sim/answers/conf/. */
#include <stdlib.h>
#include <string.h>

#include "sim/cli/answers/text/conf_print.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/answer.h"

struct conf_values {
    struct common common;
    const char *version, *platform, *json;
    bool keys, force;
};

/* A text while it is judged. */
struct judging {
    const struct conf_values *values;
    const char *source; /* variable that held the text; NULL: an argument */
    struct conf_answer answer;
};

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

/* torch_npu reads one variable of its own and the general one, and fails if
 * both are set (NPUAllocatorConfig.cpp). */
static enum frag_err read_npu_environment(struct judging *g, unsigned version,
                                          struct frag_error *e)
{
    const char *own = torch_platforms[TORCH_NPU].variable;
    const char *general = torch_platforms[TORCH_XPU].variable;
    const bool both = getenv(own) && getenv(general);

    g->source = getenv(own) ? own : getenv(general) ? general : NULL;
    FRAG_TRY(conf_read_for(TORCH_NPU, g->source ? getenv(g->source) : "",
                           version, CONF_WHOLE, &g->answer, e));
    if (both && !conf_say(&g->answer, CONF_REFUSED, SIZE_MAX,
                          "%s and %s are both set: torch_npu raises an error. "
                          "Set one of them.",
                          own, general))
        return frag_no_memory(e, "the findings");
    return FRAG_OK;
}

static enum frag_err read_platform(const struct judging *g,
                                   enum torch_platform_id *platform,
                                   struct frag_error *e)
{
    const char *text = g->values->platform;

    if (text)
        *platform = torch_platform_find(text, strlen(text));
    else if (!g->values->common.args.count &&
             getenv(torch_platforms[TORCH_NPU].variable))
        *platform = TORCH_NPU;
    else
        *platform = TORCH_CUDA;
    return *platform < TORCH_PLATFORMS
               ? FRAG_OK
               : frag_fail(e, FRAG_INVALID,
                           "--platform: expected cuda, rocm, xpu or npu, found "
                           "\"%.40s\"",
                           text);
}

/* Reads the variables of the environment. */
static enum frag_err read_environment(struct judging *g,
                                      enum torch_platform_id platform,
                                      unsigned version, struct frag_error *e)
{
    const char *values[CONF_VARIABLES];
    size_t used;

    for (size_t i = 0; i < CONF_VARIABLES; i++)
        values[i] = getenv(conf_variables[i]);
    used = conf_variable_used(values, version);
    g->source = used < CONF_VARIABLES ? conf_variables[used] : NULL;
    FRAG_TRY(conf_read_for(platform, g->source ? values[used] : "", version,
                           platform == TORCH_CUDA ? conf_variable_part(used)
                                                  : CONF_WHOLE,
                           &g->answer, e));
    return conf_judge_variables(
        &g->answer, values, getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL,
        e);
}

static enum frag_err judge(struct judging *g, struct frag_error *e)
{
    const struct texts *args = &g->values->common.args;
    enum torch_platform_id platform;
    unsigned version;

    FRAG_TRY(read_version(g->values->version, &version, e));
    FRAG_TRY(read_platform(g, &platform, e));
    if (args->count && strcmp(args->items[0], "-") != 0)
        return conf_read_for(platform, args->items[0], version, CONF_WHOLE,
                             &g->answer, e);
    return platform == TORCH_NPU ? read_npu_environment(g, version, e)
                                 : read_environment(g, platform, version, e);
}

/* ---- the output ---- */

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    const struct judging *g = user;

    (void)e;
    if (g->values->keys)
        conf_put_keys(out, j);
    else if (j)
        conf_put_json(j, &g->answer, g->source);
    else
        conf_put_text(out, &g->answer, g->source);
    return FRAG_OK;
}

static int check_options(const struct call *call, const struct conf_values *v)
{
    if (v->keys && v->common.args.count)
        return cli_misuse(call, "--keys explains all settings; leave out the "
                                "text");
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
    if (!g.values->keys)
        err = judge(&g, &e);
    if (err == FRAG_OK)
        err = answer_write(call, &(const struct answer){put, NULL, &g},
                           g.values->json, &e);
    code = err == FRAG_OK && conf_level(&g.answer) <= CONF_IGNORED
               ? EXIT_NO
               : cli_fail(call, err, &e);
    conf_close(&g.answer);
    return code;
}

/* clang-format off */
#define AT(field) offsetof(struct conf_values, field)
static const struct option_row options[] = {
    {"torch-version", 0, "2.N",
     "version of PyTorch that reads the text (default: the newest that fragsim "
     "knows)",
     OPTION_TEXT, AT(version), NULL},
    {"platform", 0, "NAME",
     "device library of PyTorch: cuda, rocm, xpu, or npu for torch_npu "
     "(default: npu if PYTORCH_NPU_ALLOC_CONF is read, else cuda)",
     OPTION_TEXT, AT(platform), NULL},
    {"keys", 0, NULL, "explain all settings", OPTION_SWITCH, AT(keys), NULL},
    {"json", 0, "FILE", "write the same as JSON; - is stdout", OPTION_TEXT,
     AT(json), NULL},
    FORCE_OPTION(AT(force)),
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
        "PYTORCH_ALLOC_CONF: PyTorch uses the first of them that is set. "
        "torch_npu for Ascend (--platform npu) reads PYTORCH_NPU_ALLOC_CONF or "
        "PYTORCH_ALLOC_CONF, and fails if both are set.\n\n"
        "The exit code is 1 if PyTorch refuses or ignores a part of the text. "
        "What is dangerous does not change the exit code.\n\n"
        "What settings do to a recording is said by `fragsim replay TRACE -p "
        "torch -p torch:SETTINGS'.",
    .example = "fragsim conf expandeable_segments:True,max_split_size_mb:64",
    .options = options,
    .size = sizeof(struct conf_values),
    .defaults = &(const struct conf_values){.version = NULL},
    .args_min = 0,
    .args_max = 1,
    .run = conf_run,
};
