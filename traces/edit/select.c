/* select.c - finds the requests that an edit selects: by device, stream, pool,
 * size and call stack. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/edit/edit_parts.h"
#include "traces/name.h"
#include "traces/nearest.h"
#include "traces/text.h"

/* ---- sites ---- */

/* The text of a frame is FUNCTION (FILE:LINE), as in sim/answers/sites.h. */
static bool frame_has(const struct frag_trace *t, const struct frag_frame *f,
                      const char *wanted)
{
    char text[1024];

    snprintf(text, sizeof(text), "%.500s (%.300s:%" PRIu32 ")",
             t->strings[f->function], frag_file_name(t->strings[f->file]),
             f->line);
    return strstr(text, wanted) != NULL;
}

static bool stack_has(const struct frag_trace *t, uint32_t stack,
                      const char *wanted)
{
    for (uint64_t i = t->stack_first[stack]; i < t->stack_first[stack + 1]; i++)
        if (frame_has(t, &t->frames[i], wanted))
            return true;
    return false;
}

static enum frag_err no_such_site(const struct making *m, const char *wanted)
{
    const struct frag_trace *t = m->trace;
    struct nearest near = nearest_to(wanted);
    char hint[NEAREST_HINT];

    if (t->stack_count < 2)
        return edit_fail(m, "site= needs call stacks, and %.100s has none",
                         t->path);
    for (uint64_t i = 0; i < t->stack_first[t->stack_count]; i++)
        nearest_try(&near, t->strings[t->frames[i].function]);
    return edit_fail(m,
                     "no stack frame of %.100s, such as `fragsim top' prints, "
                     "contains \"%.60s\"%s",
                     t->path, wanted, nearest_hint(&near, hint));
}

static enum frag_err find_sites(struct making *m)
{
    const struct frag_trace *t = m->trace;
    const char *wanted = m->edit->values[KEY_SITE].text;
    bool found = false;

    m->sites = calloc((size_t)t->stack_count + 1, 1);
    if (!m->sites)
        return frag_no_memory(m->error, "the call stacks");
    for (uint32_t k = 0; k < t->stack_count; k++) {
        m->sites[k] = stack_has(t, k, wanted);
        found = found || m->sites[k];
    }
    return found ? FRAG_OK : no_such_site(m, wanted);
}

/* ---- devices, streams and pools ---- */

/* One member of a list, and whether a device has it. */
typedef bool has_member(const struct frag_device_trace *d,
                        const struct edit_value *v, unsigned i);

static bool has_device(const struct frag_device_trace *d,
                       const struct edit_value *v, unsigned i)
{
    return d->device == v->list[i];
}

static bool has_stream(const struct frag_device_trace *d,
                       const struct edit_value *v, unsigned i)
{
    for (uint32_t k = 0; k < d->stream_count; k++)
        if (d->streams[k] == v->list[i])
            return true;
    return false;
}

static bool has_pool(const struct frag_device_trace *d,
                     const struct edit_value *v, unsigned i)
{
    for (uint32_t k = 0; k < d->pool_count; k++)
        if (d->pools[k].owner == v->owners[i] &&
            d->pools[k].number == v->list[i])
            return true;
    return false;
}

/* Writes what the trace has instead, at most the first members. */
static const char *list_devices(const struct frag_trace *t, char text[160])
{
    *text = '\0';
    for (uint32_t i = 0; i < t->device_count; i++)
        text_add(text, 160, " ", "%" PRIu32, t->devices[i].device);
    return text;
}

static const char *list_streams(const struct frag_trace *t, char text[160])
{
    *text = '\0';
    for (uint32_t i = 0; i < t->device_count; i++)
        for (uint32_t k = 0; k < t->devices[i].stream_count; k++)
            text_add(text, 160, " ", "%" PRIu64, t->devices[i].streams[k]);
    return text;
}

static const char *list_pools(const struct frag_trace *t, char text[160])
{
    *text = '\0';
    for (uint32_t i = 0; i < t->device_count; i++)
        for (uint32_t k = 0; k < t->devices[i].pool_count; k++)
            text_add(text, 160, " ", "%" PRIu64 ":%" PRIu64,
                     t->devices[i].pools[k].owner,
                     t->devices[i].pools[k].number);
    return text;
}

static const struct lookup {
    enum edit_key key;
    has_member *has;
    const char *(*list)(const struct frag_trace *t, char text[160]);
} lookups[] = {
    {KEY_DEVICE, has_device, list_devices},
    {KEY_STREAM, has_stream, list_streams},
    {KEY_POOL, has_pool, list_pools},
};

enum { LOOKUPS = sizeof(lookups) / sizeof(*lookups) };

static enum frag_err check_member(const struct making *m,
                                  const struct lookup *l, unsigned i)
{
    char found[160];

    for (uint32_t k = 0; k < m->trace->device_count; k++)
        if (l->has(&m->trace->devices[k], &m->edit->values[l->key], i))
            return FRAG_OK;
    return edit_fail(m, "%s %" PRIu64 " is not in %.100s, which has %s",
                     edit_keys[l->key].name, m->edit->values[l->key].list[i],
                     m->trace->path, l->list(m->trace, found));
}

enum frag_err select_open(struct making *m)
{
    for (size_t k = 0; k < LOOKUPS; k++) {
        const struct lookup *l = &lookups[k];

        for (unsigned i = 0; i < m->edit->values[l->key].count; i++)
            FRAG_TRY(check_member(m, l, i));
    }
    return edit_has(m->edit, KEY_SITE) ? find_sites(m) : FRAG_OK;
}

void select_close(struct making *m)
{
    free(m->sites);
}

/* ---- requests ---- */

/* Whether the value is one of the list; every value is, if none is given. */
static bool is_in(const struct edit *edit, enum edit_key key, uint64_t number,
                  uint64_t owner)
{
    const struct edit_value *v = &edit->values[key];

    for (unsigned i = 0; i < v->count; i++)
        if (v->list[i] == number && v->owners[i] == owner)
            return true;
    return !edit_has(edit, key);
}

bool select_has(const struct edit_job *job, uint64_t i)
{
    const struct edit *edit = job->edit;
    const struct frag_device_trace *d = job->source.device;
    const struct frag_pool_id pool = d->pools[d->pool[i]];
    const uint8_t *sites = job->making->sites;

    return is_in(edit, KEY_DEVICE, d->device, 0) &&
           is_in(edit, KEY_STREAM, d->streams[d->stream[i]], 0) &&
           is_in(edit, KEY_POOL, pool.number, pool.owner) &&
           (!edit_has(edit, KEY_MIN) ||
            d->bytes[i] >= edit->values[KEY_MIN].first) &&
           (!edit_has(edit, KEY_MAX) ||
            d->bytes[i] <= edit->values[KEY_MAX].first) &&
           (!sites || (d->stack && sites[d->stack[i]]));
}

bool select_has_block(const struct edit_job *job, uint64_t i)
{
    const struct blocks *b = &job->source.blocks;

    return b->of[i] != UINT32_MAX && select_has(job, b->lives[b->of[i]].alloc);
}
