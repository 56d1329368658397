/* service_settings.c - reads the variables FRAGSIM_POLICY, FRAGSIM_CAPACITY,
 * FRAGSIM_OUTPUT, FRAGSIM_REPLACE, FRAGSIM_STARTED, FRAGSIM_UNUSED and
 * FRAGSIM_TORCH_RELEASE of the environment. */
#include "real/torch/service_settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/replay/serve.h"
#include "traces/printable.h"

static const char *variable(const char *name, const char *usual)
{
    const char *text = getenv(name);

    return text && *text ? text : usual;
}

/* Reads the parameters. Policy torch has the rules of the PyTorch that runs,
 * unless they name another release: of two the last one holds. */
static enum frag_err read_params(struct settings *s, const char *given,
                                 struct frag_error *e)
{
    const char *release = variable("FRAGSIM_TORCH_RELEASE", "");
    char text[PATH_MAX];

    if (strcmp(s->policy->name, "torch") != 0 || !*release)
        return frag_params_read(s->policy, given, &s->params, e);
    if (snprintf(text, sizeof(text), "torch_version:%s%s%s", release,
                 *given ? "," : "", given) >= (int)sizeof(text))
        return frag_fail(e, FRAG_INVALID,
                         "FRAGSIM_POLICY: expected fewer than %d characters",
                         PATH_MAX);
    return frag_params_read(s->policy, text, &s->params, e);
}

static enum frag_err read_policy(struct settings *s, struct frag_error *e)
{
    const char *colon;
    char name[64];

    s->text = variable("FRAGSIM_POLICY", "torch");
    colon = strchr(s->text, ':');
    snprintf(name, sizeof(name), "%.*s",
             (int)(colon ? colon - s->text : (ptrdiff_t)strlen(s->text)),
             s->text);
    s->policy = frag_policy_find(name);
    if (!s->policy)
        return frag_fail(e, FRAG_INVALID,
                         "FRAGSIM_POLICY: there is no policy \"%s\"; see "
                         "`fragsim policies`",
                         name);
    FRAG_TRY(frag_serve_accepts(s->policy, e));
    return read_params(s, colon ? colon + 1 : "", e);
}

static enum frag_err read_capacity(struct settings *s, struct frag_error *e)
{
    const char *text = variable("FRAGSIM_CAPACITY", "inf");

    if (frag_size_parse(text, &s->capacity) == FRAG_OK)
        return FRAG_OK;
    return frag_fail(e, FRAG_INVALID,
                     "FRAGSIM_CAPACITY: expected a size such as 20GiB or inf, "
                     "found \"%s\"",
                     text);
}

static bool may_replace(void)
{
    return !strcmp(variable("FRAGSIM_REPLACE", "0"), "1");
}

/* Replaces the first "%p" by the process id. */
static enum frag_err read_output(struct settings *s, struct frag_error *e)
{
    const char *text = variable("FRAGSIM_OUTPUT", "");
    const char *mark = strstr(text, "%p");
    int length;

    if (mark)
        length = snprintf(s->output, sizeof(s->output), "%.*s%ld%s",
                          (int)(mark - text), text, (long)getpid(), mark + 2);
    else
        length = snprintf(s->output, sizeof(s->output), "%s", text);
    if (length >= (int)sizeof(s->output))
        return frag_fail(e, FRAG_INVALID,
                         "FRAGSIM_OUTPUT: expected at most 4095 characters");
    if (!*variable("FRAGSIM_STARTED", "") && !may_replace() &&
        access(s->output, F_OK) == 0)
        return frag_fail(e, FRAG_INVALID,
                         "FRAGSIM_OUTPUT: %s exists; set FRAGSIM_REPLACE=1 "
                         "to overwrite it",
                         s->output);
    return FRAG_OK;
}

/* Whether the file was written after the start of the whole run, thus by
 * another process of the run. */
static bool is_of_this_run(const struct stat *file)
{
    long long seconds = 0;
    long ns = 0;

    if (sscanf(variable("FRAGSIM_STARTED", ""), "%lld.%ld", &seconds, &ns) != 2)
        return false;
    return file->st_mtim.tv_sec != seconds ? file->st_mtim.tv_sec > seconds
                                           : file->st_mtim.tv_nsec >= ns;
}

void settings_use(void)
{
    unlink(variable("FRAGSIM_UNUSED", ""));
}

void settings_keep_results(struct settings *s)
{
    char name[sizeof(s->output)];
    const char *base, *suffix;
    struct stat file;

    if (stat(s->output, &file) < 0 || (may_replace() && !is_of_this_run(&file)))
        return;
    strcpy(name, s->output);
    base = strrchr(name, '/');
    suffix = strrchr(base ? base : name, '.');
    if (!suffix)
        suffix = name + strlen(name);
    snprintf(s->output, sizeof(s->output), "%.*s.%ld%s", (int)(suffix - name),
             name, (long)getpid(), suffix);
    printable_line(stderr,
                   "fragsim: %s exists, since another process wrote it; the "
                   "results of process %ld are in %s",
                   name, (long)getpid(), s->output);
}

enum frag_err settings_read(struct settings *out, struct frag_error *e)
{
    free(out->params); /* of the process that forked this one */
    out->params = NULL;
    FRAG_TRY(read_policy(out, e));
    FRAG_TRY(read_capacity(out, e));
    return read_output(out, e);
}
