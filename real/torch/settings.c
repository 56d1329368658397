/* settings.c - reads the variables FRAGSIM_POLICY, FRAGSIM_CAPACITY,
 * FRAGSIM_OUTPUT and FRAGSIM_REPLACE of the environment. */
#include "real/torch/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *variable(const char *name, const char *usual)
{
    const char *text = getenv(name);

    return text && *text ? text : usual;
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
    return frag_params_read(s->policy, colon ? colon + 1 : "", &s->params, e);
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
    if (!access(s->output, F_OK) &&
        strcmp(variable("FRAGSIM_REPLACE", "0"), "1") != 0)
        return frag_fail(e, FRAG_INVALID,
                         "FRAGSIM_OUTPUT: %s exists; set FRAGSIM_REPLACE=1 "
                         "to overwrite it",
                         s->output);
    return FRAG_OK;
}

enum frag_err settings_read(struct settings *out, struct frag_error *e)
{
    FRAG_TRY(read_policy(out, e));
    FRAG_TRY(read_capacity(out, e));
    return read_output(out, e);
}
