/* grid.c - reads a grid from options and a file, and numbers its cells. */
#include "sim/experiments/sweep/grid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/sweep/values.h"
#include "traces/bytes/input.h"
#include "traces/grow.h"

/* One parameter and its values. */
struct axis {
    const char *text;     /* the whole text of the parameter */
    const char *policy;   /* of the text: a policy's name or file */
    size_t policy_length; /* bytes; 0: every policy that has the parameter */
    char key[64];
    struct values_of values;
    bool used;
};

/* A grid while it is read. */
struct reading {
    struct grid grid;
    struct texts policies, bounds[FRAG_BOUND_KINDS], params, edits;
    struct axis *axes;
};

static enum frag_err no_memory(struct frag_error *e)
{
    return frag_no_memory(e, "the grid");
}

static enum frag_err append(struct texts *list, const char *text,
                            struct frag_error *e)
{
    return texts_append(list, text) ? FRAG_OK : no_memory(e);
}

static enum frag_err append_all(struct texts *list, const struct texts *more,
                                struct frag_error *e)
{
    for (size_t i = 0; i < more->count; i++)
        FRAG_TRY(append(list, more->items[i], e));
    return FRAG_OK;
}

/* -- the file ------------------------------------------------------------ */

static enum frag_err slurp(const char *path, char **text, struct frag_error *e)
{
    size_t room = 0;
    ssize_t n;
    FILE *in;

    FRAG_TRY(input_file(path, &in, e));
    errno = 0;
    n = getdelim(text, &room, '\0', in);
    if (n < 0 && ferror(in)) {
        fclose(in);
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    }
    fclose(in);
    if (!*text)
        return no_memory(e);
    if (n < 0)
        **text = '\0';
    return FRAG_OK;
}

/* Removes the comment, and the blanks at both ends. */
static char *trimmed(char *line)
{
    size_t n;

    line += strspn(line, " \t\r");
    if (*line == '#')
        *line = '\0';
    for (char *at = line; (at = strchr(at, '#')); at++)
        if (at[-1] == ' ' || at[-1] == '\t')
            *at-- = '\0';
    n = strlen(line);
    while (n && strchr(" \t\r", line[n - 1]))
        line[--n] = '\0';
    return line;
}

static enum frag_err read_line(struct reading *r, char *line, const char *path,
                               size_t number, struct frag_error *e)
{
    const struct {
        const char *word;
        struct texts *list;
    } words[] = {{"trace", &r->grid.traces},
                 {"policy", &r->policies},
                 {"capacity", &r->bounds[FRAG_BOUND_CAPACITY]},
                 {"process_limit", &r->bounds[FRAG_BOUND_LIMIT]},
                 {"param", &r->params},
                 {"edit", &r->edits}};
    size_t n = strcspn(line, " \t");
    char *rest = line + n;

    rest += strspn(rest, " \t");
    for (size_t i = 0; *rest && i < sizeof(words) / sizeof(*words); i++)
        if (strlen(words[i].word) == n && !strncmp(line, words[i].word, n))
            return append(words[i].list, rest, e);
    return frag_fail(e, FRAG_INVALID,
                     "%s:%zu: expected \"trace\", \"policy\", \"capacity\", "
                     "\"process_limit\", \"param\" or \"edit\" and its value, "
                     "found \"%.60s\"",
                     path, number, line);
}

static enum frag_err read_file(struct reading *r, const char *path,
                               struct frag_error *e)
{
    char *at;
    size_t number = 0;

    FRAG_TRY(slurp(path, &r->grid.storage, e));
    for (at = r->grid.storage; at;) {
        char *line = at, *end = strchr(at, '\n');

        at = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        number++;
        line = trimmed(line);
        if (*line)
            FRAG_TRY(read_line(r, line, path, number, e));
    }
    return FRAG_OK;
}

/* -- parameters ---------------------------------------------------------- */

static enum frag_err read_axis(const char *text, struct axis *axis,
                               struct frag_error *e)
{
    const char *equals = strchr(text, '='), *colon = strchr(text, ':');
    const char *key = text;
    enum frag_err err;

    axis->text = text;
    if (colon && equals && colon < equals) {
        axis->policy = text;
        axis->policy_length = (size_t)(colon - text);
        key = colon + 1;
    }
    if (!equals || equals == key || equals - key > 63)
        return frag_fail(e, FRAG_INVALID,
                         "--param: expected [POLICY:]KEY=VALUE,..., found "
                         "\"%s\"",
                         text);
    snprintf(axis->key, sizeof(axis->key), "%.*s", (int)(equals - key), key);
    err = values_read(equals + 1, &axis->values, e);
    if (err == FRAG_INVALID) {
        struct frag_error why = *e;

        return frag_fail(e, err, "--param %.60s: %.400s", text, why.text);
    }
    return err;
}

static bool has_param(const struct frag_policy *policy, const char *key)
{
    for (const struct frag_param *p = policy->params; p && p->name; p++)
        if (!strcmp(p->name, key))
            return true;
    return false;
}

/* Whether the axis names the policy: by the policy's name, or by the text
 * before its parameters, such as the file of a plugin. */
static bool is_named(const struct axis *axis, const struct policy_choice *p)
{
    const size_t n = axis->policy_length;
    const size_t text = strcspn(p->text, ":");

    return (strlen(p->policy->name) == n &&
            !memcmp(axis->policy, p->policy->name, n)) ||
           (text == n && !memcmp(axis->policy, p->text, n));
}

static bool applies(const struct axis *axis, const struct policy_choice *p)
{
    return (!axis->policy_length || is_named(axis, p)) &&
           has_param(p->policy, axis->key);
}

/* The policy's text with combination `index` of the axes that apply to it; the
 * last axis changes fastest. NULL if the host has no memory. */
static char *combine(const struct reading *r, const struct policy_choice *base,
                     uint64_t index, uint64_t count)
{
    const char assign = base->policy->configure ? ':' : '=';
    const char *sep = !strchr(base->text, ':')                    ? ":"
                      : base->text[strlen(base->text) - 1] == ':' ? ""
                                                                  : ",";
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    fputs(base->text, out);
    for (size_t i = 0; i < r->params.count; i++) {
        const struct axis *a = &r->axes[i];

        if (!applies(a, base))
            continue;
        count /= a->values.count;
        fprintf(out, "%s%s%c%s", sep, a->key, assign,
                a->values.items[index / count % a->values.count]);
        sep = ",";
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static enum frag_err add_policy(struct reading *r, char *text,
                                struct frag_error *e)
{
    struct grid *g = &r->grid;

    if (!GROW(g->policies, g->policy_room, g->policy_count + 1) ||
        !GROW(g->policy_texts, g->text_room, g->policy_count + 1)) {
        free(text);
        return no_memory(e);
    }
    g->policy_texts[g->policy_count] = text;
    g->policies[g->policy_count] = (struct policy_choice){0};
    return policy_choice_read(text, &g->policies[g->policy_count++], e);
}

/* Adds the policy without the parameters of the axes, as the baseline of its
 * combinations, which are the policies from `first` on. If one of them has
 * equal parameters, that one is the baseline, and nothing is added. */
static enum frag_err add_plain(struct reading *r,
                               const struct policy_choice *base, size_t first,
                               struct frag_error *e)
{
    char *text;

    for (size_t i = first; i < r->grid.policy_count; i++)
        if (!strcmp(r->grid.policies[i].params->text, base->params->text))
            return FRAG_OK;
    text = strdup(base->text);
    return text ? add_policy(r, text, e) : no_memory(e);
}

/* Adds the policy with every combination of the axes that apply to it. */
static enum frag_err combine_all(struct reading *r,
                                 const struct policy_choice *base,
                                 struct frag_error *e)
{
    const size_t first = r->grid.policy_count;
    uint64_t count = 1;

    for (size_t i = 0; i < r->params.count; i++)
        if (applies(&r->axes[i], base)) {
            r->axes[i].used = true;
            count *= r->axes[i].values.count;
            if (count > GRID_CELLS_MAX)
                return frag_fail(e, FRAG_INVALID,
                                 "%s: the parameters have more than %llu "
                                 "combinations; name fewer values",
                                 base->text,
                                 (unsigned long long)GRID_CELLS_MAX);
        }
    for (uint64_t i = 0; i < count; i++) {
        char *one = combine(r, base, i, count);

        if (!one)
            return no_memory(e);
        FRAG_TRY(add_policy(r, one, e));
    }
    return add_plain(r, base, first, e);
}

static enum frag_err expand(struct reading *r, const char *text,
                            struct frag_error *e)
{
    struct policy_choice base;
    enum frag_err err;

    FRAG_TRY(policy_choice_read(text, &base, e));
    err = combine_all(r, &base, e);
    policy_choice_free(&base);
    return err;
}

static enum frag_err expand_all(struct reading *r, struct frag_error *e)
{
    if (!r->policies.count)
        FRAG_TRY(append(&r->policies, "torch", e));
    r->axes = calloc(r->params.count + 1, sizeof(*r->axes));
    if (!r->axes)
        return no_memory(e);
    for (size_t i = 0; i < r->params.count; i++)
        FRAG_TRY(read_axis(r->params.items[i], &r->axes[i], e));
    for (size_t i = 0; i < r->policies.count; i++)
        FRAG_TRY(expand(r, r->policies.items[i], e));
    for (size_t i = 0; i < r->params.count; i++)
        if (!r->axes[i].used)
            return frag_fail(e, FRAG_INVALID,
                             "--param %s: none of the policies has this "
                             "parameter",
                             r->axes[i].text);
    return FRAG_OK;
}

/* -- edits --------------------------------------------------------------- */

static enum frag_err read_edits(struct reading *r, struct frag_error *e)
{
    struct grid *g = &r->grid;

    if (!r->edits.count)
        FRAG_TRY(append(&r->edits, "none", e));
    g->edits = calloc(r->edits.count, sizeof(*g->edits));
    if (!g->edits)
        return no_memory(e);
    for (size_t i = 0; i < r->edits.count; i++) {
        struct grid_edit *edit = &g->edits[g->edit_count];

        if (strcmp(r->edits.items[i], "none") != 0) {
            FRAG_TRY(frag_edits_read(&r->edits.items[i], 1, &edit->edits, e));
            edit->text = frag_edits_text(edit->edits);
        }
        g->edit_count++;
    }
    return FRAG_OK;
}

/* -- the grid ------------------------------------------------------------ */

static enum frag_err read_all(struct reading *r, const struct grid_source *s,
                              struct frag_error *e)
{
    FRAG_TRY(append_all(&r->grid.traces, s->traces, e));
    FRAG_TRY(append_all(&r->policies, s->policies, e));
    for (int k = 0; k < FRAG_BOUND_KINDS; k++)
        FRAG_TRY(append_all(&r->bounds[k], &s->bounds[k], e));
    FRAG_TRY(append_all(&r->params, s->params, e));
    if (s->edits)
        FRAG_TRY(append_all(&r->edits, s->edits, e));
    if (s->file)
        FRAG_TRY(read_file(r, s->file, e));
    if (!r->grid.traces.count)
        return frag_fail(e, FRAG_INVALID,
                         "expected a trace as an argument or "
                         "in the --grid file, found none");
    FRAG_TRY(read_edits(r, e));
    FRAG_TRY(expand_all(r, e));
    FRAG_TRY(bound_choices_read(r->bounds, &r->grid.bounds,
                                &r->grid.bound_count, e));
    if (grid_cells(&r->grid) > GRID_CELLS_MAX)
        return frag_fail(e, FRAG_INVALID,
                         "the grid has more than %llu cells; name fewer "
                         "policies, values or bounds",
                         (unsigned long long)GRID_CELLS_MAX);
    return FRAG_OK;
}

enum frag_err grid_read(const struct grid_source *source, struct grid *out,
                        struct frag_error *e)
{
    struct reading r = {.axes = NULL};
    enum frag_err err = read_all(&r, source, e);

    for (size_t i = 0; r.axes && i < r.params.count; i++)
        values_free(&r.axes[i].values);
    free(r.axes);
    free(r.policies.items);
    for (int k = 0; k < FRAG_BOUND_KINDS; k++)
        free(r.bounds[k].items);
    free(r.params.items);
    free(r.edits.items);
    *out = r.grid;
    return err;
}

void grid_free(struct grid *grid)
{
    for (size_t i = 0; i < grid->policy_count; i++)
        free(grid->policy_texts[i]);
    free(grid->policy_texts);
    policy_choices_free(grid->policies, grid->policy_count);
    free(grid->bounds);
    for (size_t i = 0; i < grid->edit_count; i++)
        frag_edits_free(grid->edits[i].edits);
    free(grid->edits);
    free(grid->traces.items);
    free(grid->storage);
    *grid = (struct grid){0};
}

uint64_t grid_cells(const struct grid *grid)
{
    return (uint64_t)grid->traces.count * grid->edit_count *
           grid->policy_count * grid->bound_count;
}

struct grid_cell grid_cell(const struct grid *grid, uint64_t index)
{
    const uint64_t pair = index / grid->bound_count / grid->policy_count;

    return (struct grid_cell){
        .trace = pair / grid->edit_count,
        .edit = pair % grid->edit_count,
        .policy = index / grid->bound_count % grid->policy_count,
        .bound = index % grid->bound_count,
    };
}

enum frag_err shard_read(const char *text, struct shard *out,
                         struct frag_error *e)
{
    unsigned index, count;
    char more;

    if (sscanf(text, "%6u/%6u%c", &index, &count, &more) != 2 || !index ||
        index > count || strspn(text, "0123456789/") != strlen(text))
        return frag_fail(e, FRAG_INVALID,
                         "--shard: expected I/N, with I from 1 to N, found "
                         "\"%s\"",
                         text);
    *out = (struct shard){index, count};
    return FRAG_OK;
}

uint64_t shard_first(const struct shard *shard, uint64_t cells)
{
    return (shard->index - 1) * cells / shard->count;
}

uint64_t shard_end(const struct shard *shard, uint64_t cells)
{
    return shard->index * cells / shard->count;
}
