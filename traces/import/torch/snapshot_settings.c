/* snapshot_settings.c - reads the allocator settings of a snapshot. The builder
 * receives the values in force, as one conf string. */
#include <stdio.h>
#include <stdlib.h>

#include "traces/import/torch/import_torch.h"
#include "traces/text.h"

enum {
    C_CONF,
    C_SPLIT,
    C_GC,
    C_EXPANDABLE,
    C_REUSE,
    C_DIVISIONS,
    C_ROUND,
    C_CACHED,
    C_CONF_OF_XPU,
};

const struct field settings_fields[WORD_COUNT] = {
    [W_conf] = {TEXT, C_CONF, 0, false, false},
    [W_conf_of_xpu] = {TEXT, C_CONF_OF_XPU, 0, false, false},
    [W_max_split_size] = {WHOLE, C_SPLIT, 0, false, true},
    [W_gc_threshold] = {1 << PICKLE_FLOAT, C_GC, 0, false, false},
    [W_expandable] = {TRUTH, C_EXPANDABLE, 0, false, false},
    [W_capture_reuse] = {TRUTH, C_REUSE, 0, false, false},
    [W_round_threshold] = {WHOLE, C_ROUND, 0, false, true},
    [W_cached_size] = {WHOLE, C_CACHED, 0, false, true},
    [W_divisions] = {DONE, C_DIVISIONS, K_DIVISIONS, false, false},
};

static enum frag_err settings_begin(void *user, uint8_t kind,
                                    struct frag_error *e)
{
    struct import *in = user;

    in->settings = torch_settings_default();
    return object_begin(in, kind, e);
}

const struct field divisions_fields[WORD_COUNT] = {
#define X(name, text) \
    [W_##name] = {WHOLE, W_##name - W_octave_0, 0, false, false},
    OCTAVES(X)
#undef X
};

static enum frag_err divisions_seal(void *user, uint8_t kind, uint32_t *result,
                                    struct frag_error *e)
{
    struct import *in = user;
    const struct object *o = &in->objects[kind];

    (void)result, (void)e;
    for (unsigned i = 0; i < TORCH_DIVISIONS; i++)
        if (object_has(o, i))
            in->settings.divisions[i] = o->value[i];
    return FRAG_OK;
}

const struct pickle_kind torch_divisions = {
    .name = "the table of divisions",
    .shape = PICKLE_IS_DICT,
    .begin = object_begin,
    .add = object_add,
    .seal = divisions_seal,
};

static double as_double(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof(d));
    return d;
}

struct frag_recorded_settings settings_recorded(const struct torch_settings *s)
{
    struct frag_recorded_settings out = {.gc_threshold = s->gc_threshold,
                                         .max_split = s->max_split,
                                         .pinned_returned =
                                             s->pinned_cached + 1,
                                         .large_segment = s->large_segment,
                                         .expandable = s->expandable};

    memcpy(out.divisions, s->divisions, sizeof(out.divisions));
    return out;
}

static enum frag_err feed_settings(struct import *in, const char *conf_text,
                                   struct frag_error *e)
{
    struct torch_settings *s = &in->settings;
    struct frag_recorded_settings out;
    bool rebuilt = false;
    char *conf = torch_settings_conf(s, conf_text, &rebuilt);
    enum frag_err err;

    if (!conf)
        return import_no_memory(in, e);
    s->large_segment = torch_large_segment_of(conf);
    out = settings_recorded(s);
    out.conf = conf;
    out.padding = torch_padding_of(conf);
    err = frag_build_settings(in->build, &out, e);
    snprintf(in->differs, sizeof(in->differs), "%s",
             rebuilt && conf_text ? conf_text : "");
    free(in->conf);
    in->conf = conf;
    return err;
}

enum frag_err settings_again(struct import *in, struct frag_error *e)
{
    char differs[sizeof(in->differs)], *conf = strdup(in->conf);
    enum frag_err err;

    memcpy(differs, in->differs, sizeof(differs));
    err = conf ? feed_settings(in, conf, e) : import_no_memory(in, e);
    memcpy(in->differs, differs, sizeof(differs));
    free(conf);
    return err;
}

enum frag_err settings_finish(struct import *in, struct frag_error *e)
{
    char *conf;
    enum frag_err err = FRAG_OK;

    if (*in->differs)
        FRAG_TRY(frag_build_note(
            in->build,
            "the settings in force differed from %s ('%s'); the trace has "
            "the settings in force: %.200s",
            torch_platforms[in->origin.seen[TORCH_XPU] ? TORCH_XPU : TORCH_CUDA]
                .variable,
            in->differs, in->conf));
    if (!in->change_count || torch_value_of(in->conf, TORCH_FOLLOWS_KEY))
        return FRAG_OK;
    conf =
        text_make(TORCH_FOLLOWS_KEY ":True%s%s",
                  in->conf && *in->conf ? "," : "", in->conf ? in->conf : "");
    if (!conf)
        return import_no_memory(in, e);
    err = feed_settings(in, conf, e);
    free(conf);
    return err;
}

enum frag_err settings_add_platform(struct import *in,
                                    enum torch_platform_id platform,
                                    frag_size padding, frag_size align,
                                    struct frag_error *e)
{
    char text[TORCH_PLATFORM_TEXT], *conf;
    enum frag_err err;

    if (!in->conf) {
        in->settings = torch_settings_default();
        in->settings.expandable = in->has_expandable;
        FRAG_TRY(feed_settings(in, NULL, e));
    }
    if (torch_value_of(in->conf, TORCH_PADDING_KEY))
        padding = 0;
    if (torch_value_of(in->conf, TORCH_ALIGN_KEY))
        align = 0;
    if (torch_value_of(in->conf, TORCH_PLATFORM_KEY))
        platform = TORCH_CUDA;
    torch_platform_text(platform, padding, align, text);
    conf = text_make("%s%s%s", text, *text && *in->conf ? "," : "", in->conf);
    if (!conf)
        return import_no_memory(in, e);
    err = feed_settings(in, conf, e);
    free(conf);
    return err;
}

static enum frag_err settings_seal(void *user, uint8_t kind, uint32_t *result,
                                   struct frag_error *e)
{
    struct import *in = user;
    const struct object *o = &in->objects[kind];
    const unsigned slot = object_has(o, C_CONF_OF_XPU) ? C_CONF_OF_XPU : C_CONF;
    char *conf_text = NULL;
    enum frag_err err;

    (void)result;
    if (object_has(o, C_SPLIT))
        in->settings.max_split = o->value[C_SPLIT];
    if (object_has(o, C_GC))
        in->settings.gc_threshold = as_double(o->value[C_GC]);
    in->settings.expandable =
        object_has(o, C_EXPANDABLE) && o->value[C_EXPANDABLE];
    if (object_has(o, C_ROUND))
        in->settings.pinned_round = o->value[C_ROUND];
    if (object_has(o, C_CACHED))
        in->settings.pinned_cached = o->value[C_CACHED];
    in->settings.capture_reuse = object_has(o, C_REUSE) && o->value[C_REUSE];
    /* Only PyTorch for XPU has this key (torch_platforms.c). */
    in->origin.seen[TORCH_XPU] |= slot == C_CONF_OF_XPU;
    if (object_has(o, slot)) {
        size_t length;
        const char *text = pickle_text(in->pickle, o->value[slot], &length);

        conf_text = strndup(text, length);
        if (!conf_text)
            return import_no_memory(in, e);
    }
    err = feed_settings(in, conf_text, e);
    free(conf_text);
    return err;
}

bool settings_round_to(const struct import *in, frag_size size)
{
    return !(size & (size - 1)) || size > in->settings.pinned_round ||
           size > in->settings.pinned_cached;
}

static const struct pickle_member members[] = {{W_divisions, K_DIVISIONS},
                                               {0, 0}};

const struct pickle_kind torch_settings = {
    .name = "the allocator's settings",
    .shape = PICKLE_IS_DICT,
    .members = members,
    .begin = settings_begin,
    .add = object_add,
    .seal = settings_seal,
};

/* The settings at the start of the history (snapshot_changes.c). */
const struct pickle_kind torch_start = {
    .name = "the allocator's settings at the start",
    .shape = PICKLE_IS_DICT,
    .members = members,
    .begin = settings_begin,
    .add = object_add,
    .seal = settings_seal,
};
