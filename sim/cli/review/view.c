/* view.c - replays the policies of a view, and writes their data and the page
 * around them: texts/view*. */
#include "sim/cli/review/view.h"

#include <stdlib.h>
#include <string.h>

#include "sim/answers/moment.h"
#include "sim/cli/page/page.h"
#include "sim/cli/review/view_parts.h"
#include "sim/cli/texts/cli_texts.h"
#include "sim/results/row.h"
#include "traces/facts.h"
#include "traces/name.h"
#include "traces/printable.h"
#include "traces/setting_changes.h"

/* -- the data ------------------------------------------------------------ */

static enum frag_err fill_run(struct view *v, struct view_run *r,
                              struct frag_error *e)
{
    r->view = v;
    FRAG_TRY(track_make(r->of, &r->track, e));
    if (!heights_make(&r->track.reserved, &r->heights))
        return frag_no_memory(e, "the view");
    if (!r->heights.bytes)
        return frag_fail(e, FRAG_CORRUPT, "%s: the policy reserved no memory",
                         v->name);
    for (r->unit = 1; r->heights.bytes / r->unit > UINT32_MAX;)
        r->unit *= 2;
    view_blocks(v, r);
    view_ranges(r);
    view_curve(r, false, VIEW_ALLOCATED, VIEW_ALLOCATED_MOST);
    view_curve(r, true, VIEW_COLUMN_COUNT, VIEW_REQUESTED_MOST);
    view_curve_reserved(r);
    view_sums(v, r);
    for (uint64_t i = 0; i < r->track.run.oom_count; i++)
        view_u32(r, VIEW_OOM, r->track.run.ooms[i].event);
    return r->is_short ? frag_no_memory(e, "the view") : FRAG_OK;
}

/* Finds the first and the last time, and the length of a tick. */
static void find_times(struct view *v)
{
    const struct frag_device_trace *d = v->device;
    frag_time last = 0;

    for (uint64_t i = 0; d->time && i < d->count; i++) {
        if (d->time[i] && (!v->start || d->time[i] < v->start))
            v->start = d->time[i];
        last = d->time[i] > last ? d->time[i] : last;
    }
    if (last > v->start)
        v->tick = (last - v->start) / UINT32_MAX + 1;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static enum frag_err fill(struct view *v, const struct trace_view *runs,
                          struct frag_error *e)
{
    const uint64_t events = runs->device->count;

    if (!events || events >= UINT32_MAX)
        return frag_fail(
            e, FRAG_INVALID,
            "%s: a view shows from 1 to 2^32 - 1 events, found %llu", v->name,
            (unsigned long long)events);
    v->columns = at_most(events, VIEW_CURVE / v->count);
    v->wide = at_most(events, VIEW_WIDE);
    v->high = VIEW_HIGH / v->count;
    v->recorded_oom = facts_last_oom(v->device);
    FRAG_TRY(moment_read(v->trace, v->device, "peak", &v->peak, e));
    find_times(v);
    if (view_stacks_open(&v->stacks, v->trace) != FRAG_OK)
        return frag_no_memory(e, "the stacks of the view");
    for (size_t i = 0; i < v->count; i++) {
        v->runs[i].of = &runs[i];
        FRAG_TRY(fill_run(v, &v->runs[i], e));
    }
    return FRAG_OK;
}

static void release(struct view *v)
{
    view_stacks_close(&v->stacks);
    for (size_t i = 0; i < v->count; i++) {
        struct view_run *r = &v->runs[i];

        track_free(&r->track);
        free(r->heights.ranges);
        free(r->kinds.items);
        free(r->kinds.slots);
        for (size_t k = 0; k < VIEW_COLUMN_COUNT; k++)
            free(r->columns[k].items);
    }
}

/* -- JSON ---------------------------------------------------------------- */

static void put_printable(struct frag_json *j, const char *key,
                          const char *text)
{
    char *form = printable_copy(text);

    frag_json_text(j, key, form ? form : "");
    free(form);
}

/* The base64 of bytes as a string of JSON, below the key of their type. */
static void put_base64(struct frag_json *j, const char *type,
                       const unsigned char *bytes, uint64_t size)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((size_t)(size + 2) / 3 * 4 + 1), *to = text;

    for (uint64_t i = 0; text && i < size; i += 3) {
        const uint32_t three =
            (uint32_t)bytes[i] << 16 |
            (i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0) |
            (i + 2 < size ? bytes[i + 2] : 0);

        *to++ = letters[three >> 18];
        *to++ = letters[three >> 12 & 63];
        *to++ = i + 1 < size ? letters[three >> 6 & 63] : '=';
        *to++ = i + 2 < size ? letters[three & 63] : '=';
    }
    if (text) {
        *to = '\0';
        frag_json_text(j, type, text);
    }
    free(text);
}

static void put_column(struct frag_json *j, const char *key, const char *type,
                       const void *bytes, uint64_t size)
{
    frag_json_object(j, key);
    put_base64(j, type, bytes, size);
    frag_json_end(j);
}

static void put_run(struct frag_json *j, const struct view_run *r)
{
    static const char *const names[][2] = {
#define X(name, key, type) {key, #type},
        VIEW_COLUMNS(X)
#undef X
    };

    frag_json_new_object(j, 0, NULL);
    put_printable(j, "policy", r->of->policy->text);
    put_printable(j, "bound",
                  r->of->bound.bytes == FRAG_UNLIMITED
                      ? ""
                      : FRAG_SHOW_BOUND(r->of->bound));
    frag_json_bool(j, "hasPeak", r->choice.peak != UINT64_MAX);
    JSON_ROW(j, view_run, r,
             NUMBER("peakReserved", track.run.summary.peak_reserved),
             NUMBER("ooms", track.run.summary.num_ooms),
             NUMBER("bytes", heights.bytes), NUMBER("unit", unit),
             NUMBER("blocks", track.blocks.count), NUMBER("written", written),
             NUMBER("least", least), NUMBER("ranges", track.reserved.count),
             NUMBER("rangesWritten", ranges_written));
    for (size_t k = 0; k < VIEW_COLUMN_COUNT; k++) {
        frag_json_line(j, 0);
        put_column(j, names[k][0], names[k][1], r->columns[k].items,
                   r->columns[k].size);
    }
    frag_json_end(j);
}

/* Nodes as rows of parent, function, file, line, site and innermost frame. */
static void put_nodes(struct frag_json *j, const struct view_stacks *s)
{
    uint32_t *rows = calloc((size_t)s->nodes.count * 6 + 1, sizeof(*rows));

    for (uint64_t i = 0; rows && i < s->nodes.count; i++) {
        for (uint64_t k = 0; k < 4; k++)
            rows[6 * i + k] = (uint32_t)s->nodes.items[i][k];
        memcpy(&rows[6 * i + 4], s->sites[i], sizeof(s->sites[i]));
    }
    put_column(j, "nodes", "u32", rows,
               rows ? s->nodes.count * 6 * sizeof(*rows) : 0);
    free(rows);
    frag_json_array(j, "strings");
    for (uint32_t i = 0; i < s->string_count; i++)
        put_printable(j, NULL, s->trace->strings[s->strings[i]]);
    frag_json_end(j);
    frag_json_number(j, "stacksLeftOut", s->left_out);
}

static void put_places(struct frag_json *j, const struct view *v)
{
    char name[FRAG_POOL_NAME];

    frag_json_array(j, "streams");
    for (uint32_t i = 0; i < v->device->stream_count; i++)
        frag_json_number(j, NULL, v->device->streams[i]);
    frag_json_end(j);
    frag_json_array(j, "pools");
    for (uint32_t i = 0; i < v->device->pool_count; i++)
        put_printable(j, NULL,
                      frag_pool_name(v->trace, v->device, (frag_pool)i, name));
    frag_json_end(j);
}

/* The changes of settings in mid-run. */
static void put_changes(struct frag_json *j, const struct frag_device_trace *d)
{
    char text[CHANGE_TEXT];

    frag_json_array(j, "changes");
    for (uint64_t i = d->change_count - changes_count(d); i < d->change_count;
         i++) {
        frag_json_object(j, NULL);
        frag_json_number(j, "event", d->changes[i].event);
        put_printable(j, "text", change_text(d, &d->changes[i], text));
        frag_json_end(j);
    }
    frag_json_end(j);
}

/* The time at the begin of each column and at the end, in ticks, ascending. */
static void put_times(struct frag_json *j, const struct view *v)
{
    uint32_t *ticks = calloc((size_t)v->columns + 1, sizeof(*ticks)), last = 0;

    for (uint64_t c = 0; ticks && v->tick && c <= v->columns; c++) {
        const uint32_t tick =
            (uint32_t)(view_time(v, view_first(v, c)) / v->tick);

        last = ticks[c] = tick > last ? tick : last;
    }
    frag_json_real(j, "tick", 1e-9 * (double)v->tick);
    put_column(j, "times", "u32", ticks,
               ticks && v->tick ? (v->columns + 1) * sizeof(*ticks) : 0);
    free(ticks);
}

static void put_data(const struct view *v, FILE *out)
{
    struct frag_json j = {.out = out};

    frag_json_object(&j, NULL);
    put_printable(&j, "trace", v->name);
    frag_json_text(&j, "device", FRAG_DEVICE_NAME(v->device->device));
    frag_json_number(&j, "events", v->device->count);
    frag_json_number(&j, "initial", v->device->initial);
    frag_json_count(&j, "recordedOom", (uint64_t)v->recorded_oom);
    JSON_ROW(&j, view, v, NUMBER("peak", peak), NUMBER("columns", columns),
             NUMBER("wide", wide), NUMBER("high", high));
    put_times(&j, v);
    put_places(&j, v);
    put_changes(&j, v->device);
    put_nodes(&j, &v->stacks);
    frag_json_array(&j, "runs");
    for (size_t i = 0; i < v->count; i++)
        put_run(&j, &v->runs[i]);
    frag_json_end(&j);
    frag_json_end(&j);
    fputc('\n', out);
}

/* JSON inside of a <script>, which a "</script" in a name would end. */
static enum frag_err put_script(const struct view *v, FILE *out,
                                struct frag_error *e)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    if (to)
        put_data(v, to);
    if (!to || ferror(to) | fclose(to)) {
        free(text);
        return frag_no_memory(e, "the view");
    }
    for (char *rest = text, *at; (at = strsep(&rest, "<"));)
        fprintf(out, "%s%s", at, rest ? "\\u003c" : "");
    free(text);
    return FRAG_OK;
}

/* -- the page ------------------------------------------------------------ */

static enum frag_err put_view(const struct view *v, FILE *out,
                              struct frag_error *e)
{
    fprintf(out, "<style>\n%s</style>\n%s", text_view_css, text_view_html);
    fputs("<script type=\"application/json\">\n", out);
    FRAG_TRY(put_script(v, out, e));
    fprintf(out,
            "</script>\n<script>\n(function () {\n'use strict';\n%s%s})();\n"
            "</script>\n",
            text_view_map_js, text_view_js);
    return FRAG_OK;
}

enum frag_err view_inline(const struct view_wish *w, FILE *out,
                          struct frag_error *e)
{
    struct view v = {.trace = w->trace, .device = w->device};
    struct view_policies p;
    enum frag_err err = view_policies_open(w, &p, e);

    v.name = p.name;
    v.count = p.count;
    FRAG_THEN(err, fill(&v, p.runs, e));
    FRAG_THEN(err, put_view(&v, out, e));
    release(&v);
    view_policies_close(&p);
    return err;
}

static enum frag_err put_page(struct page *p, void *user, struct frag_error *e)
{
    html_between(p->out, "<h1>", p->title, "</h1>\n");
    return view_inline(user, p->out, e);
}

enum frag_err view_write(struct view_wish *w, const char *path,
                         struct frag_error *e)
{
    char title[256], *name = frag_trace_name(w->trace->path);

    if (!name)
        return frag_no_memory(e, "the view");
    snprintf(title, sizeof(title), "Memory of %.200s", name);
    free(name);
    return page_write(path, title, put_page, w, e);
}
