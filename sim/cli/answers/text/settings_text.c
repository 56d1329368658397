/* settings_text.c - reads settings of PyTorch's allocator as each release does,
 * and writes what they make of them. The judgement is in sim/answers/conf/. */
#include "sim/cli/answers/text/settings_text.h"

#include <stdlib.h>
#include <string.h>

#include "sim/answers/conf/conf.h"
#include "sim/cli/output/answer.h"
#include "sim/version.h"
#include "traces/printable.h"

enum { RELEASES = TORCH_NEWEST - TORCH_OLDEST + 1, SPAN = 24 };

struct settings {
    struct conf_input input;
    unsigned version; /* the release asked for, TORCH_LATER too */
    struct conf_answer of[RELEASES];
    const struct conf_answer *asked; /* one of these */
};

/* ---- the question ---- */

static void read_environment(struct settings *s)
{
    static const char *const names[CONF_SOURCES] = {"PYTORCH_CUDA_ALLOC_CONF",
                                                    "PYTORCH_HIP_ALLOC_CONF",
                                                    "PYTORCH_ALLOC_CONF"};

    for (size_t i = 0; i < CONF_SOURCES; i++)
        s->input.sources[i] = (struct conf_source){names[i], getenv(names[i])};
    s->input.uncached = getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL;
}

/* Reads the release before the settings, "torch_version:2.6," or "@2.6:". */
static enum frag_err read_version(struct settings *s, const char **text,
                                  struct frag_error *e)
{
    const size_t n = **text == '@'                           ? 1
                     : !strncmp(*text, "torch_version:", 14) ? 14
                                                             : 0;
    const size_t length = strcspn(*text + n, ",:");
    char value[32];

    s->version = TORCH_MODEL;
    if (!n)
        return FRAG_OK;
    snprintf(value, sizeof(value), "%.*s", (int)length, *text + n);
    *text += n + length + ((*text)[n + length] != '\0');
    return torch_version_read(value, &s->version, e);
}

static enum frag_err judge(struct settings *s, const char *text,
                           struct frag_error *e)
{
    FRAG_TRY(read_version(s, &text, e));
    if (!strcmp(text, "-"))
        read_environment(s);
    else
        s->input.sources[0].text = text;
    for (unsigned i = 0; i < RELEASES; i++)
        FRAG_TRY(conf_read(&s->input, TORCH_OLDEST + i, &s->of[i], e));
    s->asked = &s->of[(s->version < TORCH_LATER ? s->version : TORCH_NEWEST) -
                      TORCH_OLDEST];
    return FRAG_OK;
}

/* ---- the answer ---- */

/* What the release of that index makes of a setting of the asked one. */
static const struct conf_item *
in_release(const struct settings *s, const struct conf_item *it, unsigned index)
{
    return conf_item_at(&s->of[index], it->place);
}

/* The index after the last release that makes the same of a setting as the
 * release `first`; writes both as "2.1 to 2.15". */
static unsigned span(const struct settings *s, const struct conf_item *it,
                     unsigned first, char text[SPAN])
{
    const struct conf_item *now = in_release(s, it, first);
    unsigned end = first + 1;

    while (end < RELEASES && in_release(s, it, end)->status == now->status &&
           !strcmp(in_release(s, it, end)->why, now->why))
        end++;
    if (end == first + 1)
        snprintf(text, SPAN, "2.%u", TORCH_OLDEST + first);
    else
        snprintf(text, SPAN, "2.%u to 2.%u", TORCH_OLDEST + first,
                 TORCH_OLDEST + end - 1);
    return end;
}

/* Whether PyTorch's own allocator serves the program. */
static bool is_served(const struct conf_answer *a)
{
    return !a->is_driver && !a->input->uncached;
}

/* Said where expandable segments are in force. */
static const char cannot_expand[] =
    "Expandable segments cannot be used on Windows and WSL, where PyTorch "
    "warns and ignores them; with ROCm before 7.0, or PyTorch for ROCm before "
    "2.12; and by programs that share GPU memory between processes "
    "(cudaIpcGetMemHandle), or register it with some versions of NCCL and "
    "RDMA.";

static const char *limits_of(const struct conf_answer *a)
{
    return is_served(a) && strstr(a->used->text, "expandable_segments:True")
               ? cannot_expand
               : NULL;
}

static void put_item(FILE *out, const struct settings *s,
                     const struct conf_item *it)
{
    const char *variable = it->source->variable;
    char text[SPAN];

    printable_line(out, "%s%s%s%s%s", variable ? variable : "",
                   variable ? ", " : "", it->key, *it->value ? ":" : "",
                   it->value);
    for (unsigned i = 0, end; i < RELEASES; i = end) {
        const struct conf_item *now = in_release(s, it, i);

        end = span(s, it, i, text);
        printable_line(out, "    %s %s%s%s", text,
                       conf_status_names[now->status], *now->why ? ": " : "",
                       now->why);
    }
}

static void put_text(FILE *out, const struct settings *s)
{
    const struct conf_answer *a = s->asked;

    for (size_t i = 0; i < a->count; i++)
        put_item(out, s, &a->items[i]);
    if (s->version == TORCH_LATER)
        fprintf(out,
                "This release of PyTorch is not known to fragsim %s (knows "
                "PyTorch up to 2.%d).\n",
                frag_version, TORCH_NEWEST);
    printable_line(out, "PyTorch 2.%u: %s; in force: %s", a->version,
                   conf_status_names[conf_verdict(a)],
                   is_served(a) ? a->used->text : "none of them");
    if (limits_of(a))
        fprintf(out, "%s\n", limits_of(a));
}

static void json_item(struct frag_json *j, const struct settings *s,
                      const struct conf_item *it)
{
    char text[SPAN];

    frag_json_new_object(j, 4, NULL);
    frag_json_text(j, "key", it->key);
    frag_json_text(j, "value", it->value);
    frag_json_text(j, "variable", it->source->variable);
    frag_json_text(j, "status", conf_status_names[it->status]);
    frag_json_text(j, "why", *it->why ? it->why : NULL);
    frag_json_array(j, "releases");
    for (unsigned i = 0, end; i < RELEASES; i = end) {
        const struct conf_item *now = in_release(s, it, i);

        end = span(s, it, i, text);
        frag_json_object(j, NULL);
        frag_json_text(j, "releases", text);
        frag_json_text(j, "status", conf_status_names[now->status]);
        frag_json_text(j, "why", *now->why ? now->why : NULL);
        frag_json_end(j);
    }
    frag_json_end(j);
    frag_json_end(j);
}

static void put_json(struct frag_json *j, const struct settings *s)
{
    const struct conf_answer *a = s->asked;
    char version[16];

    snprintf(version, sizeof(version), "2.%u", a->version);
    frag_json_new_object(j, 2, NULL);
    frag_json_text(j, "torch_version", version);
    frag_json_text(j, "verdict", conf_status_names[conf_verdict(a)]);
    frag_json_bool(j, "knows_release", s->version < TORCH_LATER);
    frag_json_text(j, "in_force", is_served(a) ? a->used->text : NULL);
    frag_json_text(j, "cannot_expand", limits_of(a));
    frag_json_new_array(j, 3, "settings");
    for (size_t i = 0; i < a->count; i++)
        json_item(j, s, &a->items[i]);
    frag_json_end(j);
    frag_json_end(j);
}

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    (void)e;
    if (j)
        put_json(j, user);
    else
        put_text(out, user);
    return FRAG_OK;
}

int settings_answer(const struct call *call, const char *settings,
                    const char *json)
{
    struct settings s = {0};
    struct frag_error e = {""};
    enum frag_err err = judge(&s, settings, &e);
    int code;

    FRAG_THEN(err, answer_write(call, &(const struct answer){put, NULL, &s},
                                json, &e));
    code = err == FRAG_OK && conf_verdict(s.asked) != CONF_ACCEPTED
               ? EXIT_NO
               : cli_fail(call, err, &e);
    for (unsigned i = 0; i < RELEASES; i++)
        conf_close(&s.of[i]);
    return code;
}
