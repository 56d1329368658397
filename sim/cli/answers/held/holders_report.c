/* holders_report.c - the table of the groups, and their JSON. */
#include "sim/cli/answers/held/held_report.h"

#include <inttypes.h>

#include "sim/answers/sites.h"
#include "sim/cli/output/table.h"
#include "sim/results/row.h"
#include "traces/printable.h"

static double share_of(frag_size part, frag_size whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* Bytes of all live blocks at the moment. */
static frag_size held(const struct holders *h)
{
    return h->requested + h->pending;
}

/* -- text ---------------------------------------------------------------- */

void holders_say_moment(const struct holders *h, const char *at, FILE *out)
{
    fprintf(out, "event %" PRIu64, h->event);
    if (*at < '0' || *at > '9')
        fprintf(out, " (%s)", at);
    fprintf(out, ": %" PRIu64 " block%s %s", h->live,
            h->live == 1 ? " holds" : "s hold", FRAG_SHOW_SIZE(held(h)));
    if (h->pending)
        fprintf(out, ", of which %s are freed and wait for a stream",
                FRAG_SHOW_SIZE(h->pending));
    if (h->failed)
        fprintf(out, "; the request of %s at this event failed",
                FRAG_SHOW_SIZE(h->failed));
    fputc('\n', out);
}

static void say_filter(const struct holders *h, const struct holders_view *v,
                       FILE *out)
{
    if (v->filter)
        printable_line(out,
                       "%" PRIu64 " blocks with %s (%.1f %%) have a frame that "
                       "contains \"%s\"",
                       h->blocks, FRAG_SHOW_SIZE(h->bytes),
                       100 * share_of(h->bytes, held(h)), v->filter);
}

void holders_say_stacks(const struct holders *h, FILE *out)
{
    if (!h->has_stacks)
        fprintf(out,
                "The recording has no stacks, so the code that holds the "
                "blocks is not known; %s.\n",
                holders_stacks_remedy(h->trace));
}

/* The age of the group's oldest block. */
static void put_age(struct table *t, const struct holders *h,
                    const struct holder *g)
{
    const uint64_t steps = holders_age_steps(h, g->oldest);

    if (g->oldest < h->device->initial)
        table_cell(t, false, "before the recording");
    else if (!h->steps.count)
        table_cell(t, false, "%" PRIu64 " events", h->event - g->oldest);
    else if (steps == UINT64_MAX)
        table_cell(t, false, "before the steps");
    else
        table_cell(t, false, "%" PRIu64 " step%s", steps,
                   steps == 1 ? "" : "s");
}

static void put_shares(struct table *t, const struct holders *h,
                       frag_size bytes, frag_size sum)
{
    table_size(t, bytes);
    table_share(t, share_of(bytes, held(h)));
    table_share(t, share_of(sum, held(h)));
}

static void put_group(struct table *t, const struct holders *h, uint64_t i,
                      frag_size sum)
{
    const struct holder *g = &h->items[i];

    put_shares(t, h, g->bytes, sum);
    table_cell(t, false, "%" PRIu64, g->blocks);
    put_age(t, h, g);
    if (h->by == HOLDERS_BY_STACK)
        table_cell(t, false, "#%" PRIu64 " %s", i + 1, g->name);
    else
        table_cell(t, false, "%s", g->name);
}

/* One row for the groups that the limit leaves out. */
static void put_rest(struct table *t, const struct holders *h, uint64_t from)
{
    frag_size bytes = 0;
    uint64_t blocks = 0;

    for (uint64_t i = from; i < h->count; i++) {
        bytes += h->items[i].bytes;
        blocks += h->items[i].blocks;
    }
    if (from == h->count)
        return;
    put_shares(t, h, bytes, h->bytes);
    table_cell(t, false, "%" PRIu64, blocks);
    table_cell(t, false, "-");
    table_cell(t, false, "%" PRIu64 " more", h->count - from);
}

static void put_frames(const struct holders *h, uint64_t i, FILE *out)
{
    const struct frag_trace *t = h->trace;
    const uint32_t stack = h->items[i].stack;

    fprintf(out, "\n#%" PRIu64 "\n", i + 1);
    if (!site_of(t, stack))
        fputs("  no frames were recorded\n", out);
    for (uint64_t f = t->stack_first[stack]; f < t->stack_first[stack + 1]; f++)
        printable_line(out, "  %s (%s:%" PRIu32 ")",
                       t->strings[t->frames[f].function],
                       t->strings[t->frames[f].file], t->frames[f].line);
}

static enum frag_err print_table(const struct holders *h,
                                 const struct holders_view *v, FILE *out)
{
    struct table t = table_of("rrrrrl", "held|share|sum|blocks|oldest");
    frag_size sum = 0;

    table_cell(&t, false, "%s", holders_by_names[h->by]);
    for (uint64_t i = 0; i < held_shown(h->count, v->limit); i++)
        put_group(&t, h, i, sum += h->items[i].bytes);
    put_rest(&t, h, held_shown(h->count, v->limit));
    return table_print(&t, out, v->color);
}

enum frag_err holders_print(const struct holders *h,
                            const struct holders_view *v, FILE *out)
{
    printable_put(out, v->name);
    fprintf(out, ", %s, ", FRAG_DEVICE_NAME(h->device->device));
    holders_say_moment(h, v->at, out);
    say_filter(h, v, out);
    holders_say_stacks(h, out);
    if (!h->count)
        return FRAG_OK;
    FRAG_TRY(print_table(h, v, out));
    for (uint64_t i = 0;
         h->by == HOLDERS_BY_STACK && i < held_shown(h->count, v->limit); i++)
        put_frames(h, i, out);
    return FRAG_OK;
}

/* -- JSON ---------------------------------------------------------------- */

void holders_json_moment(const struct holders *h, const char *name,
                         const char *at, struct frag_json *j)
{
    frag_json_text(j, "trace", name);
    JSON_ROW(j, frag_trace, h->trace, TEXT("path", path),
             TEXT("sha256", sha256));
    frag_json_number(j, "device", h->device->device);
    frag_json_text(j, "at", at);
    JSON_ROW(j, holders, h, NUMBER("event", event),
             NUMBER("requested_bytes", requested),
             NUMBER("pending_bytes", pending), NUMBER("failed_bytes", failed),
             NUMBER("live_blocks", live), NUMBER("has_stacks", has_stacks),
             LINE(3));
    frag_json_texts(j, "notes", h->trace->notes, h->trace->note_count);
}

static void json_frame(struct frag_json *j, const char *key,
                       const struct frag_trace *t, const struct frag_frame *f)
{
    frag_json_object(j, key);
    frag_json_text(j, "function", t->strings[f->function]);
    frag_json_text(j, "file", t->strings[f->file]);
    frag_json_number(j, "line", f->line);
    frag_json_end(j);
}

static void json_frames(struct frag_json *j, const struct frag_trace *t,
                        uint32_t stack)
{
    frag_json_array(j, "frames");
    for (uint64_t f = t->stack_first[stack]; f < t->stack_first[stack + 1]; f++)
        json_frame(j, NULL, t, &t->frames[f]);
    frag_json_end(j);
}

static void json_group(struct frag_json *j, const struct holders *h,
                       const struct holder *g, frag_size sum)
{
    const bool by_caller = h->by == HOLDERS_BY_CALLER;
    const struct frag_frame *site = by_caller ? site_caller(h->trace, g->stack)
                                              : site_of(h->trace, g->stack);

    frag_json_new_object(j, 4, NULL);
    JSON_ROW(j, holder, g, TEXT("name", name), NUMBER("held_bytes", bytes),
             NUMBER("pending_bytes", pending), NUMBER("blocks", blocks));
    frag_json_real(j, "share", share_of(g->bytes, held(h)));
    frag_json_real(j, "cumulative_share", share_of(sum, held(h)));
    JSON_ROW(j, holder, g, NUMBER("oldest_event", oldest),
             NUMBER("newest_event", newest));
    frag_json_count(j, "oldest_steps", holders_age_steps(h, g->oldest));
    frag_json_real(j, "oldest_seconds", holders_age_seconds(h, g->oldest));
    if ((by_caller || h->by == HOLDERS_BY_SITE) && site)
        json_frame(j, by_caller ? "caller" : "site", h->trace, site);
    if (h->by == HOLDERS_BY_STACK)
        json_frames(j, h->trace, g->stack);
    frag_json_end(j);
}

void holders_json(const struct holders *h, const struct holders_view *v,
                  struct frag_json *j)
{
    frag_size sum = 0;

    frag_json_new_object(j, 2, NULL);
    holders_json_moment(h, v->name, v->at, j);
    frag_json_line(j, 3);
    frag_json_text(j, "by", holders_by_names[h->by]);
    frag_json_text(j, "filter", v->filter);
    JSON_ROW(j, holders, h, NUMBER("num_steps", steps.count),
             NUMBER("held_bytes", bytes), NUMBER("blocks", blocks),
             NUMBER("num_groups", count));
    frag_json_new_array(j, 3, "groups");
    for (uint64_t i = 0; i < held_shown(h->count, v->limit); i++)
        json_group(j, h, &h->items[i], sum += h->items[i].bytes);
    frag_json_end(j);
    frag_json_end(j);
}
