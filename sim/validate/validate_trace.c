/* validate_trace.c - compares each segment event, OOM and block address with
 * the recording, during the replay. */
#include "sim/arena/arena.h"
#include "sim/validate/validate_parts.h"
#include "traces/binary_search.h"
#include "traces/grow.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the first difference ---- */

void check_expect(struct checked_run *c, const char *format, ...)
{
    struct frag_divergence *where = &c->v->first;
    va_list args;

    if (where->found)
        return;
    va_start(args, format);
    vsnprintf(where->expected, sizeof(where->expected), format, args);
    va_end(args);
}

void check_found(struct checked_run *c, const char *format, ...)
{
    struct frag_divergence *where = &c->v->first;
    va_list args;

    if (where->found)
        return;
    va_start(args, format);
    vsnprintf(where->replayed, sizeof(where->replayed), format, args);
    va_end(args);
    where->event = c->event;
    where->found = true;
}

/* ---- addresses ---- */

/* Number of pairs whose replayed address is at most addr. */
static size_t pair_at(const struct checked_run *c, frag_addr addr)
{
    uint64_t low;

    SEARCH(low, c->pair_count, middle, c->pairs[middle].replayed <= addr);
    return (size_t)low;
}

/* Expandable segments have the same addresses on both sides and no pair. */
frag_addr check_translate(const struct checked_run *c, frag_addr addr)
{
    size_t at = pair_at(c, addr);

    if (at && addr - c->pairs[at - 1].replayed < c->pairs[at - 1].size)
        return addr - c->pairs[at - 1].replayed + c->pairs[at - 1].recorded;
    return addr;
}

static void add_pair(struct checked_run *c, frag_addr replayed,
                     frag_addr recorded, frag_size size)
{
    size_t at = pair_at(c, replayed);

    if (!GROW(c->pairs, c->pair_room, c->pair_count + 1)) {
        c->nomem = true;
        return;
    }
    memmove(&c->pairs[at + 1], &c->pairs[at],
            (c->pair_count - at) * sizeof(*c->pairs));
    c->pairs[at] = (struct address_pair){replayed, recorded, size};
    c->pair_count++;
}

static void remove_pair(struct checked_run *c, frag_addr replayed)
{
    size_t at = pair_at(c, replayed);

    if (!at || c->pairs[at - 1].replayed != replayed)
        return;
    memmove(&c->pairs[at - 1], &c->pairs[at],
            (c->pair_count - at) * sizeof(*c->pairs));
    c->pair_count--;
}

/* ---- actions ---- */

static const enum frag_action recorded_kind[] = {
    [FRAG_TORCH_SEGMENT_ALLOC] = FRAG_SEGMENT_ALLOC,
    [FRAG_TORCH_SEGMENT_FREE] = FRAG_SEGMENT_FREE,
    [FRAG_TORCH_SEGMENT_MAP] = FRAG_SEGMENT_MAP,
    [FRAG_TORCH_SEGMENT_UNMAP] = FRAG_SEGMENT_UNMAP,
    [FRAG_TORCH_OOM] = FRAG_OOM_REPORTED,
};

static void describe(char text[160], const struct frag_recorded_action *a)
{
    snprintf(text, 160,
             "%s of %" PRIu64 " bytes at 0x%" PRIx64
             " on stream %u during event %" PRIu64,
             frag_action_names[a->action], a->size, a->addr, a->stream,
             a->event);
}

static bool same_action(const struct frag_recorded_action *a,
                        const struct frag_recorded_action *b)
{
    return a->action == b->action && a->size == b->size &&
           a->stream == b->stream && a->event == b->event &&
           (a->addr == b->addr || a->action == FRAG_OOM_REPORTED);
}

static void compare_action(struct checked_run *c,
                           const struct frag_recorded_action *replayed)
{
    const struct frag_recorded_action *want = NULL;
    uint64_t *matched = replayed->action == FRAG_OOM_REPORTED
                            ? &c->v->ooms_matched
                            : &c->v->segment_events_matched;
    char text[160] = "no further segment event";

    if (c->next_action < c->recorded->action_count)
        want = &c->recorded->actions[c->next_action++];
    if (want && same_action(want, replayed)) {
        ++*matched;
        return;
    }
    if (want)
        describe(text, want);
    check_expect(c, "%s", text);
    describe(text, replayed);
    check_found(c, "%s", text);
}

void check_action(void *user, enum frag_torch_action action, frag_addr addr,
                  frag_size size, frag_stream stream)
{
    struct checked_run *c = user;
    const uint64_t k = c->next_action;
    struct frag_recorded_action replayed = {
        .event = c->event,
        .size = size,
        .action = recorded_kind[action],
        .stream = stream,
    };

    if (action == FRAG_TORCH_SEGMENT_ALLOC && k < c->recorded->action_count)
        add_pair(c, addr, c->recorded->actions[k].addr, size);
    replayed.addr = check_translate(c, addr);
    compare_action(c, &replayed);
    if (action == FRAG_TORCH_SEGMENT_FREE)
        remove_pair(c, addr);
}

void check_missed(struct checked_run *c, uint64_t event)
{
    char text[160];

    while (c->next_action < c->recorded->action_count &&
           c->recorded->actions[c->next_action].event <= event) {
        describe(text, &c->recorded->actions[c->next_action++]);
        check_expect(c, "%s", text);
        check_found(c, "no such action");
    }
}

/* ---- events ---- */

static void compare_address(struct checked_run *c, uint64_t event,
                            const struct frag_block *block)
{
    const frag_addr want = c->recorded->addr[event];
    const frag_addr got = block ? check_translate(c, block->addr) : 0;

    if (want)
        c->v->allocs++;
    if (want == got) {
        c->v->addresses_matched += want != 0;
        return;
    }
    check_expect(c, want ? "block at 0x%" PRIx64 : "out of memory", want);
    check_found(c, got ? "block at 0x%" PRIx64 : "out of memory", got);
}

void check_event(void *user, uint64_t event, const struct frag_block *block)
{
    struct checked_run *c = user;

    check_missed(c, event);
    if (c->spec->device->op[event] == FRAG_ALLOC)
        compare_address(c, event, block);
    c->event = event + 1;
}
