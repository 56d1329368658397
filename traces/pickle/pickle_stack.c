/* pickle_stack.c - the stack of a pickle reader: decides the kind of each
 * container and when it is complete, and passes its members to the callbacks of
 * the schema. */
#include "traces/importer.h"
#include "traces/pickle/reader.h"

#include <string.h>

#include "traces/grow.h"

/* Upper bound on the values of the stack, more than any pickler needs: Python
 * writes batches of 1000, and PyTorch's lists of entries are counted. */
enum { DEPTH_MAX = 1 << 20 };

static const struct pickle_kind *kind_of(const struct pickle *p,
                                         const struct pickle_value *v)
{
    return p->schema->kinds[v->kind];
}

static bool is_open(const struct pickle_value *v)
{
    return v->tag == PICKLE_LIST || v->tag == PICKLE_DICT;
}

/* The stack */

enum frag_err stack_grow(struct pickle *p)
{
    if (p->count == DEPTH_MAX)
        return pickle_bad(p,
                          "expected at most %d values on the stack, found more",
                          DEPTH_MAX);
    return GROW(p->stack, p->room, p->count + 1) ? FRAG_OK
                                                 : pickle_no_memory(p);
}

enum frag_err stack_mark(struct pickle *p)
{
    if (!GROW(p->marks, p->mark_room, p->mark_count + 1))
        return pickle_no_memory(p);
    p->marks[p->mark_count++] = p->count;
    return stack_push(p, (struct pickle_value){.tag = PICKLE_MARK});
}

/* Fails unless `count` values are above the last MARK. */
static enum frag_err need_values(const struct pickle *p, size_t count)
{
    const size_t floor = p->mark_count ? p->marks[p->mark_count - 1] + 1 : 0;

    if (p->count - floor < count)
        return pickle_bad(p, "expected %zu values on the stack, found %zu",
                          count, p->count - floor);
    return FRAG_OK;
}

/* Finds the index of the last MARK. */
static enum frag_err need_mark(const struct pickle *p, size_t *mark)
{
    if (!p->mark_count)
        return pickle_bad(p, "expected a MARK on the stack, found none");
    *mark = p->marks[p->mark_count - 1];
    return FRAG_OK;
}

/* Kinds: the place of a new container decides its kind. Each function returns 0
 * where the schema names no kind for the place, or one of another shape. */

static uint8_t if_shape(const struct pickle *p, uint8_t kind,
                        enum pickle_shape shape)
{
    return kind && p->schema->kinds[kind]->shape == shape ? kind : 0;
}

static uint8_t member_kind(const struct pickle *p, uint8_t dict, uint64_t word,
                           enum pickle_shape shape)
{
    const struct pickle_member *m = p->schema->kinds[dict]->members;

    while (m && m->kind && m->word != word)
        m++;
    return m && m->kind ? if_shape(p, m->kind, shape) : 0;
}

/* The kind of a container after a key, which is at the top. The dictionary is
 * the one right below the key if it has a member of that name, or else the one
 * below the last MARK. */
static uint8_t kind_after_key(const struct pickle *p, enum pickle_shape shape)
{
    const uint64_t word = p->stack[p->count - 1].n;
    uint8_t kind = 0;

    if (p->count > 1 && p->stack[p->count - 2].tag == PICKLE_DICT)
        kind = member_kind(p, p->stack[p->count - 2].kind, word, shape);
    if (!kind && p->mark_count && p->marks[p->mark_count - 1]) {
        const struct pickle_value *to =
            &p->stack[p->marks[p->mark_count - 1] - 1];

        if (to->tag == PICKLE_DICT)
            kind = member_kind(p, to->kind, word, shape);
    }
    if (!kind && word == p->schema->anywhere.word)
        kind = if_shape(p, p->schema->anywhere.kind, shape);
    return kind;
}

/* The kind of an element of the list below the last MARK. */
static uint8_t kind_among_marked(const struct pickle *p,
                                 enum pickle_shape shape)
{
    const struct pickle_value *to;

    if (!p->mark_count || !p->marks[p->mark_count - 1])
        return 0;
    to = &p->stack[p->marks[p->mark_count - 1] - 1];
    if (to->tag != PICKLE_LIST)
        return 0;
    return if_shape(p, kind_of(p, to)->element, shape);
}

/* The kind of a container that begins now. */
static uint8_t kind_here(const struct pickle *p, enum pickle_shape shape)
{
    const struct pickle_value *top;

    if (!p->count)
        return shape == PICKLE_IS_DICT ? p->schema->root_dict
                                       : p->schema->root_list;
    top = &p->stack[p->count - 1];
    if (top->tag == PICKLE_TEXT)
        return kind_after_key(p, shape);
    if (top->tag == PICKLE_LIST) {
        const uint8_t kind = if_shape(p, kind_of(p, top)->element, shape);

        if (kind)
            return kind;
    }
    return kind_among_marked(p, shape);
}

/* Sealing */

/* Stores the result of a sealed container under its memo number, if any. */
static enum frag_err resolve(struct pickle *p, const struct pickle_value *v)
{
    if (v->n >= MEMO_RESULT_MAX)
        return pickle_bad(p,
                          "expected less than %d objects of one kind, found "
                          "more (%s)",
                          MEMO_RESULT_MAX, p->schema->kinds[v->kind]->name);
    if (!v->slot)
        return FRAG_OK;
    return memo_set(&p->memo, v->slot - 1, memo_code_of_result(v->kind, v->n))
               ? FRAG_OK
               : pickle_no_memory(p);
}

enum frag_err stack_seal(struct pickle *p, struct pickle_value *v)
{
    const struct pickle_kind *kind = kind_of(p, v);
    uint32_t result = 0;

    if (!v->kind) {
        v->tag = PICKLE_OTHER;
        v->n = 1;
        return FRAG_OK;
    }
    p->open_at[v->kind] = 0;
    if (kind->seal)
        FRAG_TRY(kind->seal(p->user, v->kind, &result, p->e));
    v->tag = kind->keeps ? PICKLE_RESULT : PICKLE_DONE;
    v->n = kind->keeps ? result : 1;
    return kind->keeps ? resolve(p, v) : FRAG_OK;
}

/* Seals all open containers from the index `first` to the top. */
static enum frag_err seal_from(struct pickle *p, size_t first)
{
    for (size_t i = first; i < p->count; i++)
        if (is_open(&p->stack[i]))
            FRAG_TRY(stack_seal(p, &p->stack[i]));
    return FRAG_OK;
}

/* Merges the top value into the one below if both are counts of the same thing.
 */
static void merge_top(struct pickle *p)
{
    struct pickle_value *below, *top;

    if (p->count < 2)
        return;
    top = &p->stack[p->count - 1];
    below = top - 1;
    if (top->tag == below->tag && top->kind == below->kind &&
        (top->tag == PICKLE_DONE || top->tag == PICKLE_OTHER)) {
        below->n += top->n;
        p->count--;
    }
}

/* A container of `kind` begins, so the open container of that kind is complete.
 * A dictionary of kind 0 at the top is complete too, because a dictionary only
 * accepts a value after a key. */
static enum frag_err seal_before(struct pickle *p, uint8_t kind)
{
    size_t at = kind ? p->open_at[kind] : 0;

    if (!kind && p->count) {
        const struct pickle_value *top = &p->stack[p->count - 1];

        at = top->tag == PICKLE_DICT && !top->kind ? p->count : 0;
    }
    if (!at)
        return FRAG_OK;
    FRAG_TRY(stack_seal(p, &p->stack[at - 1]));
    if (at == p->count)
        merge_top(p);
    return FRAG_OK;
}

enum frag_err stack_begin(struct pickle *p, enum pickle_shape shape)
{
    const uint8_t kind = kind_here(p, shape);
    const struct pickle_kind *k = p->schema->kinds[kind];

    FRAG_TRY(seal_before(p, kind));
    if (k->begin)
        FRAG_TRY(k->begin(p->user, kind, p->e));
    FRAG_TRY(stack_push(p, (struct pickle_value){.tag = shape == PICKLE_IS_DICT
                                                            ? PICKLE_DICT
                                                            : PICKLE_LIST,
                                                 .kind = kind}));
    if (kind)
        p->open_at[kind] = p->count;
    return FRAG_OK;
}

/* Adding values to containers */

static enum frag_err check_target(const struct pickle *p,
                                  const struct pickle_value *to,
                                  enum pickle_shape shape)
{
    const uint8_t tag = shape == PICKLE_IS_DICT ? PICKLE_DICT : PICKLE_LIST;

    if (to->tag == tag)
        return FRAG_OK;
    if (to->tag == PICKLE_DONE || to->tag == PICKLE_RESULT)
        return pickle_bad(p, "%s receives values after it was complete",
                          pickle_describe(p, to));
    return pickle_bad(p, "expected %s to put values in, found %s",
                      shape == PICKLE_IS_DICT ? "a dict" : "a list",
                      pickle_describe(p, to));
}

static enum frag_err check_elements(const struct pickle *p,
                                    const struct pickle_kind *list,
                                    const struct pickle_value *items,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct pickle_value *v = &items[i];

        if ((v->tag != PICKLE_DONE && v->tag != PICKLE_RESULT) ||
            v->kind != list->element)
            return pickle_bad(p, "expected %s in %s, found %s",
                              p->schema->kinds[list->element]->name, list->name,
                              pickle_describe(p, v));
    }
    return FRAG_OK;
}

/* Adds the values from the index `first` to the top to the container *to. */
static enum frag_err put(struct pickle *p, struct pickle_value *to,
                         enum pickle_shape shape, size_t first)
{
    const size_t per_item = shape == PICKLE_IS_DICT ? 2 : 1;
    const size_t count = p->count - first;
    const struct pickle_value *items = p->stack + first;
    const struct pickle_kind *kind;

    FRAG_TRY(check_target(p, to, shape));
    if (count % per_item)
        return pickle_bad(p, "expected a value after each key, found none");
    FRAG_TRY(seal_from(p, first));
    kind = kind_of(p, to);
    if (shape == PICKLE_IS_LIST && kind->element)
        FRAG_TRY(check_elements(p, kind, items, count));
    if (!kind->add)
        return FRAG_OK;
    return kind->add(p->user, to->kind, items, count / per_item, p->e);
}

enum frag_err stack_put_marked(struct pickle *p, enum pickle_shape shape)
{
    size_t mark = 0;

    FRAG_TRY(need_mark(p, &mark));
    if (!mark)
        return pickle_bad(p, "expected a container below the MARK, found none");
    FRAG_TRY(put(p, &p->stack[mark - 1], shape, mark + 1));
    p->count = mark;
    p->mark_count--;
    return FRAG_OK;
}

enum frag_err stack_put_top(struct pickle *p, enum pickle_shape shape)
{
    const size_t count = shape == PICKLE_IS_DICT ? 2 : 1;

    FRAG_TRY(need_values(p, count + 1));
    FRAG_TRY(put(p, &p->stack[p->count - count - 1], shape, p->count - count));
    p->count -= count;
    return FRAG_OK;
}

/* Tuples and other values that replace their parts */

static bool is_whole(const struct pickle_value *v)
{
    return v->tag == PICKLE_INT || v->tag == PICKLE_UINT;
}

static enum frag_err push_pair(struct pickle *p, uint64_t first,
                               uint64_t second)
{
    const uint64_t pair[2] = {first, second};
    const uint32_t n = texts_add(&p->texts, pair, sizeof(pair));

    if (n == TEXT_NONE)
        return pickle_no_memory(p);
    return stack_push(p, (struct pickle_value){.tag = PICKLE_PAIR, .n = n});
}

static enum frag_err wrap(struct pickle *p, size_t first, bool is_tuple)
{
    const struct pickle_value *v = p->stack + first;
    const bool is_pair =
        is_tuple && p->count - first == 2 && is_whole(&v[0]) && is_whole(&v[1]);

    FRAG_TRY(seal_from(p, first));
    p->count = first;
    return is_pair ? push_pair(p, v[0].n, v[1].n) : stack_push_other(p);
}

enum frag_err stack_wrap_marked(struct pickle *p, bool is_tuple)
{
    size_t mark = 0;

    FRAG_TRY(need_mark(p, &mark));
    p->mark_count--;
    /* Removes the MARK from the stack; all values above it move down by one. */
    memmove(&p->stack[mark], &p->stack[mark + 1],
            (p->count - mark - 1) * sizeof(*p->stack));
    p->count--;
    for (size_t k = 0; k < PICKLE_KINDS; k++)
        if (p->open_at[k] > mark + 1)
            p->open_at[k]--;
    return wrap(p, mark, is_tuple);
}

/* Whether the value is a count of values that were merged. */
static bool only_counts(const struct pickle_value *v)
{
    return v->tag == PICKLE_DONE || v->tag == PICKLE_OTHER;
}

/* The index at which the top `count` values begin. A merged value is divided if
 * only a part of its values belongs to them. */
static enum frag_err top_values(struct pickle *p, size_t count, size_t *first)
{
    const size_t wanted = count;
    size_t i = p->count;

    for (; count; i--) {
        struct pickle_value *v;

        if (!i || p->stack[i - 1].tag == PICKLE_MARK)
            return pickle_bad(p, "expected %zu values on the stack, found %zu",
                              wanted, wanted - count);
        v = &p->stack[i - 1];
        if (only_counts(v) && v->n > count) {
            v->n -= count;
            break;
        }
        count -= only_counts(v) ? (size_t)v->n : 1;
    }
    *first = i;
    return FRAG_OK;
}

enum frag_err stack_wrap_top(struct pickle *p, size_t count)
{
    size_t first = 0;

    FRAG_TRY(top_values(p, count, &first));
    return wrap(p, first, true);
}

enum frag_err stack_pop(struct pickle *p)
{
    size_t first = 0;

    if (p->count && p->stack[p->count - 1].tag == PICKLE_MARK)
        return stack_pop_marked(p);
    FRAG_TRY(top_values(p, 1, &first));
    FRAG_TRY(seal_from(p, first));
    p->count = first;
    return FRAG_OK;
}

enum frag_err stack_pop_marked(struct pickle *p)
{
    size_t mark = 0;

    FRAG_TRY(need_mark(p, &mark));
    FRAG_TRY(seal_from(p, mark + 1));
    p->count = mark;
    p->mark_count--;
    return FRAG_OK;
}

enum frag_err stack_dup(struct pickle *p)
{
    struct pickle_value v;

    FRAG_TRY(need_values(p, 1));
    v = p->stack[p->count - 1];
    if (is_open(&v) || v.tag == PICKLE_DONE)
        v.tag = PICKLE_SEEN;
    return stack_push(p, v);
}

/* The end */

enum frag_err stack_stop(struct pickle *p)
{
    const struct pickle_value *v = p->stack;

    if (p->count != 1 || p->mark_count)
        return pickle_bad(p, "expected one value at the end, found %zu",
                          p->count);
    FRAG_TRY(seal_from(p, 0));
    if (v->tag != PICKLE_DONE)
        return pickle_bad(p,
                          "expected %s or %s, found %s; " FRAG_RECORD_SNAPSHOT,
                          p->schema->kinds[p->schema->root_dict]->name,
                          p->schema->kinds[p->schema->root_list]->name,
                          pickle_describe(p, v));
    p->stopped = true;
    return FRAG_OK;
}
