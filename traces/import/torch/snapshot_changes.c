/* snapshot_changes.c - reads the changes of settings that fragsim's recorders
 * (traces/pytorch_record.py, `fragsim dry`) write into a snapshot, and finds
 * the switches of expandable_segments in snapshots that nobody wrote them into.
 *
 * The key "fragsim_settings" has a list of dictionaries, in the order of the
 * calls, one for each device that a call concerns:
 *
 *   device          number of the device; -1: pinned host memory
 *   settings        the text that was passed to _set_allocator_settings; or
 *   limit           the limit that set_per_process_memory_fraction set, in
 *                   bytes; -1: none
 *   calls_after     number of requests of the device, refused ones included,
 * and of frees after the call up to the snapshot: the ring buffer of the
 * history may have lost those before; absent or -1: the time places the change
 *   time_us         of the call; 0: before the history
 *   frames          stack of the call, as of an entry
 *
 * The key "fragsim_start" has the settings when the history began, as
 * allocator_settings has those of the end, and stands between it and the list.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "traces/import/torch/import_torch.h"
#include "traces/text.h"

/* The release of PyTorch 2 since which private pools have expandable segments,
 * too (policies/torch/versions.c): before, both kinds need no change. */
enum { POOLS_EXPAND = 5 };
enum { X_DEVICE, X_SETTINGS, X_LIMIT, X_AFTER, X_TIME, X_FRAMES };

const struct field change_fields[WORD_COUNT] = {
    [W_device] = {WHOLE, X_DEVICE, 0, true, true},
    [W_settings] = {TEXT, X_SETTINGS, 0, false, false},
    [W_limit] = {WHOLE, X_LIMIT, 0, false, true},
    [W_after] = {WHOLE, X_AFTER, 0, false, true},
    [W_time_us] = {WHOLE, X_TIME, 0, false, false},
    [W_frames] = {1 << PICKLE_RESULT, X_FRAMES, K_FRAMES, false, false},
};

static enum frag_err change_seal(void *user, uint8_t kind, uint32_t *result,
                                 struct frag_error *e)
{
    struct import *in = user;
    struct object *o = &in->objects[kind];
    const bool sets = object_has(o, X_SETTINGS);
    const uint64_t device = o->value[X_DEVICE];
    struct change_read c = {
        .x = {.kind = sets ? FRAG_CHANGE_SETTINGS : FRAG_CHANGE_LIMIT,
              .limit = sets ? 0 : o->value[X_LIMIT],
              .stack =
                  object_has(o, X_FRAMES) ? (uint32_t)o->value[X_FRAMES] : 0},
        .after = object_has(o, X_AFTER) ? o->value[X_AFTER] : UINT64_MAX,
        .text = o->value[X_SETTINGS],
        .device = device < DEVICES_MAX ? (uint32_t)device : FRAG_HOST_DEVICE,
    };

    (void)result;
    FRAG_TRY(object_check(in, kind, e));
    FRAG_TRY(object_time(in, kind, X_TIME, &c.x.time, e));
    o->number++;
    if (!sets && !object_has(o, X_LIMIT))
        return object_bad(in, kind, "the key", W_settings, "none", e);
    if (!GROW(in->changes, in->change_room, in->change_count + 1))
        return import_no_memory(in, e);
    in->changes[in->change_count++] = c;
    return FRAG_OK;
}

/* ---- changes that the snapshot does not tell ---- */

enum frag_err changes_see(struct import *in, uint32_t device,
                          const struct frag_entry *entry, struct frag_error *e)
{
    const enum taken kind =
        entry->kind == FRAG_ENTRY_SEGMENT_MAP     ? TAKEN_EXPANDABLE
        : entry->kind == FRAG_ENTRY_SEGMENT_ALLOC ? TAKEN_ORDINARY
                                                  : TAKEN_NONE;
    enum taken before;

    if (!kind || device >= DEVICES_MAX)
        return FRAG_OK;
    if (!in->first_taken)
        in->first_taken = kind;
    before = in->taken[device] ? in->taken[device] : in->first_taken;
    in->taken[device] = kind;
    if (kind == before || !entry->time)
        return FRAG_OK;
    if (!GROW(in->toggles, in->toggle_room, in->toggle_count + 1))
        return import_no_memory(in, e);
    in->toggles[in->toggle_count++] =
        (struct toggle){device, entry->time, kind == TAKEN_EXPANDABLE};
    return FRAG_OK;
}

static enum frag_err take_found(struct import *in, struct frag_error *e)
{
    if (!GROW(in->changes, in->change_room, in->opts->found_count))
        return import_no_memory(in, e);
    for (uint64_t i = 0; i < in->opts->found_count; i++) {
        const struct frag_found_change *f = &in->opts->found[i];

        in->changes[in->change_count++] = (struct change_read){
            .x = {.kind = f->text ? FRAG_CHANGE_SETTINGS : FRAG_CHANGE_LIMIT,
                  .limit = f->limit,
                  .origin = FRAG_CHANGE_FOUND},
            .after = f->after,
            .found = f->text,
            .device = f->device};
    }
    return FRAG_OK;
}

enum frag_err changes_find(struct import *in, struct frag_error *e)
{
    if (in->opts && in->opts->found && !in->change_count)
        return take_found(in, e);
    if (in->change_count || !in->toggle_count || !in->conf || in->has_policy ||
        release_find(in) < POOLS_EXPAND)
        return FRAG_OK;
    if (!GROW(in->changes, in->change_room, in->toggle_count))
        return import_no_memory(in, e);
    for (uint64_t i = 0; i < in->toggle_count; i++)
        in->changes[in->change_count++] =
            (struct change_read){.x = {.kind = FRAG_CHANGE_SETTINGS,
                                       .time = in->toggles[i].time,
                                       .origin = FRAG_CHANGE_FOUND},
                                 .after = UINT64_MAX,
                                 .text = i,
                                 .device = in->toggles[i].device};
    in->settings.expandable = in->first_taken == TAKEN_EXPANDABLE;
    FRAG_TRY(settings_again(in, e));
    return frag_build_note(
        in->build,
        "the snapshot has the settings of its end; the program switched "
        "expandable_segments %" PRIu64 " times, as ordinary segments stand "
        "beside mapped ones: each change is placed directly before the first "
        "segment of the new kind, and may lie anywhere after the segment "
        "before "
        "it. Other settings may have changed, too",
        in->toggle_count);
}

/* The text of a change that was found: the settings of the snapshot's end but
 * for expandable_segments. NULL: no memory. */
static char *found_text(struct import *in, const struct change_read *c)
{
    struct torch_settings rest = in->settings;
    bool rebuilt;
    char *conf, *text;

    rest.expandable = false;
    conf = torch_settings_conf(&rest, NULL, &rebuilt);
    text = conf ? text_make("expandable_segments:%s%s%s",
                            in->toggles[c->text].expandable ? "True" : "False",
                            *conf ? "," : "", conf)
                : NULL;
    free(conf);
    return text;
}

/* The text of a change that the snapshot tells. */
static char *told_text(struct import *in, const struct change_read *c)
{
    size_t length;
    const char *given = pickle_text(in->pickle, c->text, &length);

    return strndup(given, length);
}

/* Changes *now as the call did. A call for several devices has the same text
 * for each. */
static enum frag_err take_text(struct import *in, struct change_read *c,
                               struct torch_settings *now)
{
    char *text = c->found                           ? strdup(c->found)
                 : c->x.origin == FRAG_CHANGE_FOUND ? found_text(in, c)
                                                    : told_text(in, c);
    const bool done = text && torch_settings_change(text, now);

    if (done)
        c->x.text = frag_build_string(in->build, text, strlen(text));
    free(text);
    return done && c->x.text != UINT32_MAX ? FRAG_OK : FRAG_NOMEM;
}

enum frag_err changes_finish(struct import *in, struct frag_error *e)
{
    struct torch_settings now = in->settings;
    enum frag_err err = FRAG_OK;

    if (!in->conf)
        now = torch_settings_default();
    for (uint64_t i = 0; err == FRAG_OK && i < in->change_count; i++) {
        struct change_read *c = &in->changes[i];
        struct frag_recorded_settings recorded;

        if (c->x.kind == FRAG_CHANGE_SETTINGS)
            err = take_text(in, c, &now);
        recorded = settings_recorded(&now);
        if (err == FRAG_OK)
            err = frag_build_change(in->build, c->device, &c->x, &recorded,
                                    c->after, e);
    }
    return err == FRAG_NOMEM ? import_no_memory(in, e) : err;
}

const struct pickle_kind torch_setting_change = {
    .name = "a change of settings",
    .shape = PICKLE_IS_DICT,
    .begin = object_begin,
    .add = object_add,
    .seal = change_seal,
};

const struct pickle_kind torch_setting_changes = {
    .name = "the list of changes of settings",
    .element = K_CHANGE,
    .begin = list_begin_once,
};
