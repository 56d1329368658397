/* view_stacks.c - the stacks of a view as one tree, in which stacks share their
 * outer frames. */
#include <stdlib.h>
#include <string.h>

#include "sim/answers/sites.h"
#include "sim/cli/review/view_parts.h"
#include "traces/grow.h"

enum { NO_STACK, LEFT_OUT }; /* the first nodes */

/* -- rows ---------------------------------------------------------------- */

static uint64_t hash_of(const uint64_t row[5])
{
    uint64_t hash = 0;

    for (int i = 0; i < 5; i++) {
        hash = (hash ^ row[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

/* The slot of the row, or the empty one where it would be. */
static uint32_t *slot_of(const struct view_rows *rows, const uint64_t row[5])
{
    const uint64_t mask = rows->slot_count - 1;
    uint64_t at = hash_of(row) & mask;

    while (rows->slots[at] &&
           memcmp(rows->items[rows->slots[at] - 1], row, sizeof(*rows->items)))
        at = (at + 1) & mask;
    return &rows->slots[at];
}

/* Makes room for one more row, at most half full. */
static bool widen(struct view_rows *rows)
{
    uint32_t *old = rows->slots;

    if (!GROW(rows->items, rows->room, rows->count + 1))
        return false;
    if (rows->slot_count > 2 * rows->count)
        return true;
    rows->slot_count = rows->slot_count ? 2 * rows->slot_count : 256;
    rows->slots = calloc(rows->slot_count, sizeof(*rows->slots));
    if (!rows->slots) {
        rows->slots = old;
        rows->slot_count /= 2;
        return false;
    }
    for (uint64_t i = 0; i < rows->count; i++)
        *slot_of(rows, rows->items[i]) = (uint32_t)i + 1;
    free(old);
    return true;
}

uint32_t view_row(struct view_rows *rows, const uint64_t row[5])
{
    uint32_t *slot;

    if (!widen(rows))
        return UINT32_MAX;
    slot = slot_of(rows, row);
    if (!*slot) {
        memcpy(rows->items[rows->count++], row, sizeof(*rows->items));
        *slot = (uint32_t)rows->count;
    }
    return *slot - 1;
}

/* -- the tree ------------------------------------------------------------ */

enum frag_err view_stacks_open(struct view_stacks *s,
                               const struct frag_trace *trace)
{
    /* No frame has such a parent. */
    static const uint64_t first[2][5] = {{UINT64_MAX}, {UINT64_MAX, 1}};

    *s = (struct view_stacks){
        .trace = trace,
        .sites = calloc(VIEW_NODES + 2, sizeof(*s->sites)),
        .leaf = calloc((size_t)trace->stack_count + 1, sizeof(*s->leaf)),
        .renamed = calloc((size_t)trace->string_count + 1, sizeof(*s->renamed)),
        .strings = calloc((size_t)trace->string_count + 1, sizeof(*s->strings)),
    };
    return s->sites && s->leaf && s->renamed && s->strings &&
                   view_row(&s->nodes, first[NO_STACK]) == NO_STACK &&
                   view_row(&s->nodes, first[LEFT_OUT]) == LEFT_OUT
               ? FRAG_OK
               : FRAG_NOMEM;
}

void view_stacks_close(struct view_stacks *s)
{
    free(s->nodes.items);
    free(s->nodes.slots);
    free(s->sites);
    free(s->leaf);
    free(s->renamed);
    free(s->strings);
}

static uint32_t string_of(struct view_stacks *s, uint32_t string)
{
    if (!s->renamed[string]) {
        s->letters += strlen(s->trace->strings[string]);
        s->strings[s->string_count++] = string;
        s->renamed[string] = s->string_count;
    }
    return s->renamed[string] - 1;
}

/* The node of a frame below its parent; LEFT_OUT if it has no room. */
static uint32_t child_of(struct view_stacks *s, uint32_t parent,
                         const struct frag_frame *f)
{
    const uint64_t row[5] = {parent, string_of(s, f->function),
                             string_of(s, f->file), f->line};
    uint32_t node;

    if (s->nodes.count >= VIEW_NODES || s->letters > VIEW_LETTERS)
        return LEFT_OUT;
    node = view_row(&s->nodes, row);
    return node == UINT32_MAX ? LEFT_OUT : node;
}

static uint32_t add_stack(struct view_stacks *s, uint32_t stack)
{
    const struct frag_trace *t = s->trace;
    const struct frag_frame *sites[2] = {site_of(t, stack),
                                         site_innermost(t, stack)};
    uint32_t node = NO_STACK, at[2] = {NO_STACK, NO_STACK};

    for (uint64_t i = t->stack_first[stack + 1]; i-- > t->stack_first[stack];) {
        node = child_of(s, node, &t->frames[i]);
        if (node == LEFT_OUT) {
            s->left_out++;
            return node;
        }
        for (int k = 0; k < 2; k++)
            if (&t->frames[i] == sites[k])
                at[k] = node;
    }
    memcpy(s->sites[node], at, sizeof(at));
    return node;
}

uint32_t view_node(struct view_stacks *s, uint32_t stack)
{
    if (!stack || stack >= s->trace->stack_count)
        return NO_STACK;
    if (!s->leaf[stack])
        s->leaf[stack] = 1 + add_stack(s, stack);
    return s->leaf[stack] - 1;
}
