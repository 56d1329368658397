/* grid.c - reads a grid from options and a file, and numbers its cells. */
#include "sim/experiments/sweep/grid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/bytes/input.h"

/* A grid while it is read. */
struct reading {
    struct grid grid;
    struct texts policies, bounds[FRAG_BOUND_KINDS], edits;
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
                 {"edit", &r->edits}};
    size_t n = strcspn(line, " \t");
    char *rest = line + n;

    rest += strspn(rest, " \t");
    for (size_t i = 0; *rest && i < sizeof(words) / sizeof(*words); i++)
        if (strlen(words[i].word) == n && !strncmp(line, words[i].word, n))
            return append(words[i].list, rest, e);
    return frag_fail(e, FRAG_INVALID,
                     "%s:%zu: expected \"trace\", \"policy\", \"capacity\", "
                     "\"process_limit\" or \"edit\" and its value, found "
                     "\"%.60s\"",
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
    if (s->edits)
        FRAG_TRY(append_all(&r->edits, s->edits, e));
    if (s->file)
        FRAG_TRY(read_file(r, s->file, e));
    if (!r->grid.traces.count)
        return frag_fail(e, FRAG_INVALID,
                         "expected a trace as an argument or "
                         "in the --grid file, found none");
    FRAG_TRY(read_edits(r, e));
    FRAG_TRY(policy_choices_read(&r->policies, &r->grid.policies,
                                 &r->grid.policy_count, e));
    FRAG_TRY(bound_choices_read(r->bounds, &r->grid.bounds,
                                &r->grid.bound_count, e));
    if (grid_cells(&r->grid) > GRID_CELLS_MAX)
        return frag_fail(e, FRAG_INVALID,
                         "the grid has more than %llu cells; name fewer "
                         "policies or bounds",
                         (unsigned long long)GRID_CELLS_MAX);
    return FRAG_OK;
}

enum frag_err grid_read(const struct grid_source *source, struct grid *out,
                        struct frag_error *e)
{
    struct reading r = {.edits = {NULL, 0}};
    enum frag_err err = read_all(&r, source, e);

    free(r.policies.items);
    for (int k = 0; k < FRAG_BOUND_KINDS; k++)
        free(r.bounds[k].items);
    free(r.edits.items);
    *out = r.grid;
    return err;
}

void grid_free(struct grid *grid)
{
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
