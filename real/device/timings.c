/* timings.c - the list of timings, its CSV reader and writer, and the typical
 * time of each size. */
#include "real/device/timings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"
#include "traces/printable.h"

static const char header[] = "call,bytes,round,ns";

enum frag_err frag_timings_add(struct frag_timings *t, struct frag_timing row)
{
    if (!GROW(t->rows, t->room, t->count + 1))
        return FRAG_NOMEM;
    t->rows[t->count++] = row;
    return FRAG_OK;
}

void frag_timings_free(struct frag_timings *t)
{
    free(t->rows);
    *t = (struct frag_timings){0};
}

/* ---- text ---- */

void frag_timings_write(const struct frag_timings *t, FILE *out)
{
    fprintf(out, "# %s\n%s\n", t->about, header);
    for (size_t i = 0; i < t->count; i++) {
        const struct frag_timing *row = &t->rows[i];

        fprintf(out, "%s,%" PRIu64 ",%" PRIu32 ",%" PRIu64 "\n",
                frag_driver_call_names[row->call], row->bytes, row->round,
                row->ns);
    }
}

struct reader {
    const char *path;
    unsigned line;
    bool has_header;
    struct frag_timings *into;
};

static bool find_call(const char *name, enum frag_driver_call *out)
{
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        if (!strcmp(frag_driver_call_names[i], name)) {
            *out = (enum frag_driver_call)i;
            return true;
        }
    return false;
}

static enum frag_err read_row(struct reader *r, const char *text,
                              struct frag_error *e)
{
    struct frag_timing row;
    char name[32];
    int end = 0;

    if (sscanf(text, "%31[^,],%" SCNu64 ",%" SCNu32 ",%" SCNu64 "%n", name,
               &row.bytes, &row.round, &row.ns, &end) != 4 ||
        text[end] || strchr(text, '-'))
        return frag_fail(e, FRAG_CORRUPT, "%s:%u: expected %s in \"%.40s\"",
                         r->path, r->line, header, text);
    if (!find_call(name, &row.call))
        return frag_fail(e, FRAG_CORRUPT, "%s:%u: \"%s\" is not a driver call",
                         r->path, r->line, name);
    return frag_timings_add(r->into, row);
}

static enum frag_err read_line(struct reader *r, const char *text,
                               struct frag_error *e)
{
    if (*text == '#' && !*r->into->about)
        printable_text(r->into->about, sizeof(r->into->about),
                       text + strspn(text, "# "));
    if (*text == '#' || !*text)
        return FRAG_OK;
    if (r->has_header)
        return read_row(r, text, e);
    r->has_header = true;
    if (strcmp(text, header))
        return frag_fail(e, FRAG_CORRUPT, "%s:%u: expected the header %s",
                         r->path, r->line, header);
    return FRAG_OK;
}

enum frag_err frag_timings_read(const char *path, struct frag_timings *out,
                                struct frag_error *e)
{
    struct frag_timings t = {0};
    struct reader r = {.path = path, .into = &t};
    enum frag_err err = FRAG_OK;
    FILE *in = fopen(path, "r");
    char text[512];

    if (!in)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    while (err == FRAG_OK && fgets(text, sizeof(text), in)) {
        r.line++;
        text[strcspn(text, "\r\n")] = '\0';
        err = read_line(&r, text, e);
    }
    if (err == FRAG_OK && ferror(in))
        err = frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    fclose(in);
    if (err == FRAG_OK)
        *out = t;
    else
        frag_timings_free(&t);
    return err;
}

/* ---- typical times ---- */

static int by_place(const void *left, const void *right)
{
    const struct frag_timing *a = left, *b = right;

    if (a->call != b->call)
        return a->call < b->call ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

enum frag_err frag_timings_typical(struct frag_timings *t,
                                   enum frag_driver_call call,
                                   struct frag_typical **out, size_t *count)
{
    struct frag_typical *list = malloc((t->count + 1) * sizeof(*list));
    size_t sizes = 0;

    if (!list)
        return FRAG_NOMEM;
    if (t->count)
        qsort(t->rows, t->count, sizeof(*t->rows), by_place);
    for (size_t i = 0; i < t->count; i++) {
        const struct frag_timing *row = &t->rows[i];

        /* The least time of a size comes first. */
        if (row->call == call && row->round &&
            (!sizes || list[sizes - 1].bytes != row->bytes))
            list[sizes++] = (struct frag_typical){row->bytes, (double)row->ns};
    }
    *out = list;
    *count = sizes;
    return FRAG_OK;
}
