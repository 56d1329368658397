/* poll.c - reads the memory of a replay as a monitor would. */
#include "sim/answers/check/poll.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"

const char *const poll_signal_names[POLL_SIGNALS] = {"allocated", "reserved"};

/* -- the memory over time ------------------------------------------------ */

static enum frag_err check_times(const struct input *in, struct frag_error *e)
{
    const struct frag_device_trace *d = in->device;

    FRAG_TRY(input_has_history(in, e));
    if (!d->time || d->time[d->count - 1] <= d->time[d->initial])
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: device %" PRIu32
                         ": expected the times of the events, which decide "
                         "what a monitor sees, found none; snapshots of "
                         "PyTorch have them",
                         in->trace->path, d->device);
    return FRAG_OK;
}

static enum frag_err make_room(uint64_t count, struct poll_series *p,
                               struct frag_error *e)
{
    p->at = malloc(count * sizeof(*p->at));
    for (size_t s = 0; s < POLL_SIGNALS; s++)
        p->readings[s] = malloc(count * sizeof(*p->readings[s]));
    if (!p->at || !p->readings[POLL_ALLOCATED] || !p->readings[POLL_RESERVED])
        return frag_no_memory(e, "the memory over time");
    return FRAG_OK;
}

static void add_point(struct poll_series *p, const struct frag_point *point)
{
    const uint64_t i = p->count++;

    p->at[i] = point->time;
    p->readings[POLL_ALLOCATED][i] = point->allocated;
    p->readings[POLL_RESERVED][i] = point->reserved;
    if (point->allocated_max > p->peak[POLL_ALLOCATED])
        p->peak[POLL_ALLOCATED] = point->allocated_max;
    if (point->reserved_max > p->peak[POLL_RESERVED])
        p->peak[POLL_RESERVED] = point->reserved_max;
}

static enum frag_err keep(const struct frag_device_trace *d,
                          const struct frag_run *run, struct poll_series *p,
                          struct frag_error *e)
{
    FRAG_TRY(make_room(run->point_count, p, e));
    for (uint64_t i = d->initial; i < run->point_count; i++)
        add_point(p, &run->points[i]);
    p->died = run->summary.num_ooms > 0;
    if (p->died)
        p->death = d->time[run->summary.first_oom_event];
    return FRAG_OK;
}

enum frag_err poll_open(const struct replay_settings *s, const struct input *in,
                        frag_size capacity, struct poll_series *out,
                        struct frag_error *e)
{
    struct poll_series p = {.capacity = capacity};
    struct frag_run run;
    enum frag_err err;

    FRAG_TRY(check_times(in, e));
    FRAG_TRY(replayed_run(s, in, capacity == FRAG_UNLIMITED ? 0 : capacity,
                          in->device->count, &run, e));
    err = keep(in->device, &run, &p, e);
    frag_run_free(&run);
    if (err == FRAG_OK)
        *out = p;
    else
        poll_close(&p);
    return err;
}

void poll_close(struct poll_series *p)
{
    free(p->at);
    p->at = NULL;
    for (size_t s = 0; s < POLL_SIGNALS; s++) {
        free(p->readings[s]);
        p->readings[s] = NULL;
    }
    p->count = 0;
}

/* -- a monitor ----------------------------------------------------------- */

/* One beginning of a monitor. */
struct monitor {
    frag_time first, period;
    double threshold; /* bytes */
    frag_size most;
    frag_time warning; /* FRAG_NEVER: none */
};

/* The first reading at or after a time. */
static frag_time reading_after(const struct monitor *m, frag_time time)
{
    if (time <= m->first)
        return m->first;
    return m->first + (time - m->first + m->period - 1) / m->period * m->period;
}

static void look(const struct poll_series *p, enum poll_signal signal,
                 struct monitor *m)
{
    for (uint64_t i = 0; i < p->count; i++) {
        const frag_time at = reading_after(m, p->at[i]);
        const frag_time end = i + 1 < p->count ? p->at[i + 1] : p->at[i] + 1;
        const frag_size value = p->readings[signal][i];

        if (at >= end)
            continue;
        if (value > m->most)
            m->most = value;
        if (m->warning == FRAG_NEVER && (double)value >= m->threshold)
            m->warning = at;
    }
}

static void add_warning(const struct poll_series *p, const struct monitor *m,
                        struct poll_seen *seen)
{
    frag_time lead;

    if (!p->died || m->warning >= p->death)
        return;
    lead = p->death - m->warning;
    if (!seen->warned || lead < seen->shortest)
        seen->shortest = lead;
    if (lead > seen->longest)
        seen->longest = lead;
    seen->warned++;
}

struct poll_seen poll_see(const struct poll_series *p, enum poll_signal signal,
                          frag_time period, double threshold)
{
    struct poll_seen seen = {.signal = signal,
                             .period = period,
                             .peak = p->peak[signal],
                             .least = UINT64_MAX};

    for (unsigned i = 0; i < POLL_PHASES; i++) {
        const double share = (double)i / POLL_PHASES;
        struct monitor m = {
            .first = p->at[0] + (frag_time)(share * (double)period),
            .period = period,
            .threshold = p->capacity == FRAG_UNLIMITED
                             ? (double)INFINITY
                             : threshold * (double)p->capacity,
            .warning = FRAG_NEVER,
        };

        look(p, signal, &m);
        seen.least = m.most < seen.least ? m.most : seen.least;
        seen.most = m.most > seen.most ? m.most : seen.most;
        seen.whole += m.most == seen.peak;
        add_warning(p, &m, &seen);
    }
    return seen;
}

/* -- texts --------------------------------------------------------------- */

static const struct {
    const char *unit;
    double ns;
} units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};

static bool read_period(const char *text, size_t length, frag_time *out)
{
    char *end;
    const double number = strtod(text, &end);
    const size_t rest = (size_t)(text + length - end);

    for (size_t i = 0; end != text && i < sizeof(units) / sizeof(*units); i++)
        if (rest == strlen(units[i].unit) &&
            !strncmp(end, units[i].unit, rest) &&
            number * units[i].ns >= 1000 && number * units[i].ns < 0x1p62) {
            *out = (frag_time)(number * units[i].ns);
            return true;
        }
    return false;
}

enum frag_err poll_periods_read(const char *text, frag_time **out,
                                size_t *count, struct frag_error *e)
{
    size_t room = 0;

    *out = NULL;
    *count = 0;
    for (;;) {
        const size_t length = strcspn(text, ",");

        if (!GROW(*out, room, *count + 1))
            return frag_no_memory(e, "the periods");
        if (!read_period(text, length, &(*out)[*count]))
            return frag_fail(e, FRAG_INVALID,
                             "--poll: expected periods of at least 1us such as "
                             "100ms,1s (units are us, ms, s and min), found "
                             "\"%.40s\"",
                             text);
        ++*count;
        if (!text[length])
            return FRAG_OK;
        text += length + 1;
    }
}

static double seconds(bool known, frag_time ns)
{
    return known ? (double)ns / 1e9 : (double)NAN;
}

void poll_json(struct frag_json *j, const struct poll_series *p,
               const struct poll_seen *seen)
{
    const bool warned = seen->warned > 0;

    frag_json_text(j, "signal", poll_signal_names[seen->signal]);
    frag_json_real(j, "period_seconds", seconds(true, seen->period));
    frag_json_number(j, "peak_bytes", seen->peak);
    frag_json_number(j, "least_seen_bytes", seen->least);
    frag_json_number(j, "most_seen_bytes", seen->most);
    frag_json_real(j, "peak_seen_ratio", (double)seen->whole / POLL_PHASES);
    frag_json_bool(j, "oom", p->died);
    frag_json_real(j, "warned_ratio",
                   p->died ? (double)seen->warned / POLL_PHASES : (double)NAN);
    frag_json_real(j, "shortest_lead_seconds", seconds(warned, seen->shortest));
    frag_json_real(j, "longest_lead_seconds", seconds(warned, seen->longest));
}
