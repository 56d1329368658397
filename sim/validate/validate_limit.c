/* validate_limit.c - finds the memory limit that explains the recorded OOMs. */
#include "sim/validate/validate_limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/arena/arena.h"
#include "traces/setting_changes.h"
#include "traces/text.h"
#include "traces/torch_sizes.h"

const char *const frag_limit_source_words[FRAG_LIMIT_SOURCE_COUNT] = {
#define X(name, word) [FRAG_LIMIT_##name] = (word),
    FRAG_LIMIT_SOURCES(X)
#undef X
};

/* The actions of a device, one after the other. */
struct scan {
    const struct frag_device_trace *device;
    const char *settings; /* not NULL */
    struct frag_recorded_limit *limit;
    frag_size held;   /* after the last action */
    frag_size before; /* held before the segments of `event` were returned */
    uint64_t event;   /* of the last returned segment; UINT64_MAX: none */
    frag_size retry;  /* the limit was at most this, because of the retries */
    frag_size full;   /* a full device had at most this, because of the OOMs */
    frag_size page;   /* the largest of the expandable segments so far */
    bool mixed;       /* they differ */
    bool any_pages;   /* expandable segments at some time */
    struct changes_now now;
};

static void lower(frag_size *bound, frag_size value)
{
    if (*bound > value)
        *bound = value;
}

static void add_oom(struct scan *s, const struct frag_recorded_action *oom)
{
    struct frag_recorded_limit *l = s->limit;
    const frag_size need = torch_segment_size(oom->size, s->now.large_segment);
    /* The attempt that returns blocks of max_split_size or more may be the
     * last one, although it returned too few. */
    const frag_size held =
        s->event == oom->event && strstr(s->settings, "max_split_size_mb")
            ? s->before
            : s->held;
    const frag_size room = frag_device_room(oom->device_free) + s->held;
    /* A limit is compared with a segment, a device has to have whole pages: of
     * which size, is not known if it has changed. */
    const frag_size whole = frag_round_up(oom->size, s->page);
    const frag_size pages = !s->now.expandable || need <= TORCH_SMALL_SEGMENT
                                ? need
                            : s->mixed ? oom->size + s->page - TORCH_MIN_BLOCK
                                       : whole;

    lower(&l->most, held + need - 1);
    lower(&s->full, held + pages - 1);
    if (l->source == FRAG_LIMIT_NONE)
        l->source = FRAG_LIMIT_INFERRED;
    if (room >= held + pages || l->source == FRAG_LIMIT_DEVICE)
        return;
    l->source = FRAG_LIMIT_DEVICE;
    l->held = s->held;
    l->device_free = oom->device_free;
    l->limit = room;
}

/* The least memory that the request of an action needed: a map may take less
 * than the limit is compared with. */
static frag_size need_of(const struct scan *s,
                         const struct frag_recorded_action *a)
{
    if (a->action == FRAG_SEGMENT_ALLOC)
        return a->size;
    if (strstr(s->settings, "roundup_power2_divisions"))
        return FRAG_UNLIMITED;
    return torch_segment_size(
        torch_round_size(
            s->device->bytes[a->event] + torch_padding_of(s->settings), NULL),
        s->now.large_segment);
}

/* A request that returned segments before it got memory had failed at first,
 * unless the allocator collects garbage by a threshold. */
static void add_retry(struct scan *s, const struct frag_recorded_action *a)
{
    frag_size need;

    if (s->device->change_count || s->event != a->event ||
        a->event >= s->device->count || s->device->op[a->event] != FRAG_ALLOC ||
        strstr(s->settings, "garbage_collection_threshold"))
        return;
    need = need_of(s, a);
    if (need == FRAG_UNLIMITED)
        return;
    lower(&s->retry, s->before + need - 1);
    s->event = UINT64_MAX;
}

static void add_action(struct scan *s, const struct frag_recorded_action *a)
{
    switch ((enum frag_action)a->action) {
    case FRAG_SEGMENT_ALLOC:
    case FRAG_SEGMENT_MAP:
        add_retry(s, a);
        s->held += a->size;
        break;
    case FRAG_SEGMENT_FREE:
    case FRAG_SEGMENT_UNMAP:
        if (s->event != a->event)
            s->before = s->held;
        s->event = a->event;
        s->held -= a->size;
        break;
    case FRAG_OOM_REPORTED:
        add_oom(s, a);
        break;
    case FRAG_ACTION_COUNT:
        break;
    }
    if (s->held > s->limit->least)
        s->limit->least = s->held;
}

static void settle(struct frag_recorded_limit *l, const struct scan *s)
{
    const bool is_device = l->source == FRAG_LIMIT_DEVICE && s->any_pages;
    const frag_size retry = is_device ? FRAG_UNLIMITED : s->retry;

    if (l->source == FRAG_LIMIT_NONE)
        return;
    if (is_device)
        l->most = s->full;
    if (retry >= l->least)
        lower(&l->most, retry);
    if (l->least > l->most) {
        l->source = FRAG_LIMIT_CONTRADICTED;
        l->limit = FRAG_UNLIMITED;
    } else if (l->source == FRAG_LIMIT_INFERRED) {
        l->limit = l->least + (l->most - l->least) / 2;
    } else if (l->limit < l->least) { /* others took device memory since */
        l->limit = l->least;
    } else {
        lower(&l->limit, l->most);
    }
}

struct frag_recorded_limit
frag_recorded_limit(const struct frag_device_trace *d, const char *settings)
{
    const struct frag_recorded *r = &d->recorded;
    struct frag_recorded_limit l = {.limit = FRAG_UNLIMITED,
                                    .most = FRAG_UNLIMITED};
    struct scan s = {.device = d,
                     .settings = settings ? settings : "",
                     .limit = &l,
                     .event = UINT64_MAX,
                     .retry = FRAG_UNLIMITED,
                     .full = FRAG_UNLIMITED,
                     .now = changes_begin(settings)};
    const frag_size stated = changes_limit(d);

    s.page = s.now.large_segment;
    for (uint64_t i = 0; i < r->start.segment_count; i++)
        s.held += r->start.segments[i].size;
    l.least = s.held;
    for (uint64_t i = 0; i < r->action_count; i++) {
        changes_pass(d, &s.now, r->actions[i].event);
        s.any_pages |= s.now.expandable;
        s.mixed |= s.page != s.now.large_segment;
        if (s.page < s.now.large_segment)
            s.page = s.now.large_segment;
        add_action(&s, &r->actions[i]);
    }
    settle(&l, &s);
    if (stated && (stated != FRAG_UNLIMITED || l.source != FRAG_LIMIT_DEVICE)) {
        l.source = FRAG_LIMIT_GIVEN;
        l.limit = stated;
    }
    return l;
}

static void note_device(const struct frag_recorded_limit *l, const char *peak,
                        char text[FRAG_LIMIT_TEXT])
{
    const frag_size sum = l->held + frag_device_room(l->device_free);
    char held[FRAG_EXACT_TEXT], room[FRAG_EXACT_TEXT], both[FRAG_EXACT_TEXT];

    text_add(text, FRAG_LIMIT_TEXT, "",
             "the memory limit is taken from an oom entry: %s were "
             "reserved and the device had %s free, of which the driver keeps "
             "up to %s, together %s",
             frag_size_exact(l->held, held),
             frag_size_exact(l->device_free, room),
             FRAG_SHOW_SIZE(FRAG_DRIVER_KEEPS), frag_size_exact(sum, both));
    if (l->limit != sum)
        text_add(text, FRAG_LIMIT_TEXT, "; ",
                 "other events contradict this sum, so the nearest limit "
                 "that explains them all, %s, is used; --recorded-limit states "
                 "another "
                 "one",
                 frag_size_exact(l->limit, both));
    text_add(text, FRAG_LIMIT_TEXT, "; ",
             "the reader uses the peak of the reserved bytes, %s, to "
             "distinguish empty_cache calls from retries",
             peak);
}

void frag_recorded_limit_note(const struct frag_recorded_limit *l,
                              char text[FRAG_LIMIT_TEXT])
{
    char least[FRAG_EXACT_TEXT], most[FRAG_EXACT_TEXT], used[FRAG_EXACT_TEXT];

    text[0] = '\0';
    frag_size_exact(l->least, least);
    if (l->source == FRAG_LIMIT_DEVICE)
        note_device(l, least, text);
    if (l->source == FRAG_LIMIT_INFERRED)
        snprintf(text, FRAG_LIMIT_TEXT,
                 "the process had a memory limit that no snapshot records; the "
                 "oom entries show that it lay between the peak of the "
                 "reserved bytes, %s, and %s; the replay uses the middle, %s, "
                 "and the reader uses the peak to distinguish empty_cache "
                 "calls from retries; --recorded-limit states the exact limit",
                 least, frag_size_exact(l->most, most),
                 frag_size_exact(l->limit, used));
    if (l->source == FRAG_LIMIT_CONTRADICTED)
        snprintf(text, FRAG_LIMIT_TEXT,
                 "no constant memory limit explains the oom entries: a request "
                 "failed that needed %s in all, but %s were reserved at the "
                 "peak, which the reader uses to distinguish empty_cache calls "
                 "from retries; the replay has no limit; --recorded-limit "
                 "states one",
                 frag_size_exact(l->most + 1, most), least);
}
