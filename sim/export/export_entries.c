/* export_entries.c - writes the parts of a snapshot. The keys are those that
 * PyTorch writes; no key that its viewer would stumble over is written. */
#include "sim/export/export_entries.h"

#include <stdlib.h>
#include <string.h>

#include "sim/version.h"
#include "traces/import/torch/snapshot_conf.h"
#include "traces/torch_sizes.h"

static const char *const words[S_WORDS] = {
#define X(name, text) text,
    SNAPSHOT_WORDS(X)
#undef X
};

/* -- keys and values ----------------------------------------------------- */

static void put_word(struct snapshot *s, enum snapshot_word word)
{
    pickler_word(&s->pickler, words[word], &s->words[word]);
}

static void put_number(struct snapshot *s, enum snapshot_word key, uint64_t n)
{
    put_word(s, key);
    pickler_number(&s->pickler, n);
}

static void put_choice(struct snapshot *s, enum snapshot_word key,
                       enum snapshot_word value)
{
    put_word(s, key);
    put_word(s, value);
}

static void put_bool(struct snapshot *s, enum snapshot_word key, bool is_true)
{
    put_word(s, key);
    pickler_bool(&s->pickler, is_true);
}

static void put_pool(struct snapshot *s, enum snapshot_word key, frag_pool pool)
{
    const struct frag_pool_id *id = &s->device->pools[pool];

    put_word(s, key);
    pickler_pair(&s->pickler, id->owner, id->number);
}

/* -- stacks -------------------------------------------------------------- */

static void put_string(struct snapshot *s, uint32_t string)
{
    pickler_word(&s->pickler, s->trace->strings[string], &s->strings[string]);
}

static void put_frame(struct snapshot *s, const struct frag_frame *f)
{
    struct pickler *p = &s->pickler;

    pickler_item(p);
    pickler_dict_begin(p);
    put_word(s, S_name);
    put_string(s, f->function);
    put_word(s, S_filename);
    put_string(s, f->file);
    put_number(s, S_line, f->line);
    pickler_dict_end(p);
}

static void put_frames(struct snapshot *s, uint64_t first, uint64_t end)
{
    struct pickler *p = &s->pickler;
    const uint64_t outer = pickler_list_begin(p);

    for (uint64_t f = first; f < end; f++)
        put_frame(s, &s->trace->frames[f]);
    pickler_list_end(p, outer);
}

/* Writes the stack of an event; FRAG_NEVER and events without one have none. */
static void put_stack(struct snapshot *s, uint64_t event)
{
    const struct frag_device_trace *d = s->device;
    const struct frag_trace *t = s->trace;
    const uint32_t k = d->stack && event < d->count ? d->stack[event] : 0;
    uint32_t *memo = k ? &s->stacks[k] : &s->empty;

    put_word(s, S_frames);
    if (*memo) {
        pickler_recall(&s->pickler, *memo);
        return;
    }
    put_frames(s, k ? t->stack_first[k] : 0, k ? t->stack_first[k + 1] : 0);
    *memo = pickler_memoize(&s->pickler);
}

/* -- settings and annotations -------------------------------------------- */

static void put_key(struct snapshot *s, const char *key)
{
    pickler_text(&s->pickler, key);
}

static void put_divisions(struct snapshot *s, const struct torch_settings *c)
{
    char octave[16];

    put_key(s, "roundup_power2_divisions");
    pickler_dict_begin(&s->pickler);
    for (unsigned i = 0; i < TORCH_DIVISIONS; i++) {
        snprintf(octave, sizeof(octave), "%u", 1u << i);
        put_key(s, octave);
        pickler_number(&s->pickler, c->divisions[i]);
    }
    pickler_dict_end(&s->pickler);
}

static void put_settings(struct snapshot *s, const char *key, const char *conf,
                         const struct torch_settings *c)
{
    struct pickler *p = &s->pickler;

    put_key(s, key);
    pickler_dict_begin(p);
    put_key(s, "PYTORCH_CUDA_ALLOC_CONF");
    pickler_text(p, conf);
    put_key(s, "max_split_size"); /* no limit is -1 */
    pickler_number(p, c->max_split);
    put_key(s, "garbage_collection_threshold");
    pickler_real(p, c->gc_threshold);
    put_key(s, "expandable_segments");
    pickler_bool(p, c->expandable);
    put_key(s, "graph_capture_record_stream_reuse");
    pickler_bool(p, c->capture_reuse);
    put_divisions(s, c);
    pickler_dict_end(p);
}

static void put_annotation(struct snapshot *s, const char *stage,
                           const char *name, uint64_t time_us)
{
    struct pickler *p = &s->pickler;

    pickler_item(p);
    pickler_dict_begin(p);
    put_word(s, S_stage);
    pickler_text(p, stage);
    put_word(s, S_name);
    pickler_text(p, name);
    put_number(s, S_device, s->device->device);
    put_number(s, S_time_us, time_us);
    pickler_dict_end(p);
}

/* Without recorded times, a microsecond is one event. */
static uint64_t time_of(const struct frag_device_trace *d, uint64_t event)
{
    return d->time ? d->time[event] / 1000 : event;
}

/* What the entries do not say of the run of a policy: whose it is, and which
 * memory a call of empty_cache returned. */
static void put_calls(struct snapshot *s)
{
    const struct frag_device_trace *d = s->device;

    put_annotation(s, "fragsim: policy", s->policy, 0);
    for (uint64_t i = 0; i < d->count; i++)
        if (d->op[i] == FRAG_EMPTY_CACHE)
            put_annotation(s, "fragsim: cache emptied", "", time_of(d, i));
}

static void put_annotations(struct snapshot *s)
{
    const struct frag_device_trace *d = s->device;
    uint64_t outer;

    put_key(s, "external_annotations");
    outer = pickler_list_begin(&s->pickler);
    for (uint64_t i = 0; d->time && i < d->mark_count; i++)
        put_annotation(s, d->marks[i].kind == FRAG_MARK_BEGIN ? "START" : "END",
                       s->trace->strings[d->marks[i].name],
                       d->marks[i].time / 1000);
    if (s->policy)
        put_calls(s);
    pickler_list_end(&s->pickler, outer);
}

/* -- the file ------------------------------------------------------------ */

/* Begins the list of the device; the devices before it have no entries. */
static void begin_entries(struct snapshot *s)
{
    struct pickler *p = &s->pickler;

    put_key(s, "device_traces");
    s->outer[0] = pickler_list_begin(p);
    for (uint32_t k = 0; k < s->device->device; k++) {
        pickler_item(p);
        pickler_list_end(p, pickler_list_begin(p));
    }
    pickler_item(p);
    s->outer[1] = pickler_list_begin(p);
}

/* Prepares the list of changes. False if the host has no memory. */
static bool keep_changes(struct snapshot *s, const char *conf)
{
    const uint64_t count = s->device->change_count;

    if (!count || !torch_value_of(conf, TORCH_FOLLOWS_KEY))
        return true;
    s->changes = calloc(count, sizeof(*s->changes));
    s->conf = strdup(conf);
    return s->changes && s->conf;
}

/* The changes before the event have as many calls before them as there are so
 * far. */
static void see_changes(struct snapshot *s, uint64_t event)
{
    const struct frag_device_trace *d = s->device;

    for (; s->changes && s->change < d->change_count &&
           d->changes[s->change].event <= event;
         s->change++)
        s->changes[s->change] = s->calls;
}

enum frag_err snapshot_begin(struct snapshot *s, const struct frag_trace *t,
                             const struct frag_device_trace *d,
                             const char *policy, const char *conf, FILE *out)
{
    struct torch_settings settings;

    *s = (struct snapshot){
        .pickler = {.out = out}, .trace = t, .device = d, .policy = policy};
    if (conf && !torch_settings_read(conf, &settings))
        return FRAG_NOMEM;
    s->strings = calloc((size_t)t->string_count + 1, sizeof(*s->strings));
    s->stacks = calloc((size_t)t->stack_count + 1, sizeof(*s->stacks));
    if (!s->strings || !s->stacks || !keep_changes(s, conf)) {
        snapshot_free(s);
        return FRAG_NOMEM;
    }
    pickler_begin(&s->pickler);
    pickler_dict_begin(&s->pickler);
    if (conf)
        put_settings(s, "allocator_settings", conf, &settings);
    put_annotations(s);
    begin_entries(s);
    return FRAG_OK;
}

void snapshot_free(struct snapshot *s)
{
    free(s->strings);
    free(s->stacks);
    free(s->changes);
    free(s->conf);
    s->strings = s->stacks = NULL;
    s->changes = NULL;
    s->conf = NULL;
}

static bool is_segment_action(enum snapshot_word action)
{
    return action >= S_segment_alloc && action <= S_segment_unmap;
}

void snapshot_entry(struct snapshot *s, const struct snapshot_entry *e)
{
    const struct frag_device_trace *d = s->device;
    struct pickler *p = &s->pickler;
    const uint64_t at = e->event < d->count ? e->event : d->count - 1;

    see_changes(s, e->event);
    s->calls += e->action == S_alloc || e->action == S_oom ||
                e->action == S_free_requested;
    pickler_item(p);
    pickler_dict_begin(p);
    put_choice(s, S_action, e->action);
    put_number(s, e->action == S_oom ? S_device_free : S_addr, e->addr);
    put_number(s, S_size, e->size);
    put_number(s, S_stream, d->streams[e->stream]);
    if (d->count && (d->time || s->policy))
        put_number(s, S_time_us, time_of(d, at));
    if (d->pool_count > 1)
        put_pool(s, S_pool_id, e->pool);
    put_stack(s, is_segment_action(e->action) ? FRAG_NEVER : e->event);
    pickler_dict_end(p);
}

void snapshot_segments(struct snapshot *s)
{
    struct pickler *p = &s->pickler;

    pickler_list_end(p, s->outer[1]);
    pickler_list_end(p, s->outer[0]);
    put_key(s, "segments");
    s->outer[0] = pickler_list_begin(p);
}

void snapshot_segment_begin(struct snapshot *s,
                            const struct snapshot_segment *g)
{
    struct pickler *p = &s->pickler;

    pickler_item(p);
    pickler_dict_begin(p);
    put_number(s, S_device, s->device->device);
    put_number(s, S_address, g->addr);
    put_number(s, S_total_size, g->size);
    put_number(s, S_allocated_size, g->allocated);
    put_number(s, S_active_size, g->active);
    put_number(s, S_stream, s->device->streams[g->stream]);
    put_choice(s, S_segment_type, g->is_small ? S_small : S_large);
    put_pool(s, S_segment_pool_id, g->pool);
    put_bool(s, S_is_expandable, g->is_expandable);
    put_stack(s, FRAG_NEVER);
    put_word(s, S_blocks);
    s->outer[1] = pickler_list_begin(p);
}

void snapshot_block(struct snapshot *s, const struct snapshot_block *b)
{
    struct pickler *p = &s->pickler;

    pickler_item(p);
    pickler_dict_begin(p);
    put_number(s, S_address, b->addr);
    put_number(s, S_size, b->size);
    if (b->requested != FRAG_SIZE_UNKNOWN) {
        put_number(s, S_requested_size, b->requested);
        put_stack(s, b->asked);
    }
    put_choice(s, S_state, b->state);
    pickler_dict_end(p);
}

void snapshot_segment_end(struct snapshot *s)
{
    struct pickler *p = &s->pickler;

    pickler_list_end(p, s->outer[1]);
    pickler_dict_end(p);
}

static void put_texts(struct snapshot *s, const char *const *texts,
                      uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        pickler_item(&s->pickler);
        pickler_text(&s->pickler, texts[i]);
    }
}

/* The notes that the file rests on, under a key that PyTorch does not use. */
static void put_origin(struct snapshot *s, const struct export_notes *notes)
{
    struct pickler *p = &s->pickler;
    uint64_t outer;

    put_key(s, "fragsim");
    pickler_dict_begin(p);
    put_key(s, "version");
    pickler_text(p, frag_version);
    put_key(s, "shows");
    pickler_text(p, s->policy ? s->policy : "the recorded allocator");
    put_key(s, "trace");
    pickler_text(p, s->trace->path);
    put_key(s, "sha256");
    pickler_text(p, s->trace->sha256);
    put_key(s, "notes");
    outer = pickler_list_begin(p);
    put_texts(s, s->trace->notes, s->trace->note_count);
    put_texts(s, (const char *const *)notes->items, notes->count);
    pickler_list_end(p, outer);
    pickler_dict_end(p);
}

static void put_change(struct snapshot *s, uint64_t k)
{
    const struct frag_setting_change *x = &s->device->changes[k];
    const struct frag_trace *t = s->trace;
    struct pickler *p = &s->pickler;

    pickler_item(p);
    pickler_dict_begin(p);
    put_number(s, S_device, s->device->device);
    put_key(s, x->kind == FRAG_CHANGE_SETTINGS ? "settings" : "limit");
    if (x->kind == FRAG_CHANGE_SETTINGS)
        put_string(s, x->text);
    else
        pickler_number(p, x->limit);
    put_key(s, "calls_after");
    pickler_number(p, s->calls - s->changes[k]);
    put_number(s, S_time_us, x->time / 1000);
    put_word(s, S_frames);
    put_frames(s, x->stack ? t->stack_first[x->stack] : 0,
               x->stack ? t->stack_first[x->stack + 1] : 0);
    pickler_dict_end(p);
}

static void put_changes(struct snapshot *s)
{
    struct torch_settings settings;
    uint64_t outer;

    see_changes(s, UINT64_MAX);
    if (!s->changes || !torch_settings_read(s->conf, &settings))
        return;
    put_settings(s, "fragsim_start", s->conf, &settings);
    put_key(s, "fragsim_settings");
    outer = pickler_list_begin(&s->pickler);
    for (uint64_t k = 0; k < s->device->change_count; k++)
        put_change(s, k);
    pickler_list_end(&s->pickler, outer);
}

void snapshot_end(struct snapshot *s, const struct export_notes *notes)
{
    struct pickler *p = &s->pickler;

    pickler_list_end(p, s->outer[0]);
    put_changes(s);
    put_origin(s, notes);
    pickler_dict_end(p);
    pickler_end(p);
}
