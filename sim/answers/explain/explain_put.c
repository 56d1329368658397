/* explain_put.c - writes an explanation as text and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "sim/answers/explain/explain_parts.h"
#include "sim/results/row.h"
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

static void put_request(const struct explain *x, FILE *out)
{
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
            (uint32_t)x->stream, x->pool_name);
    if (x->stack)
        printable_line(out, "  requested by %s", x->site);
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

    if (!x->failed)
        return;
    fprintf(out, "the %s because %s (%s)\n  %s\n",
            died ? "job died" : "request failed",
            explain_cause_phrases[x->cause], explain_cause_words[x->cause],
            x->evidence);
    if (x->cause == EXPLAIN_GROWTH && x->grown_stack)
        printable_line(out, "  most of them are allocated by %s",
                       x->grown_site);
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

        fprintf(out,
                "  %-12s  %6" PRIu32 "  %6s  %8" PRIu64
                "  %12s  %12s  %12s  %12s  %12s\n",
                s->pool_name, (uint32_t)s->stream,
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
    char age[96] = ", allocated before the recording", time[32];

    snprintf(time, sizeof(time), ", %.3f s", (double)p->lifetime / 1e9);
    if (p->event != UINT64_MAX)
        snprintf(age, sizeof(age), ", allocated %" PRIu64 " events%s before",
                 x->event - p->event, p->lifetime ? time : "");
    printable_line(
        out,
        "  %s free of %s (stream %" PRIu32 ", %s): %" PRIu64
        " block%s %s%s%s%s",
        FRAG_SHOW_SIZE(p->cached), FRAG_SHOW_SIZE(p->size), (uint32_t)p->stream,
        p->pool_name, p->blocks, p->blocks == 1 ? " of" : "s, the largest",
        FRAG_SHOW_SIZE(p->bytes), age, p->stack ? ", " : "", p->site);
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

/* Which of the requests fails. */
static const char *result_text(const struct explain *x,
                               const struct explain_change *c)
{
    if (c->result != EXPLAIN_FAILS)
        return explain_result_words[c->result];
    if (c->fails_at <= x->event)
        return c->fails_at == x->event ? "fails at the request"
                                       : "fails before the request";
    return c->predicted ? "fails in a predicted step"
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

static const char *const class_words[] = {"large", "small"};

/* clang-format off */ /* clang-format on */

static void json_unknown(struct frag_json *j, const struct explain *x)
{
    frag_json_new_array(j, 3, "unknown");
    for (uint32_t i = 0; x->future && i < x->future->note_count; i++)
        frag_json_text(j, NULL, note_text(x->future->notes[i]));
    for (size_t i = 0; i < x->unknown_count; i++)
        frag_json_text(j, NULL, x->unknown[i]);
    frag_json_end(j);
}

static void json_notes(struct frag_json *j, const struct explain *x)
{
    frag_json_new_array(j, 3, "notes");
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
    frag_json_line(j, 3);
    JSON_OBJECT(j, "request", explain, x->failed ? x : NULL,
                NUMBER("event", event), NUMBER("requested_bytes", request),
                NUMBER("rounded_bytes", rounded),
                NUMBER("segment_bytes", segment), NUMBER("stream", stream),
                NUMBER("pool", pool), TEXT("pool_name", pool_name),
                FILLED("site", site), NUMBER("num_ooms", ooms),
                NUMBER("reproduced", reproduced));
    frag_json_line(j, 3);
    frag_json_count(j, "limit_bytes",
                    x->limit_least == x->limit_most ? x->bound.bytes
                                                    : FRAG_UNLIMITED);
    JSON_ROW(j, explain, x, NUMBER("limit_least_bytes", limit_least),
             NUMBER("limit_most_bytes", limit_most),
             NUMBER("device_free_bytes", device_free),
             NUMBER("outside_bytes", outside),
             NUMBER("reserved_bytes", reserved),
             NUMBER("requested_bytes", requested), NUMBER("live_bytes", live),
             NUMBER("pending_bytes", pending), NUMBER("cached_bytes", cached),
             NUMBER("not_reserved_bytes", unreserved),
             NUMBER("largest_hole_bytes", largest), NUMBER("holes", holes),
             NUMBER("own_cached_bytes", own_cached),
             NUMBER("own_largest_hole_bytes", own_largest),
             NUMBER("other_cached_bytes", other_cached),
             NUMBER("other_largest_hole_bytes", other_largest),
             NUMBER("steps", steps), NUMBER("grown_bytes", grown),
             NUMBER("need_bytes", need), FILLED("grown_site", grown_site),
             WORD("limit_source", limit_source, limit_words));
    JSON_ROWS(j, "spaces", 3, explain_space, x->spaces, x->space_count,
              NUMBER("pool", pool), TEXT("pool_name", pool_name),
              NUMBER("stream", stream), WORD("blocks", is_small, class_words),
              NUMBER("segments", segments), NUMBER("reserved_bytes", reserved),
              NUMBER("live_bytes", live), NUMBER("pending_bytes", pending),
              NUMBER("cached_bytes", cached), NUMBER("holes", holes),
              NUMBER("largest_hole_bytes", largest));
    JSON_ROWS(j, "pins", 3, explain_pin, x->pins, x->pin_count,
              NUMBER("segment_bytes", size), NUMBER("free_bytes", cached),
              NUMBER("pool", pool), TEXT("pool_name", pool_name),
              NUMBER("stream", stream), NUMBER("blocks", blocks),
              NUMBER("largest_block_bytes", bytes), NUMBER("event", event),
              NS("age_s", lifetime), FILLED("site", site));
    JSON_ROWS(j, "changes", 3, explain_change, x->changes, x->change_count,
              WORD("kind", kind, explain_change_words), TEXT("change", text),
              WORD("result", result, explain_result_words),
              NUMBER("fails_at_event", fails_at),
              NUMBER("predicted", predicted), NUMBER("served", served),
              NUMBER("peak_reserved_bytes", peak), NUMBER("limit_bytes", limit),
              NUMBER("event", event), NUMBER("change_bytes", bytes),
              NUMBER("saved_bytes", saved));
    frag_json_line(j, 3);
    frag_json_number(j, "predicted_steps", x->completion.added_steps);
    json_unknown(j, x);
    json_notes(j, x);
}
