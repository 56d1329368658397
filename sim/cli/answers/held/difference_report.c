/* difference_report.c - the table of the groups that changed, and their JSON.
 */
#include "sim/cli/answers/held/held_report.h"

#include <inttypes.h>

#include "sim/cli/output/table.h"
#include "sim/results/row.h"
#include "traces/printable.h"

/* -- text ---------------------------------------------------------------- */

enum { CHANGE_TEXT = FRAG_SIZE_TEXT + 1 };

static const char *change_text(frag_size before, frag_size after,
                               char text[CHANGE_TEXT])
{
    if (after < before)
        snprintf(text, CHANGE_TEXT, "-%s", FRAG_SHOW_SIZE(before - after));
    else
        snprintf(text, CHANGE_TEXT, "%s%s", after > before ? "+" : "",
                 FRAG_SHOW_SIZE(after - before));
    return text;
}

static void say_side(const char *word, const struct difference_side *s,
                     FILE *out)
{
    fprintf(out, "%-7s ", word);
    printable_put(out, s->name);
    fprintf(out, ", %s, ", FRAG_DEVICE_NAME(s->holders->device->device));
    holders_say_moment(s->holders, s->at, out);
}

static void say_growth(const struct difference_side sides[2], FILE *out)
{
    const frag_size before = sides[0].holders->requested;
    const frag_size after = sides[1].holders->requested;
    char text[CHANGE_TEXT];

    fprintf(out, "%-7s requested %s", "change",
            change_text(before, after, text));
    if (before)
        fprintf(out, " (%+.2f %%)", 100 * difference_growth(before, after));
    fputc('\n', out);
}

static void put_change(struct table *t, const struct change *c)
{
    char text[CHANGE_TEXT];

    table_cell(t, false, "%s", change_text(c->before, c->after, text));
    table_share(t, c->share);
    table_size(t, c->before);
    table_size(t, c->after);
    table_cell(t, false, "%+" PRId64,
               difference_bytes(c->blocks_before, c->blocks_after));
    table_cell(t, false, "%s%s%s", c->name, c->name_before ? ", before " : "",
               c->name_before ? c->name_before : "");
}

/* One row for the changes that the limit leaves out. */
static void put_rest(struct table *t, const struct difference *d, uint64_t from)
{
    struct change rest = {.name = "", .share = 0};
    char name[64];

    for (uint64_t i = from; i < d->count; i++) {
        const struct change *c = &d->items[i];

        rest.before += c->before;
        rest.after += c->after;
        rest.blocks_before += c->blocks_before;
        rest.blocks_after += c->blocks_after;
        rest.share += c->share;
    }
    snprintf(name, sizeof(name), "%" PRIu64 " more", d->count - from);
    rest.name = name;
    if (from < d->count)
        put_change(t, &rest);
}

static enum frag_err print_table(const struct difference *d, const char *by,
                                 const struct difference_view *v, FILE *out)
{
    struct table t = table_of("rrrrrl", "change|of growth|before|after|blocks");

    table_cell(&t, false, "%s", by);
    for (uint64_t i = 0; i < held_shown(d->count, v->limit); i++)
        put_change(&t, &d->items[i]);
    put_rest(&t, d, held_shown(d->count, v->limit));
    return table_print(&t, out, v->color);
}

enum frag_err difference_print(const struct difference *d,
                               const struct difference_side sides[2],
                               const struct difference_view *v, FILE *out)
{
    const char *by = holders_by_names[sides[0].holders->by];

    say_side("before", &sides[0], out);
    say_side("after", &sides[1], out);
    say_growth(sides, out);
    holders_say_stacks(sides[!!sides[0].holders->has_stacks].holders, out);
    if (d->count)
        FRAG_TRY(print_table(d, by, v, out));
    fprintf(out, "%" PRIu64 " of %" PRIu64 " groups by %s are unchanged",
            d->unchanged, d->unchanged + d->count, by);
    if (d->moved)
        fprintf(out, ", %" PRIu64 " of them moved", d->moved);
    fputc('\n', out);
    return FRAG_OK;
}

/* -- JSON ---------------------------------------------------------------- */

/* clang-format off */ /* clang-format on */

static void json_side(struct frag_json *j, const char *key,
                      const struct difference_side *s)
{
    frag_json_new_object(j, 3, key);
    holders_json_moment(s->holders, s->name, s->at, j);
    frag_json_end(j);
}

void difference_json(const struct difference *d,
                     const struct difference_side sides[2],
                     const struct difference_view *v, struct frag_json *j)
{
    const double growth = difference_growth(sides[0].holders->requested,
                                            sides[1].holders->requested);

    frag_json_new_object(j, 2, NULL);
    json_side(j, "before", &sides[0]);
    json_side(j, "after", &sides[1]);
    frag_json_line(j, 3);
    frag_json_real(j, "growth", growth);
    frag_json_real(j, "fail_over", v->most);
    frag_json_bool(j, "fails", growth > v->most);
    frag_json_text(j, "by", holders_by_names[sides[0].holders->by]);
    JSON_ROW(j, difference, d, NUMBER("num_changes", count),
             NUMBER("num_unchanged", unchanged), NUMBER("num_moved", moved));
    JSON_ROWS(j, "changes", 3, change, d->items, held_shown(d->count, v->limit),
              TEXT("name", name), NUMBER("held_bytes_before", before),
              NUMBER("held_bytes_after", after),
              NUMBER("blocks_before", blocks_before),
              NUMBER("blocks_after", blocks_after),
              NUMBER("share_of_growth", share),
              TEXT("name_before", name_before));
    frag_json_end(j);
}
