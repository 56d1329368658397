/* refs.c - the references of a pickle. A pickle numbers the values that it uses
 * again and keeps them in a table, its memo. This file stores a value of the
 * stack in the memo as a code of 32 bits, and restores the value from its code.
 */
#include <inttypes.h>
#include <string.h>

#include "traces/pickle/reader.h"

/* Stores tag and value as a text of 9 bytes; the code is the text's number. */
static enum frag_err keep_scalar(struct pickle *p, const struct pickle_value *v,
                                 uint32_t *code)
{
    unsigned char bytes[9];
    uint32_t n;

    bytes[0] = v->tag;
    memcpy(bytes + 1, &v->n, 8);
    n = texts_add(&p->texts, bytes, sizeof(bytes));
    if (n == TEXT_NONE)
        return pickle_no_memory(p);
    *code = memo_code(CODE_SCALAR, n);
    return FRAG_OK;
}

/* An open container of a kind with `keeps` has no result yet. It remembers its
 * first memo number; sealing stores the result there. A container that is
 * memoized a second time is sealed at once. */
static enum frag_err code_of_open(struct pickle *p, struct pickle_value *v,
                                  uint64_t number, uint32_t *code)
{
    *code = CODE_DONE | (uint32_t)v->kind << 3;
    if (!v->kind)
        *code = CODE_OTHER;
    if (!p->schema->kinds[v->kind]->keeps)
        return FRAG_OK;
    if (v->slot || number >= UINT32_MAX) {
        FRAG_TRY(stack_seal(p, v));
        *code = memo_code_of_result(v->kind, v->n);
        return FRAG_OK;
    }
    v->slot = (uint32_t)number + 1;
    *code = CODE_OPEN | (uint32_t)v->kind << 3;
    return FRAG_OK;
}

static enum frag_err code_of(struct pickle *p, struct pickle_value *v,
                             uint64_t number, uint32_t *code)
{
    *code = CODE_OTHER;
    switch ((enum pickle_tag)v->tag) {
    case PICKLE_LIST:
    case PICKLE_DICT:
        return code_of_open(p, v, number, code);
    case PICKLE_TEXT:
        *code = memo_code(CODE_TEXT, (uint32_t)v->n);
        return FRAG_OK;
    case PICKLE_PAIR:
        *code = memo_code(CODE_PAIR, (uint32_t)v->n);
        return FRAG_OK;
    case PICKLE_RESULT:
        *code = memo_code_of_result(v->kind, v->n);
        return FRAG_OK;
    case PICKLE_DONE:
    case PICKLE_SEEN:
        *code = CODE_DONE | (uint32_t)v->kind << 3;
        return FRAG_OK;
    case PICKLE_MARK:
        return pickle_bad(p, "expected a value to memoize, found a MARK");
    case PICKLE_OTHER:
        return FRAG_OK;
    default:
        return keep_scalar(p, v, code);
    }
}

enum frag_err refs_memoize(struct pickle *p, uint64_t number)
{
    uint32_t code;

    if (!p->count)
        return pickle_bad(p, "expected a value to memoize, found none");
    /* Picklers number values from 0 without gaps. Without this bound, six bytes
     * of input could make the memo allocate gigabytes. */
    if (number > p->where)
        return pickle_bad(p,
                          "expected a memo number of at most %" PRIu64
                          ", the offset in bytes, found %" PRIu64,
                          p->where, number);
    FRAG_TRY(code_of(p, &p->stack[p->count - 1], number, &code));
    return memo_set(&p->memo, number, code) ? FRAG_OK : pickle_no_memory(p);
}

static struct pickle_value scalar(const struct pickle *p, uint32_t text)
{
    const char *bytes = p->texts.rows[text].at;
    struct pickle_value v = {.tag = (uint8_t)bytes[0]};

    memcpy(&v.n, bytes + 1, 8);
    return v;
}

bool refs_find(struct pickle *p, uint64_t number, struct pickle_value *v)
{
    const uint32_t code = memo_get(&p->memo, number);
    const uint8_t kind = code >> 3 & (PICKLE_KINDS - 1);

    switch ((enum code_class)(code & CODE_CLASS)) {
    case CODE_TEXT:
        *v = (struct pickle_value){.tag = PICKLE_TEXT, .n = code >> 3};
        return true;
    case CODE_PAIR:
        *v = (struct pickle_value){.tag = PICKLE_PAIR, .n = code >> 3};
        return true;
    case CODE_SCALAR:
        *v = scalar(p, code >> 3);
        return true;
    case CODE_RESULT:
        *v = (struct pickle_value){
            .tag = PICKLE_RESULT, .kind = kind, .n = code >> 8};
        return true;
    case CODE_DONE:
        *v = (struct pickle_value){.tag = PICKLE_SEEN, .kind = kind};
        return true;
    case CODE_OTHER:
        *v = (struct pickle_value){.tag = PICKLE_OTHER, .n = 1};
        return true;
    case CODE_OPEN:
    case CODE_UNSET:
        break;
    }
    return false;
}

/* A reference to a container that was open when it was memoized. If it is still
 * open, the reference completes it. */
static enum frag_err recall_open(struct pickle *p, uint8_t kind,
                                 uint64_t number)
{
    const size_t at = p->open_at[kind];

    if (!at || p->stack[at - 1].slot != number + 1)
        return pickle_bad(p,
                          "memo number %" PRIu64
                          " refers to a container that is not on the stack",
                          number);
    FRAG_TRY(stack_seal(p, &p->stack[at - 1]));
    return stack_push(p, p->stack[at - 1]);
}

enum frag_err refs_recall(struct pickle *p, uint64_t number)
{
    const uint32_t code = memo_get(&p->memo, number);
    struct pickle_value v;

    if (refs_find(p, number, &v))
        return stack_push(p, v);
    if ((code & CODE_CLASS) == CODE_OPEN)
        return recall_open(p, code >> 3 & (PICKLE_KINDS - 1), number);
    return pickle_bad(p, "memo number %" PRIu64 " was never set", number);
}
