/* found.c - see found.h. A place is the number of requests before it: settings
 * matter to requests only, and the reader may infer other events under other
 * settings. */
#include "sim/experiments/found.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/validate/validate.h"
#include "traces/binary_search.h"
#include "traces/text.h"
#include "traces/torch_sizes.h"

/* The last two decide what the reader infers. */
enum key { KEY_PAGES, KEY_SPLIT, KEY_ROUND, KEY_GC, KEY_LIMIT };
static const char *const keys[] = {
    "expandable_segments", "max_split_size_mb", "roundup_power2_divisions",
    "garbage_collection_threshold", "memory limit"};

enum {
    STEPS = 32,   /* at most, with those that the reader found */
    GUESSES = 40, /* for a difference, at most */
    VALUE = 160,
    TEXT = KEY_LIMIT * (VALUE + 40),
};
/* Events that are replayed, at most, and as how many an event counts that is
 * read again. */
static const uint64_t work_most = 80000000, work_to_read = 25;

/* A setting from a place on. */
struct step {
    uint64_t place;
    enum key key;
    const char *value; /* "": the default */
    frag_size limit;   /* of KEY_LIMIT; FRAG_UNLIMITED: none */
};

struct steps {
    struct step rows[STEPS + 1]; /* by place */
    size_t count;
};

struct moment {
    char value[KEY_LIMIT][VALUE];
    frag_size limit; /* 0: not known */
};

/* The changes of the steps, for the reader. */
struct list {
    struct frag_found_change rows[2 * STEPS];
    char texts[2 * STEPS][TEXT];
    size_t count;
    frag_size limit; /* that never changes; 0: not known */
};

struct finding {
    const char *path;
    const struct frag_read_options *options;
    const struct frag_trace *trace; /* as it was read */
    const struct frag_device_trace *device;
    uint64_t *places;         /* of each event, and of the end */
    struct moment start, end; /* as it was read */
    char *settings; /* those of the start, for a policy that follows changes */
    struct steps steps;
    struct list list;
    uint64_t work; /* left */
    bool is_full;  /* the device refused memory, so no limit did */
    struct frag_error *e;
    enum frag_err err;
};

/* ---- places ---- */

static uint64_t *list_places(const struct frag_device_trace *d)
{
    uint64_t *out = malloc((d->count + 1) * sizeof(*out)), place = 0;

    for (uint64_t i = 0; out && i <= d->count; i++) {
        out[i] = place;
        place += i < d->count && d->op[i] == FRAG_ALLOC;
    }
    return out;
}

/* The first event of a place; its last event is the request. */
static uint64_t event_of(const struct frag_device_trace *d,
                         const uint64_t *places, uint64_t place)
{
    uint64_t at;

    SEARCH(at, d->count, row, places[row] < place);
    return at;
}

/* ---- steps ---- */

static void read_values(const char *conf, struct moment *m)
{
    for (unsigned k = 0; k < KEY_LIMIT; k++) {
        const char *value = torch_value_of(conf, keys[k]);

        snprintf(m->value[k], VALUE, "%.*s",
                 value ? (int)torch_item_length(value) : 0, value ? value : "");
    }
    if (!*m->value[KEY_PAGES])
        strcpy(m->value[KEY_PAGES], "False");
}

static bool same(const struct moment *a, const struct moment *b)
{
    bool is_same = true;

    for (unsigned k = 0; k < KEY_LIMIT; k++)
        is_same &= !strcmp(a->value[k], b->value[k]);
    return is_same;
}

/* Makes a step of the moment after it. */
static void take(struct moment *m, const struct step *x)
{
    if (x->key == KEY_LIMIT)
        m->limit = x->limit;
    else
        snprintf(m->value[x->key], VALUE, "%s", x->value);
}

/* The steps with one more, which replaces one of its key at its place. */
static struct steps with(const struct steps *s, struct step x)
{
    struct steps out = {.count = 0};
    size_t i = 0;

    for (; i < s->count && s->rows[i].place <= x.place; i++)
        if (s->rows[i].place != x.place || s->rows[i].key != x.key)
            out.rows[out.count++] = s->rows[i];
    out.rows[out.count++] = x;
    for (; i < s->count && out.count < STEPS; i++)
        out.rows[out.count++] = s->rows[i];
    return out;
}

/* The steps with this one in place of step k. */
static struct steps instead(struct steps s, size_t k, struct step x)
{
    s.count--;
    memmove(&s.rows[k], &s.rows[k + 1], (s.count - k) * sizeof(*s.rows));
    return with(&s, x);
}

/* Adds what changes at a place after `before`. */
static void list_add(struct finding *f, uint64_t place,
                     const struct moment *now, const struct moment *before)
{
    struct list *l = &f->list;
    char *text = l->texts[l->count];
    struct frag_found_change row = {.device = f->device->device,
                                    .after =
                                        f->places[f->device->count] - place,
                                    .limit = now->limit};

    if (!same(now, before)) {
        row.text = text;
        *text = '\0';
        for (unsigned k = 0; k < KEY_LIMIT; k++)
            if (*now->value[k])
                text_add(text, TEXT, ",", "%s:%s", keys[k], now->value[k]);
        l->rows[l->count++] = row;
    }
    row.text = NULL;
    if (now->limit != before->limit && !l->limit)
        l->rows[l->count++] = row;
}

/* Lists the changes of the steps, before which `before` holds. */
static void list_steps(struct finding *f, const struct steps *s,
                       struct moment before)
{
    struct moment now = f->start;
    uint64_t place = f->device->initial;
    bool changes = false;
    size_t i = 0;

    for (size_t k = 0; k < s->count; k++)
        changes |= s->rows[k].key == KEY_LIMIT && s->rows[k].place > place;
    f->list.count = f->list.limit = 0;
    for (;;) {
        for (; i < s->count && s->rows[i].place <= place; i++)
            take(&now, &s->rows[i]);
        if (!changes)
            f->list.limit = now.limit;
        list_add(f, place, &now, &before);
        before = now;
        if (i == s->count)
            return;
        place = s->rows[i].place;
    }
}

/* ---- the judge ---- */

/* The place where a replay first differs from the recording; UINT64_MAX:
 * nowhere; 0 after an error. */
static uint64_t judge(struct finding *f, const struct frag_trace *t,
                      const struct frag_device_trace *d,
                      struct frag_validation *out)
{
    const struct frag_validate spec = {
        .trace = t, .device = d, .limit = t->limit};
    struct frag_validation v;
    uint64_t place = 0;

    f->work -= f->work < d->count ? f->work : d->count;
    if (frag_validate(&spec, &v, f->e) != FRAG_OK)
        return 0;
    for (uint64_t i = 0; v.first.found && i < v.first.event; i++)
        place += d->op[i] == FRAG_ALLOC;
    frag_validation_free(&v);
    if (out)
        *out = v;
    return v.first.found ? place : UINT64_MAX;
}

/* Judges the listed changes on the events as they were read. */
static uint64_t judge_here(struct finding *f)
{
    struct frag_setting_change changes[2 * STEPS];
    const char *texts[2 * STEPS];
    struct frag_trace t = *f->trace;
    struct frag_device_trace d = *f->device;

    for (size_t i = 0; i < f->list.count; i++) {
        changes[i] = (struct frag_setting_change){
            .event = event_of(&d, f->places,
                              f->places[d.count] - f->list.rows[i].after),
            .text = (uint32_t)i};
        texts[i] = f->list.rows[i].text;
    }
    t.settings = f->settings;
    d.changes = changes;
    d.change_count = f->list.count;
    d.strings = texts;
    return judge(f, &t, &d, NULL);
}

/* Reads the snapshot with the listed changes. */
static enum frag_err read_again(const struct finding *f,
                                struct frag_trace **out)
{
    struct frag_read_options options = *f->options;

    options.found = f->list.rows;
    options.found_count = f->list.count;
    if (f->list.limit)
        options.limit = f->list.limit;
    FRAG_TRY(frag_trace_open(f->path, &options, out, f->e));
    (*out)->limit = options.limit;
    return FRAG_OK;
}

static uint64_t judge_read(struct finding *f)
{
    const uint64_t work = f->device->count * work_to_read;
    struct frag_trace *t;
    uint64_t place;

    f->work -= f->work < work ? f->work : work;
    f->err = read_again(f, &t);
    if (f->err != FRAG_OK)
        return 0;
    place = judge(f, t, frag_trace_device(t, f->device->device), NULL);
    frag_trace_close(t);
    return place;
}

/* How far a replay with these steps is exact. */
static uint64_t reach(struct finding *f, const struct steps *s)
{
    const struct frag_read_options *o = f->options;
    bool reads = false;

    if (f->err == FRAG_OK && o->progress && o->progress(o->user, 0, 0))
        f->err = frag_fail(f->e, FRAG_CANCELLED, "%s: cancelled", f->path);
    if (f->err != FRAG_OK || !f->work || s->count == STEPS)
        return 0;
    for (size_t i = 0; i < s->count; i++)
        reads |= s->rows[i].key >= KEY_GC;
    list_steps(f, s, reads ? f->end : f->start);
    return reads ? judge_read(f) : judge_here(f);
}

static uint64_t reach_with(struct finding *f, struct step x)
{
    const struct steps s = with(&f->steps, x);

    return reach(f, &s);
}

/* Whether the replay is exact with this step in place of step k. */
static bool is_exact(struct finding *f, size_t k, struct step x)
{
    const struct steps s = instead(f->steps, k, x);

    return reach(f, &s) == UINT64_MAX;
}

/* ---- guesses ---- */

struct guesses {
    struct step rows[GUESSES];
    size_t count;
};

static void guess(struct guesses *g, enum key key, const char *value,
                  frag_size limit)
{
    g->rows[g->count++] =
        (struct step){.key = key, .value = value, .limit = limit};
}

/* Guesses limits if memory was returned at the place, or the request failed:
 * the largest with which it fails at last, and at first, and those around the
 * one from which on garbage is collected. */
static void guess_limits(const struct finding *f, uint64_t place,
                         struct guesses *g)
{
    const struct frag_device_trace *d = f->device;
    const struct frag_recorded *r = &d->recorded;
    const uint64_t request = event_of(d, f->places, place + 1) - 1;
    const frag_size need =
        torch_segment_size(torch_round_size(d->bytes[request], NULL),
                           torch_large_segment_of(f->settings));
    const double threshold = strtod(f->end.value[KEY_GC], NULL);
    frag_size held = 0, before = 0;
    bool lacks = false;

    for (size_t i = 0; i < f->steps.count; i++)
        lacks |= f->steps.rows[i].key >= KEY_GC;
    for (uint64_t i = 0; i < r->start.segment_count; i++)
        before = held += r->start.segments[i].size;
    for (uint64_t i = 0; i < r->action_count; i++) {
        const struct frag_recorded_action *a = &r->actions[i];
        const bool takes =
            a->action == FRAG_SEGMENT_ALLOC || a->action == FRAG_SEGMENT_MAP;

        if (f->places[a->event] > place ||
            (f->places[a->event] == place && takes))
            break;
        if (a->action != FRAG_OOM_REPORTED)
            held += takes ? a->size : -a->size;
        if (f->places[a->event] < place)
            before = held;
        else
            lacks = true;
    }
    if (!lacks || f->is_full)
        return;
    guess(g, KEY_GC, f->end.value[KEY_GC], 0);
    guess(g, KEY_GC, "", 0);
    guess(g, KEY_LIMIT, "", FRAG_UNLIMITED);
    guess(g, KEY_LIMIT, "", held + need - 1);
    guess(g, KEY_LIMIT, "", before + need - 1);
    for (frag_size keep = before - 1; threshold > 0 && keep <= before; keep++)
        guess(g, KEY_LIMIT, "", (frag_size)((double)keep / threshold) + 1);
}

/* The settings that may explain a difference at the place, the likely first. */
static void list_guesses(const struct finding *f, uint64_t place,
                         struct guesses *g)
{
    static const struct {
        enum key key;
        const char *value;
    } rows[] = {{KEY_PAGES, "True"}, {KEY_PAGES, "False"}, {KEY_SPLIT, ""},
                {KEY_ROUND, ""},     {KEY_SPLIT, "20"},    {KEY_SPLIT, "24"},
                {KEY_SPLIT, "32"},   {KEY_SPLIT, "48"},    {KEY_SPLIT, "64"},
                {KEY_SPLIT, "96"},   {KEY_SPLIT, "128"},   {KEY_SPLIT, "192"},
                {KEY_SPLIT, "256"},  {KEY_SPLIT, "384"},   {KEY_SPLIT, "512"},
                {KEY_SPLIT, "1024"}, {KEY_SPLIT, "2048"},  {KEY_ROUND, "2"},
                {KEY_ROUND, "4"},    {KEY_ROUND, "8"},     {KEY_ROUND, "16"},
                {KEY_ROUND, "32"},   {KEY_ROUND, "64"}};

    g->count = 0;
    for (unsigned k = 0; k < KEY_GC; k++)
        guess(g, (enum key)k, f->end.value[k], 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        guess(g, rows[i].key, rows[i].value, 0);
    guess_limits(f, place, g);
}

/* ---- the search ---- */

/* Sets x->place to where the step explains the difference at `to`, from `from`
 * on; returns how far the replay is then exact. A step that is too early
 * contradicts what is before `to`; with one that is too late, `to` differs as
 * before. */
static uint64_t place_step(struct finding *f, struct step *x, uint64_t from,
                           uint64_t to)
{
    uint64_t first, last, low = from, high = to;

    x->place = to;
    last = reach_with(f, *x);
    x->place = from;
    first = reach_with(f, *x);
    if (first > to && first >= last)
        return first;
    x->place = to;
    if (last > to || first == to)
        return last;
    while (high - low > 1) {
        x->place = low + (high - low) / 2;
        last = reach_with(f, *x);
        if (last > to)
            return last;
        if (last < to)
            low = x->place;
        else
            high = x->place;
    }
    return 0;
}

/* Adds the step that explains the difference at *place and reaches farthest,
 * which is then *place. `last` is the step before, and then this one. Returns
 * whether there is one. */
static bool explain(struct finding *f, frag_size limit, uint64_t *place,
                    struct step *last)
{
    const uint64_t from = last->place, to = *place;
    struct guesses g;

    list_guesses(f, to, &g);
    if (limit)
        guess(&g, KEY_LIMIT, "", limit);
    for (size_t i = 0; i < g.count; i++) {
        struct step x = g.rows[i];
        const uint64_t far = place_step(f, &x, from, to);

        if (far <= *place)
            continue;
        *place = far;
        *last = x;
    }
    if (*place > to)
        f->steps = with(&f->steps, *last);
    return *place > to;
}

/* Adds what the snapshot tells: the settings of its end. */
static void come_to_end(struct finding *f)
{
    struct moment now = f->start;

    for (size_t i = 0; i < f->steps.count; i++)
        take(&now, &f->steps.rows[i]);
    for (unsigned k = 0; k < KEY_LIMIT; k++)
        if (strcmp(now.value[k], f->end.value[k]))
            f->steps = with(&f->steps,
                            (struct step){.place = f->places[f->device->count],
                                          .key = (enum key)k,
                                          .value = f->end.value[k]});
}

/* The place farthest towards `to` at which step k may lie. */
static uint64_t farthest(struct finding *f, size_t k, uint64_t to)
{
    struct step x = f->steps.rows[k];
    uint64_t good = x.place, bad = to;

    x.place = to;
    if (is_exact(f, k, x))
        return to;
    while (good + 1 < bad || bad + 1 < good) {
        x.place = good < bad ? good + (bad - good) / 2 : bad + (good - bad) / 2;
        if (is_exact(f, k, x))
            good = x.place;
        else
            bad = x.place;
    }
    return good;
}

/* Sets the places between which step k may lie, and the next step of its key,
 * or the count. */
static void find_interval(struct finding *f, size_t k, uint64_t *low,
                          uint64_t *high, size_t *next)
{
    const struct steps *s = &f->steps;

    *low = f->device->initial;
    for (size_t i = 0; i < k; i++)
        if (s->rows[i].key == s->rows[k].key)
            *low = s->rows[i].place + 1;
    for (*next = k + 1; *next < s->count; ++*next)
        if (s->rows[*next].key == s->rows[k].key)
            break;
    *high = *next < s->count ? s->rows[*next].place - 1
                             : f->places[f->device->count];
    *low = farthest(f, k, *low);
    *high = farthest(f, k, *high);
}

/* Whether a step matters to one request alone. That is no evidence of two
 * changes: an entry may be lost, or a block moved. */
static bool is_weak(struct finding *f)
{
    const struct steps found = f->steps;
    bool weak = false;

    for (size_t k = 0; k < found.count && !weak; k++) {
        struct step x = found.rows[k];
        uint64_t low;
        size_t next;

        if (x.key == KEY_PAGES || x.key == KEY_LIMIT)
            continue;
        find_interval(f, k, &low, &x.place, &next);
        if (next == found.count)
            continue;
        f->steps = instead(f->steps, k, x);
        x = found.rows[next];
        x.place = f->steps.rows[k].place + 1;
        weak = is_exact(f, next, x);
        f->steps = found;
    }
    return weak;
}

/* Finds steps with which the replay is exact. */
static bool search(struct finding *f)
{
    struct frag_validation v = {.verdict = FRAG_VERDICT_NO_EVIDENCE};
    uint64_t place = judge(f, f->trace, f->device, &v);
    struct step last = {.place = f->device->initial};

    if (v.verdict != FRAG_VERDICT_DIFFERS)
        return false;
    f->is_full = v.limit.source == FRAG_LIMIT_DEVICE;
    while (place != UINT64_MAX)
        if (!explain(f,
                     v.limit.source == FRAG_LIMIT_INFERRED ? v.limit.limit : 0,
                     &place, &last))
            return false;
    come_to_end(f);
    return !is_weak(f);
}

/* ---- what was found ---- */

static const char *step_words(const struct step *x, char text[VALUE + 40])
{
    const bool is_set =
        x->key == KEY_LIMIT ? x->limit != FRAG_UNLIMITED : *x->value != '\0';

    snprintf(text, VALUE + 40, "%s%s%s%s", is_set ? "" : "no ", keys[x->key],
             !is_set               ? ""
             : x->key == KEY_LIMIT ? " such as "
                                   : ":",
             !is_set               ? ""
             : x->key == KEY_LIMIT ? FRAG_SHOW_SIZE(x->limit)
                                   : x->value);
    return text;
}

/* Notes where step k may lie, in events of the device d, and the settings that
 * explain the recording as well, unless it is one of the end. */
static enum frag_err note_step(struct finding *f, size_t k,
                               struct frag_trace *t,
                               const struct frag_device_trace *d,
                               const uint64_t *places)
{
    const struct step *x = &f->steps.rows[k];
    char text[TEXT], words[VALUE + 40];
    uint64_t low, high;
    struct guesses g;
    size_t next, any = 0;

    snprintf(text, TEXT,
             "%s: the replay shows what the snapshot does not tell: %s from ",
             FRAG_DEVICE_NAME(d->device), step_words(x, words));
    find_interval(f, k, &low, &high, &next);
    if (x->place > d->initial)
        text_add(text, TEXT, "", "one of the events %" PRIu64 " to %" PRIu64,
                 event_of(d, places, low),
                 event_of(d, places, high + 1) - (high < places[d->count]));
    else
        text_add(text, TEXT, "",
                 "the start, or at the latest from event %" PRIu64,
                 event_of(d, places, high + 1) - (high < places[d->count]));
    text_add(text, TEXT, " ", "on");
    list_guesses(f, x->place, &g);
    for (size_t i = 0; i < g.count; i++) {
        struct step y = g.rows[i];
        const bool is_end =
            x->key < KEY_LIMIT && !strcmp(x->value, f->end.value[x->key]);

        y.place = x->place;
        if (!is_end && y.key != KEY_LIMIT &&
            (y.key != x->key || strcmp(y.value, x->value)) && is_exact(f, k, y))
            text_add(text, TEXT, any++ ? ", " : "; ambiguous, as well: ", "%s",
                     step_words(&y, words));
    }
    return frag_trace_note(t, text, f->e);
}

/* Replaces the trace by one that is read with the steps, if that is exact. */
static enum frag_err take_found(struct finding *f, struct frag_trace **t)
{
    const struct frag_device_trace *d;
    struct frag_trace *found;
    uint64_t *places = NULL;
    enum frag_err err;

    list_steps(f, &f->steps, f->end);
    FRAG_TRY(read_again(f, &found));
    d = frag_trace_device(found, f->device->device);
    err = f->err;
    if (judge(f, found, d, NULL) == UINT64_MAX)
        places = list_places(d);
    for (size_t k = 0; places && err == FRAG_OK && k < f->steps.count; k++)
        err = note_step(f, k, found, d, places);
    if (places && err == FRAG_OK) {
        frag_trace_close(*t);
        *t = found;
    } else {
        frag_trace_close(found);
    }
    free(places);
    return err;
}

/* Prepares the search; false: no memory, or too many changes. */
static bool begin(struct finding *f)
{
    const struct frag_device_trace *d = f->device;
    const char *conf = f->trace->settings;
    const bool follows = torch_is_followed(conf);

    f->settings = text_make("%s%s%s", follows ? "" : TORCH_FOLLOWS_KEY ":True",
                            follows || !*conf ? "" : ",", conf);
    f->places = list_places(d);
    f->work = work_most;
    read_values(conf, &f->start);
    f->end = f->start;
    for (uint64_t i = 0; f->places && i < d->change_count && i < STEPS; i++) {
        const char *now = d->strings[d->changes[i].text];
        const bool is_on = strstr(now, "expandable_segments:True") != NULL;

        read_values(now, &f->end);
        f->steps = with(&f->steps,
                        (struct step){.place = f->places[d->changes[i].event],
                                      .key = KEY_PAGES,
                                      .value = is_on ? "True" : "False"});
    }
    return f->settings && f->places && d->change_count < STEPS / 2;
}

/* The device of the snapshot, if it can be read again and lacks its changes;
 * NULL: it cannot, or several devices were used. */
static const struct frag_device_trace *used_device(const char *path,
                                                   const struct frag_trace *t)
{
    const struct frag_device_trace *used = NULL;
    struct stat about;

    if (!frag_trace_is_snapshot(t) || !t->settings || stat(path, &about) ||
        !S_ISREG(about.st_mode))
        return NULL;
    for (uint32_t i = 0; i < t->device_count; i++) {
        const struct frag_device_trace *d = &t->devices[i];

        if ((d->change_count && d->changes->origin != FRAG_CHANGE_FOUND) ||
            (used && d->device != FRAG_HOST_DEVICE && d->count))
            return NULL;
        if (d->device != FRAG_HOST_DEVICE && d->recorded.action_count)
            used = d;
    }
    return used;
}

enum frag_err found_changes(const char *path,
                            const struct frag_read_options *options,
                            struct frag_trace **t, struct frag_error *e)
{
    const struct frag_device_trace *d = used_device(path, *t);
    struct finding *f = d ? calloc(1, sizeof(*f)) : NULL;
    enum frag_err err;

    if (!f)
        return d ? frag_no_memory(e, "the changes of settings") : FRAG_OK;
    f->path = path;
    f->options = options;
    f->trace = *t;
    f->device = d;
    f->e = e;
    if (begin(f) && search(f))
        f->err = take_found(f, t);
    err = f->err;
    free(f->settings);
    free(f->places);
    free(f);
    return err;
}
