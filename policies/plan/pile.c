/* pile.c - the pile of pile.h: places items, raises floors, and undoes changes.
 *
 * A floor rises at once to the lowest level at which a waiting item can still
 * lie. The search abandons a state if a gap left for good has room for a
 * waiting item: if the state had a solution, there is also one with the item in
 * the gap, and the search finds that one elsewhere.
 */
#include "policies/plan/pile.h"
#include "traces/grow.h"

#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX

/* One entry of the trail: an address and the value that was there. */
struct change {
    uint64_t *at;
    uint64_t was;
};

/* Enlarges the trail. On failure the search ends, because a change that is not
 * on the trail cannot be undone. */
static bool more_room(struct pile *s)
{
    if (GROW(s->trail, s->room, s->changes + 1))
        return true;
    s->no_memory = true;
    *s->steps = 0;
    return false;
}

/* Changes a value and records the old one on the trail. */
static void set(struct pile *s, uint64_t *at, uint64_t value)
{
    if (s->changes == s->room && !more_room(s))
        return;
    s->trail[s->changes++] = (struct change){at, *at};
    *at = value;
}

/* Marks the sections of an item dirty. */
static void mark_dirty(struct pile *s, const struct item *item)
{
    const uint32_t first = item->from / 64, last = (item->to - 1) / 64;
    const uint64_t low = UINT64_MAX << item->from % 64;
    const uint64_t high = UINT64_MAX >> (63 - (item->to - 1) % 64);

    if (first == last) {
        s->dirty[first] |= low & high;
        return;
    }
    s->dirty[first] |= low;
    for (uint32_t w = first + 1; w < last; w++)
        s->dirty[w] = UINT64_MAX;
    s->dirty[last] |= high;
}

/* Whether a waiting item fits in the room that was left empty for good. */
static bool fits_below(const struct pile *s, const struct item *item)
{
    uint64_t low = 0, high = UINT64_MAX;

    for (uint32_t j = item->from; j < item->to; j++) {
        const struct pile_column *c = &s->columns[j];

        low = c->gap > low ? c->gap : low;
        high = c->floor < high ? c->floor : high;
        if (low + item->size > high)
            return false;
    }
    return true;
}

/* Whether a waiting item of section k fits in gaps that were left for good. */
static bool wastes_room(const struct pile *s, uint32_t k)
{
    const uint32_t *const end = s->members + s->first[k + 1];
    const uint64_t room = s->columns[k].floor - s->columns[k].gap;

    for (const uint32_t *m = s->members + s->first[k]; m < end; m++)
        if (s->top[*m] != PLACED && s->p->items[*m].size <= room &&
            fits_below(s, &s->p->items[*m]))
            return true;
    return false;
}

static void count_step(struct pile *s)
{
    if (*s->steps)
        --*s->steps;
}

/* Raises the floor of section k to `level`. False if the waiting items no
 * longer fit below the ceiling. */
static bool raise(struct pile *s, uint32_t k, uint64_t level)
{
    struct pile_column *c = &s->columns[k];
    const uint32_t *const end = s->members + s->first[k + 1];
    uint64_t *const top = s->top;

    count_step(s);
    if (level + c->rest > s->ceiling) {
        c->failures++;
        return false;
    }
    set(s, &c->floor, level);
    for (const uint32_t *m = s->members + s->first[k]; m < end; m++)
        if (top[*m] < level) {
            set(s, &top[*m], level);
            mark_dirty(s, &s->p->items[*m]);
        }
    return true;
}

/* The lowest level that a waiting item may have in section k; stores that item
 * as the section's witness. */
static uint64_t lowest_top(struct pile *s, uint32_t k)
{
    struct pile_column *c = &s->columns[k];
    const uint32_t *const end = s->members + s->first[k + 1];
    uint64_t lowest = UINT64_MAX;

    count_step(s);
    for (const uint32_t *m = s->members + s->first[k]; m < end; m++) {
        if (s->top[*m] >= lowest)
            continue;
        lowest = s->top[*m];
        c->witness = *m;
        if (lowest == c->floor)
            break;
    }
    return lowest;
}

/* Raises the floor of section k if no waiting item can lie on it. */
static bool settle_column(struct pile *s, uint32_t k)
{
    struct pile_column *c = &s->columns[k];
    uint64_t lowest;

    if (!c->waiting || (c->witness != NOBODY && s->top[c->witness] <= c->floor))
        return true;
    lowest = lowest_top(s, k);
    return lowest <= c->floor || (raise(s, k, lowest) && !wastes_room(s, k));
}

/* Raises floors as far as the waiting items force them up; false if an item
 * then no longer fits. */
static bool settle(struct pile *s)
{
    bool any = true;

    while (any) {
        any = false;
        for (size_t w = 0; w < s->words; w++)
            while (s->dirty[w]) {
                uint32_t bit = (uint32_t)__builtin_ctzll(s->dirty[w]);

                s->dirty[w] &= s->dirty[w] - 1;
                any = true;
                if (!settle_column(s, (uint32_t)w * 64 + bit))
                    return false;
            }
    }
    return true;
}

/* Adds `by` (1, or -1 as UINT32_MAX) to the counts of the item's sections, and
 * updates their marks. */
static void count_in(struct pile *s, uint32_t i, uint32_t by)
{
    const struct item *item = &s->p->items[i];

    for (uint32_t k = item->from; k < item->to; k++) {
        struct pile_column *c = &s->columns[k];

        c->waiting += by;
        c->bridges += k + 1 < item->to ? by : 0;
        c->mark ^= mix(i + 1);
    }
}

bool pile_place(struct pile *s, uint32_t i, uint64_t level)
{
    const struct item *item = &s->p->items[i];

    s->offsets[i] = level;
    set(s, &s->top[i], PLACED);
    s->placed[s->placed_count++] = i;
    count_in(s, i, UINT32_MAX);
    mark_dirty(s, item);
    for (uint32_t k = item->from; k < item->to; k++) {
        struct pile_column *c = &s->columns[k];

        set(s, &c->rest, c->rest - item->size);
        set(s, &c->gap, level + item->size);
        if (!raise(s, k, level + item->size))
            return false;
    }
    return settle(s);
}

bool pile_leave(struct pile *s, uint32_t k, uint64_t level)
{
    return raise(s, k, level) && !wastes_room(s, k) && settle(s);
}

void pile_undo(struct pile *s, struct pile_point to)
{
    memset(s->dirty, 0, s->words * sizeof(*s->dirty));
    while (s->changes > to.changes) {
        const struct change *c = &s->trail[--s->changes];

        *c->at = c->was;
    }
    while (s->placed_count > to.placed)
        count_in(s, s->placed[--s->placed_count], 1);
}

/* -------------------------------------------------- open and close --- */

/* Fills `first` and `members`. */
static bool index_members(struct pile *s)
{
    const struct problem *p = s->p;
    uint32_t *at = s->first + 1;
    uint64_t total = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        total += p->items[i].to - p->items[i].from;
        for (uint32_t k = p->items[i].from; k < p->items[i].to; k++)
            at[k + 1]++;
    }
    s->members = malloc((total + 1) * sizeof(*s->members));
    if (!s->members || total > UINT32_MAX)
        return false;
    for (uint32_t k = 0; k < p->sections; k++)
        at[k + 1] += at[k];
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t k = p->items[i].from; k < p->items[i].to; k++)
            s->members[at[k]++] = i;
    return true;
}

enum { FIRST_ROOM = 1 << 14 };

bool pile_open(struct pile *s, const struct problem *p)
{
    const size_t n = p->count + (size_t)1, m = p->sections + (size_t)2;

    *s = (struct pile){.p = p, .words = (m + 63) / 64, .room = FIRST_ROOM};
    s->columns = calloc(m, sizeof(*s->columns));
    s->top = calloc(n, sizeof(*s->top));
    s->offsets = calloc(n, sizeof(*s->offsets));
    s->first = calloc(m, sizeof(*s->first));
    s->dirty = calloc(s->words, sizeof(*s->dirty));
    s->trail = calloc(s->room, sizeof(*s->trail));
    s->placed = calloc(n, sizeof(*s->placed));
    return s->columns && s->top && s->offsets && s->first && s->dirty &&
           s->trail && s->placed && index_members(s);
}

void pile_close(struct pile *s)
{
    free(s->placed);
    free(s->trail);
    free(s->dirty);
    free(s->members);
    free(s->first);
    free(s->offsets);
    free(s->top);
    free(s->columns);
}

void pile_reset(struct pile *s, uint64_t ceiling, uint64_t *steps)
{
    const struct problem *p = s->p;

    for (uint32_t k = 0; k < p->sections; k++)
        s->columns[k] = (struct pile_column){
            .witness = NOBODY, .failures = s->columns[k].failures * 3 / 4};
    memset(s->top, 0, p->count * sizeof(*s->top));
    memset(s->dirty, 0, s->words * sizeof(*s->dirty));
    s->changes = s->placed_count = 0;
    s->ceiling = ceiling;
    s->steps = steps;
    for (uint32_t i = 0; i < p->count; i++) {
        count_in(s, i, 1);
        for (uint32_t k = p->items[i].from; k < p->items[i].to; k++)
            s->columns[k].rest += p->items[i].size;
    }
}
