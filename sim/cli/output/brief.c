/* brief.c - cuts names, finds those that look equal, and cuts these where they
 * differ. */
#include "sim/cli/output/brief.h"

#include <stdio.h>
#include <string.h>

#include "traces/grow.h"

static const char ellipsis[] = "\u2026";

/* Whether a byte begins a UTF-8 character: bytes 10xxxxxx continue one. */
static bool is_first(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

size_t brief_letters(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += is_first(*text);
    return n;
}

/* -- parts of a text ----------------------------------------------------- */

/* Appends letters [from, to) of the text. What has no room is left out: only
 * text that is not UTF-8 is that long. */
static void append(char out[BRIEF_BYTES], const char *text, size_t from,
                   size_t to)
{
    size_t at = strlen(out), n = 0;

    for (; *text && at < 4 * BRIEF_LETTERS; text++) {
        n += is_first(*text);
        if (n > from && n <= to)
            out[at++] = *text;
    }
    out[at] = '\0';
}

const char *brief_cut(const char *text, size_t letters, char out[BRIEF_BYTES])
{
    size_t all = brief_letters(text), tail = letters / 3;

    *out = '\0';
    if (all <= letters) {
        append(out, text, 0, all);
        return out;
    }
    append(out, text, 0, letters - tail);
    strcat(out, ellipsis);
    append(out, text, all - tail, all);
    return out;
}

/* Writes the first third, an ellipsis, and the letters around number `where`.
 */
static void cut_around(const char *text, size_t letters, size_t where,
                       char out[BRIEF_BYTES])
{
    size_t all = brief_letters(text), head = letters / 3;
    size_t rest = letters - head, last = all > rest ? all - rest : 0;
    size_t from = where - 2 < last ? where - 2 : last;
    size_t to = from + rest;

    from = from > head ? from : head;
    *out = '\0';
    append(out, text, 0, head);
    strcat(out, from > head ? ellipsis : "");
    append(out, text, from, to < all ? to : all);
    strcat(out, to < all ? ellipsis : "");
}

/* -- lists --------------------------------------------------------------- */

static struct brief *find(const struct briefs *b, const char *name,
                          const char *owner)
{
    for (size_t i = 0; i < b->count; i++)
        if (!strcmp(b->items[i].name, name) &&
            !strcmp(b->items[i].owner, owner))
            return &b->items[i];
    return NULL;
}

enum frag_err briefs_add(struct briefs *b, const char *name, const char *owner)
{
    if (find(b, name, owner))
        return FRAG_OK;
    if (!GROW(b->items, b->room, b->count + 1))
        return FRAG_NOMEM;
    b->items[b->count++] = (struct brief){.name = name, .owner = owner};
    return FRAG_OK;
}

/* Number of letters in which both texts begin alike. */
static size_t common(const char *a, const char *b)
{
    size_t n = 0;

    for (; *a && *a == *b; a++, b++)
        n += is_first(*a);
    return n;
}

/* The letter from which on the names of the items that look like item i
 * differ; SIZE_MAX if no other name looks like it. */
static size_t differs_at(const struct briefs *b, size_t i)
{
    size_t where = SIZE_MAX;

    for (size_t k = 0; k < b->count; k++) {
        size_t n = common(b->items[i].name, b->items[k].name);

        if (strcmp(b->items[i].name, b->items[k].name) != 0 &&
            !strcmp(b->items[i].text, b->items[k].text) && n < where)
            where = n;
    }
    return where;
}

/* Cuts the items that look like item i where they differ. */
static void cut_apart(struct briefs *b, size_t i, size_t letters)
{
    size_t where = differs_at(b, i);
    char text[BRIEF_BYTES];

    if (where == SIZE_MAX)
        return;
    strcpy(text, b->items[i].text);
    for (size_t k = i; k < b->count; k++)
        if (!strcmp(b->items[k].text, text))
            cut_around(b->items[k].name, letters, where, b->items[k].text);
}

/* Whether an item before i has the same text. */
static bool is_taken(const struct briefs *b, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(b->items[k].text, b->items[i].text))
            return true;
    return false;
}

static void number(struct briefs *b, size_t i)
{
    char *end = b->items[i].text + strlen(b->items[i].text);

    for (unsigned n = 2; is_taken(b, i); n++)
        sprintf(end, " #%u", n);
}

void briefs_make(struct briefs *b, size_t letters)
{
    for (size_t i = 0; i < b->count; i++)
        brief_cut(b->items[i].name, letters, b->items[i].text);
    for (size_t i = 0; i < b->count; i++)
        cut_apart(b, i, letters);
    for (size_t i = 0; i < b->count; i++)
        number(b, i);
}

const char *briefs_text(const struct briefs *b, const char *name,
                        const char *owner)
{
    return find(b, name, owner)->text;
}

void briefs_free(struct briefs *b)
{
    free(b->items);
    *b = (struct briefs){0};
}
