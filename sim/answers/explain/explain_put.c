/* explain_put.c - writes an explanation as text and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "sim/answers/explain/explain_parts.h"
#include "sim/answers/sites.h"
#include "traces/printable.h"
#include "traces/torch_sizes.h"

enum { PINS_SHOWN = 10, SPACES_SHOWN = 20 };

static const char *const limit_words[] = {
    [EXPLAIN_LIMIT_NONE] = "none",
    [EXPLAIN_LIMIT_GIVEN] = "given",
    [EXPLAIN_LIMIT_DEVICE] = "device",
    [EXPLAIN_LIMIT_INFERRED] = "inferred",
    [EXPLAIN_LIMIT_CAPACITY] = "capacity",
    [EXPLAIN_LIMIT_PROCESS] = "process_limit",
};

static const char *const limit_texts[] = {
    [EXPLAIN_LIMIT_NONE] = "none is known",
    [EXPLAIN_LIMIT_GIVEN] = "of the recorded process",
    [EXPLAIN_LIMIT_DEVICE] = "reserved, and what could be had of the device",
    [EXPLAIN_LIMIT_INFERRED] =
        ("the device had enough free memory, so the "
         "process had a limit; --recorded-limit states it"),
    [EXPLAIN_LIMIT_CAPACITY] = "of --capacity: the driver refuses",
    [EXPLAIN_LIMIT_PROCESS] = "of --process-limit: the allocator refuses",
};

/* ---- text ---- */

static void put_size(FILE *out, const char *label, frag_size size,
                     const char *after)
{
    fprintf(out, "  %-14s %11s%s%s\n", label, FRAG_SHOW_SIZE(size),
            *after ? "  " : "", after);
}

static const char *pool_name(const struct explain *x, frag_pool pool,
                             char text[FRAG_POOL_NAME])
{
    return frag_pool_name(x->trace, x->device, pool, text);
}

static void put_request(const struct explain *x, FILE *out)
{
    char site[SITE_TEXT], pool[FRAG_POOL_NAME];

    if (!x->failed) {
        fputs(!x->replayed
                  ? "the file has no history: whether a request failed is not "
                    "known; the state of the snapshot\n"
              : !recording_tells(x->device)
                  ? "too little was recorded to tell whether a request failed; "
                    "the state after the last event\n"
                  : "no request failed; the state after the last event "
                    "(--capacity SIZE explains the first failure on a device "
                    "of that size)\n",
              out);
        return;
    }
    fprintf(out,
            "failed request: %s (a new segment of %s) at event %" PRIu64
            ", stream %" PRIu32 ", %s\n",
            FRAG_SHOW_SIZE(x->request), FRAG_SHOW_SIZE(x->segment), x->event,
            (uint32_t)x->stream, pool_name(x, x->pool, pool));
    if (x->stack)
        printable_line(out, "  requested by %s",
                       site_text(x->trace, x->stack, site));
    else
        fprintf(out, "  requested by: no %s\n",
                x->device->stack ? "stack of this request was recorded"
                                 : "stacks were recorded");
    if (x->ooms > 1)
        fprintf(out,
                "  %" PRIu64 " requests failed before it, and the program "
                "went on\n",
                x->ooms - 1);
    if (!x->reproduced)
        fputs("  no fixed limit repeats the recorded failure: the memory that "
              "the process could use changed\n",
              out);
}

static void put_cause(const struct explain *x, FILE *out)
{
    const bool died = x->limit_source < EXPLAIN_LIMIT_CAPACITY &&
                      frag_fatal_request(x->device) == x->event;
    char site[SITE_TEXT];

    if (!x->failed)
        return;
    fprintf(out, "the %s because %s (%s)\n  %s\n",
            died ? "job died" : "request failed",
            explain_cause_phrases[x->cause], explain_cause_words[x->cause],
            x->evidence);
    if (x->cause == EXPLAIN_GROWTH && x->grown_stack)
        printable_line(out, "  most of them are allocated by %s",
                       site_text(x->trace, x->grown_stack, site));
}

/* What the private pools hold, which requests of other pools do not get. */
static void put_private(const struct explain *x, FILE *out)
{
    frag_size reserved = 0, cached = 0;
    char text[64 + FRAG_SIZE_TEXT];

    for (uint64_t i = 0; i < x->space_count; i++)
        if (x->spaces[i].pool) {
            reserved += x->spaces[i].reserved;
            cached += x->spaces[i].cached;
        }
    snprintf(text, sizeof(text), "of it, %s free for requests of these alone",
             FRAG_SHOW_SIZE(cached));
    if (reserved)
        put_size(out, "private pools", reserved, text);
}

static void put_totals(const struct explain *x, FILE *out)
{
    char text[64 + FRAG_SIZE_TEXT], limit[2 * FRAG_SIZE_TEXT];

    fputs("memory\n", out);
    if (x->bound.bytes != FRAG_UNLIMITED)
        fprintf(out, "  %-14s %11s  %s\n", frag_bound_words[x->bound.kind],
                cause_limit(x, limit), limit_texts[x->limit_source]);
    if (x->device_free != FRAG_UNLIMITED)
        put_size(out, "device free", x->device_free,
                 "as the failure reported it");
    if (x->outside)
        put_size(out, "outside", x->outside,
                 "held outside PyTorch's allocator");
    put_size(out, "reserved", x->reserved, "");
    put_size(out, "live", x->live, "");
    put_size(out, "pending", x->pending,
             x->pending ? "freed, but another stream still uses it" : "");
    snprintf(text, sizeof(text), "in %" PRIu64 " hole%s, the largest %s",
             x->holes, x->holes == 1 ? "" : "s", FRAG_SHOW_SIZE(x->largest));
    put_size(out, "cached", x->cached, text);
    put_private(x, out);
    if (x->bound.bytes != FRAG_UNLIMITED)
        put_size(out, "not reserved", x->unreserved,
                 x->limit_least < x->limit_most ? "at most" : "");
}

static void put_spaces(const struct explain *x, FILE *out)
{
    fputs("by pool and stream\n"
          "  pool          stream  blocks  segments      reserved          "
          "live       pending        cached  largest hole\n",
          out);
    for (uint64_t i = 0; i < x->space_count && i < SPACES_SHOWN; i++) {
        const struct explain_space *s = &x->spaces[i];
        char pool[FRAG_POOL_NAME];

        fprintf(out,
                "  %-12s  %6" PRIu32 "  %6s  %8" PRIu64
                "  %12s  %12s  %12s  %12s  %12s\n",
                pool_name(x, s->pool, pool), (uint32_t)s->stream,
                s->is_small ? "small" : "large", s->segments,
                FRAG_SHOW_SIZE(s->reserved), FRAG_SHOW_SIZE(s->live),
                FRAG_SHOW_SIZE(s->pending), FRAG_SHOW_SIZE(s->cached),
                FRAG_SHOW_SIZE(s->largest));
    }
    if (x->space_count > SPACES_SHOWN)
        fprintf(out, "  and %" PRIu64 " more\n", x->space_count - SPACES_SHOWN);
}

static void put_pin(const struct explain *x, const struct explain_pin *p,
                    FILE *out)
{
    char site[SITE_TEXT], age[96] = ", allocated before the recording";
    char time[32], pool[FRAG_POOL_NAME];

    snprintf(time, sizeof(time), ", %.3f s", (double)p->lifetime / 1e9);
    if (p->event != UINT64_MAX)
        snprintf(age, sizeof(age), ", allocated %" PRIu64 " events%s before",
                 x->event - p->event, p->lifetime ? time : "");
    printable_line(out,
                   "  %s free of %s (stream %" PRIu32 ", %s): %" PRIu64
                   " block%s %s%s%s%s",
                   FRAG_SHOW_SIZE(p->cached), FRAG_SHOW_SIZE(p->size),
                   (uint32_t)p->stream, pool_name(x, p->pool, pool), p->blocks,
                   p->blocks == 1 ? " of" : "s, the largest",
                   FRAG_SHOW_SIZE(p->bytes), age, p->stack ? ", " : "",
                   p->stack ? site_text(x->trace, p->stack, site) : "");
}

static void put_pins(const struct explain *x, FILE *out)
{
    if (!x->pin_count)
        return;
    fprintf(out,
            "pinned: %" PRIu64 " segment%s more than 80 %% free and kept by "
            "a block\n",
            x->pin_count, x->pin_count == 1 ? "" : "s");
    for (uint64_t i = 0; i < x->pin_count && i < PINS_SHOWN; i++)
        put_pin(x, &x->pins[i], out);
    if (x->pin_count > PINS_SHOWN)
        fprintf(out, "  and %" PRIu64 " more\n", x->pin_count - PINS_SHOWN);
}

/* Whether the request that fails was not recorded. */
static bool is_predicted(const struct explain *x,
                         const struct explain_change *c)
{
    return c->result == EXPLAIN_FAILS && x->completion.reach &&
           c->fails_at > x->completion.event;
}

/* Which of the requests fails. */
static const char *result_text(const struct explain *x,
                               const struct explain_change *c)
{
    if (c->result != EXPLAIN_FAILS)
        return explain_result_words[c->result];
    if (c->fails_at <= x->event)
        return c->fails_at == x->event ? "fails at the request"
                                       : "fails before the request";
    return is_predicted(x, c) ? "fails in a predicted step"
                              : "fails after the request";
}

static void put_scope(const struct explain *x, FILE *out)
{
    const struct frag_completion *c = &x->completion;

    fputs("changes, each replayed ", out);
    if (c->reach == FRAG_REACH_WHOLE)
        fputs("over the complete run\n", out);
    else if (c->reach == FRAG_REACH_COMPLETED)
        fprintf(out, "over the recording and %" PRIu64 " predicted steps%s\n",
                c->added_steps,
                c->finished ? ", after the one that failed" : "");
    else
        fputs("up to the request, where the recording ends\n", out);
}

static void put_change(const struct explain *x, const struct explain_change *c,
                       FILE *out)
{
    char saved[FRAG_SIZE_TEXT];

    frag_size_format(c->saved, saved);
    printable_line(out, "  %-25s  %13s  %s%s%s", result_text(x, c),
                   FRAG_SHOW_SIZE(c->peak), c->text, c->saved ? "; saves " : "",
                   c->saved ? saved : "");
}

/* A note of the completed trace, without the device. */
static const char *note_text(const char *note)
{
    const char *colon = strstr(note, ": ");

    return colon ? colon + 2 : note;
}

static void put_changes(const struct explain *x, FILE *out)
{
    if (!x->change_count)
        return;
    put_scope(x, out);
    fputs("  result                     peak reserved  change\n", out);
    for (uint64_t i = 0; i < x->change_count; i++)
        put_change(x, &x->changes[i], out);
    if (x->future->note_count + x->unknown_count)
        fputs("what the recording cannot tell\n", out);
    for (uint32_t i = 0; i < x->future->note_count; i++)
        printable_line(out, "  %s", note_text(x->future->notes[i]));
    for (size_t i = 0; i < x->unknown_count; i++)
        fprintf(out, "  %s\n", x->unknown[i]);
}

void explain_put_text(const struct explain *x, FILE *out)
{
    put_request(x, out);
    put_cause(x, out);
    put_totals(x, out);
    put_spaces(x, out);
    put_pins(x, out);
    put_changes(x, out);
}

/* ---- JSON ---- */

static void json_site(struct frag_json *j, const char *key,
                      const struct explain *x, uint32_t stack)
{
    char site[SITE_TEXT];

    frag_json_text(j, key, stack ? site_text(x->trace, stack, site) : NULL);
}

static void json_pool(struct frag_json *j, const struct explain *x,
                      frag_pool pool)
{
    char name[FRAG_POOL_NAME];

    frag_json_number(j, "pool", pool);
    frag_json_text(j, "pool_name", pool_name(x, pool, name));
}

static void json_request(struct frag_json *j, const struct explain *x)
{
    frag_json_line(j, 3);
    if (!x->failed) {
        frag_json_null(j, "request");
        return;
    }
    frag_json_object(j, "request");
    frag_json_number(j, "event", x->event);
    frag_json_number(j, "requested_bytes", x->request);
    frag_json_number(j, "rounded_bytes", x->rounded);
    frag_json_number(j, "segment_bytes", x->segment);
    frag_json_number(j, "stream", x->stream);
    json_pool(j, x, x->pool);
    json_site(j, "site", x, x->stack);
    frag_json_number(j, "num_ooms", x->ooms);
    frag_json_bool(j, "reproduced", x->reproduced);
    frag_json_end(j);
}

/* Sizes of the answer, by their JSON keys. */
static const struct size_row {
    const char *key;
    size_t offset;
} sizes[] = {
#define AT(key, field)                       \
    {                                        \
        key, offsetof(struct explain, field) \
    }
    AT("limit_least_bytes", limit_least),
    AT("limit_most_bytes", limit_most),
    AT("device_free_bytes", device_free),
    AT("outside_bytes", outside),
    AT("reserved_bytes", reserved),
    AT("requested_bytes", requested),
    AT("live_bytes", live),
    AT("pending_bytes", pending),
    AT("cached_bytes", cached),
    AT("not_reserved_bytes", unreserved),
    AT("largest_hole_bytes", largest),
    AT("holes", holes),
    AT("own_cached_bytes", own_cached),
    AT("own_largest_hole_bytes", own_largest),
    AT("other_cached_bytes", other_cached),
    AT("other_largest_hole_bytes", other_largest),
    AT("steps", steps),
    AT("grown_bytes", grown),
    AT("need_bytes", need),
#undef AT
};

static void json_sizes(struct frag_json *j, const struct explain *x)
{
    frag_json_line(j, 3);
    frag_json_count(j, "limit_bytes",
                    x->limit_least == x->limit_most ? x->bound.bytes
                                                    : FRAG_UNLIMITED);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint64_t n;

        memcpy(&n, (const char *)x + sizes[i].offset, sizeof(n));
        frag_json_count(j, sizes[i].key, n);
    }
    json_site(j, "grown_site", x, x->grown ? x->grown_stack : 0);
    frag_json_text(j, "limit_source", limit_words[x->limit_source]);
}

static void json_spaces(struct frag_json *j, const struct explain *x)
{
    frag_json_new_array(j, 3, "spaces");
    for (uint64_t i = 0; i < x->space_count; i++) {
        const struct explain_space *s = &x->spaces[i];

        frag_json_new_object(j, 4, NULL);
        json_pool(j, x, s->pool);
        frag_json_number(j, "stream", s->stream);
        frag_json_text(j, "blocks", s->is_small ? "small" : "large");
        frag_json_number(j, "segments", s->segments);
        frag_json_number(j, "reserved_bytes", s->reserved);
        frag_json_number(j, "live_bytes", s->live);
        frag_json_number(j, "pending_bytes", s->pending);
        frag_json_number(j, "cached_bytes", s->cached);
        frag_json_number(j, "holes", s->holes);
        frag_json_number(j, "largest_hole_bytes", s->largest);
        frag_json_end(j);
    }
    frag_json_end(j);
}

static void json_pins(struct frag_json *j, const struct explain *x)
{
    frag_json_new_array(j, 3, "pins");
    for (uint64_t i = 0; i < x->pin_count; i++) {
        const struct explain_pin *p = &x->pins[i];

        frag_json_new_object(j, 4, NULL);
        frag_json_number(j, "segment_bytes", p->size);
        frag_json_number(j, "free_bytes", p->cached);
        json_pool(j, x, p->pool);
        frag_json_number(j, "stream", p->stream);
        frag_json_number(j, "blocks", p->blocks);
        frag_json_number(j, "largest_block_bytes", p->bytes);
        frag_json_count(j, "event", p->event);
        frag_json_seconds(j, "age_s", (double)p->lifetime / 1e9);
        json_site(j, "site", x, p->stack);
        frag_json_end(j);
    }
    frag_json_end(j);
}

static void json_change(struct frag_json *j, const struct explain *x,
                        const struct explain_change *c)
{
    frag_json_new_object(j, 4, NULL);
    frag_json_text(j, "kind", explain_change_words[c->kind]);
    frag_json_text(j, "change", c->text);
    frag_json_text(j, "result", explain_result_words[c->result]);
    frag_json_count(j, "fails_at_event", c->fails_at);
    frag_json_bool(j, "predicted", is_predicted(x, c));
    frag_json_bool(j, "served", c->served);
    frag_json_number(j, "peak_reserved_bytes", c->peak);
    frag_json_number(j, "limit_bytes", c->limit);
    frag_json_count(j, "event", c->event);
    frag_json_number(j, "change_bytes", c->bytes);
    frag_json_number(j, "saved_bytes", c->saved);
    frag_json_end(j);
}

static void json_changes(struct frag_json *j, const struct explain *x)
{
    frag_json_new_array(j, 3, "changes");
    for (uint64_t i = 0; i < x->change_count; i++)
        json_change(j, x, &x->changes[i]);
    frag_json_end(j);
    frag_json_line(j, 3);
    frag_json_number(j, "predicted_steps", x->completion.added_steps);
    frag_json_new_array(j, 3, "unknown");
    for (uint32_t i = 0; x->future && i < x->future->note_count; i++)
        frag_json_text(j, NULL, note_text(x->future->notes[i]));
    for (size_t i = 0; i < x->unknown_count; i++)
        frag_json_text(j, NULL, x->unknown[i]);
    frag_json_end(j);
}

static void json_notes(struct frag_json *j, const struct explain *x)
{
    frag_json_array(j, "notes");
    for (uint32_t i = 0; i < x->trace->note_count; i++)
        frag_json_text(j, NULL, x->trace->notes[i]);
    if (*x->release)
        frag_json_text(j, NULL, x->release);
    frag_json_end(j);
}

/* The settings with the padding, but without a release that no user set. */
static const char *shown_settings(const struct explain *x)
{
    const char *text = x->used;

    if (torch_value_of(text, "torch_version") &&
        !torch_value_of(x->settings, "torch_version")) {
        text += strcspn(text, ",");
        text += *text == ',';
    }
    return text;
}

void explain_put_json(const struct explain *x, struct frag_json *j)
{
    frag_json_text(j, "trace", x->trace->path);
    frag_json_number(j, "device", x->device->device);
    frag_json_text(j, "settings", shown_settings(x));
    frag_json_text(j, "cause", explain_cause_words[x->cause]);
    frag_json_text(j, "cause_text", explain_cause_phrases[x->cause]);
    frag_json_text(j, "evidence", x->evidence);
    frag_json_bool(j, "replayed", x->replayed);
    json_request(j, x);
    json_sizes(j, x);
    json_spaces(j, x);
    json_pins(j, x);
    json_changes(j, x);
    frag_json_line(j, 3);
    json_notes(j, x);
}
