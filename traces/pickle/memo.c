/* memo.c - packs and opens the pages of the memo. memo.h describes both forms.
 */
#include "traces/pickle/memo.h"

#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"

enum {
    PAGE_BITS = MEMO_BITS,
    PAGE = MEMO_PAGE,
    CODES_MAX = 256,
    READS_MAX = 1 << 14
};

/* Writes the different codes of a page to `codes`, and to `places` the index in
 * `codes` of each code of the page. Returns the number of different codes, or 0
 * if there are more than CODES_MAX. */
static size_t distinct(const uint32_t *open, uint32_t codes[CODES_MAX],
                       uint8_t places[PAGE])
{
    size_t count = 0, last = 0;

    for (size_t i = 0; i < PAGE; i++) {
        size_t k = last;

        if (!count || codes[k] != open[i])
            for (k = 0; k < count && codes[k] != open[i]; k++)
                ;
        if (k == CODES_MAX)
            return 0;
        if (k == count)
            codes[count++] = open[i];
        places[i] = (uint8_t)k;
        last = k + 1 < count ? k + 1 : 0;
    }
    return count;
}

/* Packs a page. Packing only saves memory: the page stays open if it has too
 * many different codes or if the host has no memory. */
static void pack(struct memo_page *page)
{
    uint32_t codes[CODES_MAX], *packed;
    uint8_t places[PAGE], *to;
    size_t count;

    if (!page->open || page->stays_open)
        return;
    count = distinct(page->open, codes, places);
    page->stays_open = !count;
    if (!count)
        return;
    const uint8_t bits = count <= 16 ? 4 : 8;
    packed = malloc(count * sizeof(*codes) + (size_t)PAGE * bits / 8);
    if (!packed)
        return;
    memcpy(packed, codes, count * sizeof(*codes));
    to = (uint8_t *)(packed + count);
    if (bits == 8)
        memcpy(to, places, PAGE);
    else
        for (size_t i = 0; i < PAGE / 2; i++)
            to[i] = (uint8_t)(places[2 * i] | places[2 * i + 1] << 4);
    free(page->open);
    *page = (struct memo_page){
        .codes = packed, .bits = bits, .code_count = (uint16_t)count};
}

static uint32_t packed_code(const struct memo_page *page, size_t i)
{
    const uint8_t *places = (const uint8_t *)(page->codes + page->code_count);

    if (page->bits == 8)
        return page->codes[places[i]];
    return page->codes[places[i / 2] >> (i % 2 * 4) & 15];
}

static bool open_page(struct memo_page *page)
{
    uint32_t *open = calloc(PAGE, sizeof(*open));

    if (!open)
        return false;
    if (page->codes) {
        for (size_t i = 0; i < PAGE; i++)
            open[i] = packed_code(page, i);
        page->stays_open = true;
    }
    free(page->codes);
    page->codes = NULL;
    page->open = open;
    return true;
}

/* Makes page k open and current, and packs the page that was current. Returns
 * false if the host has no memory. */
static bool select_page(struct memo *m, size_t k)
{
    if (!GROW(m->pages, m->page_room, k + 1))
        return false;
    while (m->page_count <= k)
        m->pages[m->page_count++] = (struct memo_page){0};
    if (!m->pages[k].open && !open_page(&m->pages[k]))
        return false;
    if (m->current != k)
        pack(&m->pages[m->current]);
    m->current = k;
    return true;
}

bool memo_set(struct memo *m, uint64_t number, uint32_t code)
{
    const size_t k = (size_t)(number >> PAGE_BITS);
    uint32_t *at;

    if ((k != m->current || k >= m->page_count) && !select_page(m, k))
        return false;
    at = &m->pages[k].open[number & (PAGE - 1)];
    m->text_changes += (*at & CODE_CLASS) == CODE_TEXT;
    *at = code;
    return true;
}

uint32_t memo_get_packed(struct memo *m, uint64_t number)
{
    const uint64_t k = number >> PAGE_BITS;
    struct memo_page *page;
    uint32_t code;

    if (k >= m->page_count || !m->pages[k].codes)
        return 0;
    page = &m->pages[k];
    code = packed_code(page, number & (PAGE - 1));
    if (++page->reads == READS_MAX)
        (void)open_page(page); /* on failure, reads stay slow */
    return code;
}

void memo_fini(struct memo *m)
{
    for (size_t i = 0; i < m->page_count; i++) {
        free(m->pages[i].open);
        free(m->pages[i].codes);
    }
    free(m->pages);
}
