/* selection.c - loads result files, selects runs by their numbers, and makes
 * their short names. */
#include "sim/cli/figures/selection.h"

#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"
#include "traces/text.h"

/* -- the names of traces ------------------------------------------------- */

/* The trace of some runs. */
struct named {
    const char *path, *sha256; /* its key; borrowed */
    char *name;
    size_t folders;  /* of the path, that the shown name needs */
    bool needs_hash; /* folders do not tell it from another trace */
};

struct nameds {
    struct named *items;
    size_t count;
    uint64_t room;
};

static const char *path_of(const struct frag_loaded_run *r)
{
    return r->id.trace.path + (strncmp(r->id.trace.path, "./", 2) ? 0 : 2);
}

/* The trace of a run in the list; NULL if it is not there. */
static struct named *find_named(const struct nameds *l,
                                const struct frag_loaded_run *r)
{
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(l->items[i].path, path_of(r)) &&
            !strcmp(l->items[i].sha256, r->id.trace.sha256))
            return &l->items[i];
    return NULL;
}

static enum frag_err add_named(struct nameds *l, struct frag_loaded_run *r)
{
    if (find_named(l, r))
        return FRAG_OK;
    if (!GROW(l->items, l->room, l->count + 1))
        return FRAG_NOMEM;
    l->items[l->count++] = (struct named){.path = path_of(r),
                                          .sha256 = r->id.trace.sha256,
                                          .name = strdup(r->id.trace.name)};
    return l->items[l->count - 1].name ? FRAG_OK : FRAG_NOMEM;
}

/* Where the last `folders' folders of a path begin. */
static const char *tail_of(const char *path, size_t folders)
{
    const char *at = path + strlen(path);

    for (folders++; at > path; at--)
        if (at[-1] == '/' && !--folders)
            break;
    return at;
}

/* Gives both names what tells them apart. */
static void part(struct named *a, struct named *b)
{
    size_t folders = 0;

    if (strcmp(a->name, b->name) != 0)
        return;
    while (strcmp(a->path, b->path) != 0 &&
           !strcmp(tail_of(a->path, folders), tail_of(b->path, folders)))
        folders++;
    if (!folders)
        a->needs_hash = b->needs_hash = true;
    a->folders = a->folders > folders ? a->folders : folders;
    b->folders = b->folders > folders ? b->folders : folders;
}

/* "run", "a/run" or "run (SHA-256 0123abcd)", and the edits of the run, so that
 * figures show them. NULL if the host has no memory. */
static char *shown_of(const struct named *n, const struct frag_loaded_run *r)
{
    const char *tail = tail_of(n->path, n->folders);
    const int folders = (int)(tail_of(n->path, 0) - tail);
    char hash[24] = "";

    if (n->needs_hash)
        snprintf(hash, sizeof(hash), " (SHA-256 %.8s)", n->sha256);
    return *r->id.trace.edit
               ? text_make("%.*s%s%s [%s]", folders, tail, n->name, hash,
                           r->id.trace.edit)
               : text_make("%.*s%s%s", folders, tail, n->name, hash);
}

static enum frag_err find_names(const struct result_files *f, struct nameds *l)
{
    for (size_t i = 0; i < f->count; i++)
        for (uint64_t k = 0; k < f->files[i].count; k++)
            FRAG_TRY(add_named(l, &f->files[i].runs[k]));
    for (size_t i = 0; i < l->count; i++)
        for (size_t k = 0; k < i; k++)
            part(&l->items[i], &l->items[k]);
    return FRAG_OK;
}

static enum frag_err rename_traces(struct result_files *f,
                                   const struct nameds *l)
{
    for (size_t i = 0; i < f->count; i++)
        for (uint64_t k = 0; k < f->files[i].count; k++) {
            struct frag_loaded_run *r = &f->files[i].runs[k];
            char *name = shown_of(find_named(l, r), r);

            if (!name)
                return FRAG_NOMEM;
            free((void *)(uintptr_t)r->id.trace.name);
            r->id.trace.name = name;
        }
    return FRAG_OK;
}

/* Two traces of one name are named with what tells them apart. */
static enum frag_err name_traces(struct result_files *f)
{
    struct nameds l = {0};
    enum frag_err err = find_names(f, &l);

    FRAG_THEN(err, rename_traces(f, &l));
    for (size_t i = 0; i < l.count; i++)
        free(l.items[i].name);
    free(l.items);
    return err;
}

/* -- bounds -------------------------------------------------------------- */

/* The quantum of the lower bounds of all runs; 0 if they differ, or if a file
 * is older than the column. */
static frag_size common_quantum(const struct result_files *f)
{
    frag_size quantum = 0;

    for (size_t i = 0; i < f->count; i++)
        for (uint64_t k = 0; k < f->files[i].count; k++) {
            const frag_size its = f->files[i].runs[k].run.summary.quantum;

            if (!its || (quantum && its != quantum))
                return 0;
            quantum = its;
        }
    return quantum;
}

/* Bounds of different quanta are no common measure. Peak requested, the bound
 * of the quantum 1, holds for all policies. */
static void level_bounds(struct result_files *f)
{
    if (common_quantum(f))
        return;
    for (size_t i = 0; i < f->count; i++)
        for (uint64_t k = 0; k < f->files[i].count; k++) {
            struct frag_summary *s = &f->files[i].runs[k].run.summary;

            s->lower_bound = s->demand = s->peak_requested;
            s->quantum = 1;
        }
}

enum frag_err result_files_load(const char *const *paths, size_t count,
                                struct result_files *out, struct frag_error *e)
{
    struct result_files f = {calloc(count, sizeof(*f.files)), 0};
    enum frag_err err = f.files ? FRAG_OK : FRAG_NOMEM;

    while (err == FRAG_OK && f.count < count) {
        err = frag_results_load(paths[f.count], &f.files[f.count], e);
        f.count += err == FRAG_OK;
    }
    FRAG_THEN(err, name_traces(&f));
    if (err != FRAG_OK) {
        result_files_free(&f);
        return err;
    }
    level_bounds(&f);
    *out = f;
    return FRAG_OK;
}

void result_files_free(struct result_files *f)
{
    for (size_t i = 0; i < f->count; i++)
        frag_results_unload(&f->files[i]);
    free(f->files);
    *f = (struct result_files){0};
}

bool is_same_trace(const struct frag_loaded_run *a,
                   const struct frag_loaded_run *b)
{
    return !strcmp(a->id.trace.name, b->id.trace.name) &&
           !strcmp(a->id.trace.sha256, b->id.trace.sha256);
}

enum frag_err selection_add(struct selection *s,
                            const struct frag_loaded_run *r)
{
    if (!GROW(s->runs, s->room, s->count + 1))
        return FRAG_NOMEM;
    s->runs[s->count++] = r;
    s->one_trace =
        s->count == 1 || (s->one_trace && is_same_trace(r, s->runs[0]));
    return FRAG_OK;
}

enum frag_err selection_choose(const struct result_files *f,
                               struct selection *out, struct frag_error *e)
{
    struct selection s = {0};
    enum frag_err err = FRAG_OK;

    for (size_t i = 0; i < f->count; i++)
        for (uint64_t k = 0; err == FRAG_OK && k < f->files[i].count; k++)
            err = selection_add(&s, &f->files[i].runs[k]);
    if (err == FRAG_OK && !s.count)
        err = frag_fail(e, FRAG_INVALID, "the result files hold no runs");
    if (err == FRAG_OK)
        *out = s;
    else
        selection_free(&s);
    return err;
}

enum { TRACE_LETTERS = 28 };

enum frag_err selection_name(struct selection *s, size_t letters)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct frag_loaded_run *r = s->runs[i];

        FRAG_TRY(briefs_add(&s->traces, r->id.trace.name, r->id.trace.sha256));
        FRAG_TRY(briefs_add(&s->policies, r->id.policy, ""));
    }
    briefs_make(&s->traces, TRACE_LETTERS);
    briefs_make(&s->policies, letters);
    return FRAG_OK;
}

const char *selection_trace(const struct selection *s,
                            const struct frag_loaded_run *r)
{
    return briefs_text(&s->traces, r->id.trace.name, r->id.trace.sha256);
}

const char *selection_policy(const struct selection *s,
                             const struct frag_loaded_run *r)
{
    return briefs_text(&s->policies, r->id.policy, "");
}

void selection_free(struct selection *s)
{
    briefs_free(&s->traces);
    briefs_free(&s->policies);
    free(s->runs);
    *s = (struct selection){0};
}
