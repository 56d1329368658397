/* cell_notes.c - finds the notes of a cell, and counts the cells of each note.
 */
#include "sim/experiments/cell_notes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policies.h"
#include "sim/arena/arena.h"
#include "sim/experiments/start.h"
#include "sim/results/row.h"
#include "traces/facts.h"
#include "traces/grow.h"
#include "traces/setting_changes.h"
#include "traces/text.h"
#include "traces/torch_sizes.h"

static bool repeats_recorded(const struct cell_result *on)
{
    const char *settings = on->trace->settings ? on->trace->settings : "";
    struct frag_params *recorded;
    char *text;
    enum frag_err err;
    bool same;

    if (on->policy->policy != &frag_policy_torch)
        return false;
    text = release_settings(on->trace, settings);
    err = frag_params_read(on->policy->policy, text, &recorded, NULL);
    free(text);
    if (err != FRAG_OK)
        return false;
    same = !strcmp(recorded->text, on->params);
    free(recorded);
    return same;
}

/* Whether a run with the recorded settings differs from the recording, whose
 * peak is in *recorded. */
static bool differs(const struct cell_result *on, frag_size *recorded)
{
    const struct frag_device_trace *d = on->device;
    const struct frag_summary *s = on->summary;

    if (!d->recorded.has_actions ||
        s->peak_reserved_event >= d->count - d->added || !repeats_recorded(on))
        return false;
    *recorded = facts_peak_reserved(d);
    return on->bound.bytes >= *recorded && s->peak_reserved != *recorded;
}

/* Why a run of a policy that can adopt a layout did not adopt it. */
static const char *why_not_adopted(const struct cell_result *on)
{
    if (on->settings->backend != &cell_arena_backend)
        return "the device cannot hold memory at recorded addresses";
    if (on->settings->from_requests)
        return "all runs that are compared start from the live blocks";
    if (!start_has_kind(on->device, on->policy->policy, on->params))
        return "these settings make segments of the other kind "
               "(expandable_segments)";
    if (start_held(on->device, on->bound.kind) > on->bound.bytes)
        return "they do not fit in the device";
    return torch_value_of(on->params, "max_split_size_mb")
               ? "max_split_size_mb does not split segments of their sizes, so "
                 "PyTorch could not release their free parts"
               : "their addresses or their kind do not allow it";
}

static void note_changes(const struct cell_result *on, char text[RELEASE_NOTE])
{
    const bool follows = torch_is_followed(on->params);
    char words[CHANGES_MEANING];

    if (on->policy->policy->set && *changes_meaning(on->device, follows, words))
        text_add(text, RELEASE_NOTE, ": ", "the run has %s%s", words,
                 follows || !on->trace->settings
                     ? ""
                     : ", which torch@recorded follows");
}

static void note_run(const struct cell_result *on, char text[RELEASE_NOTE])
{
    frag_size recorded = 0;
    const bool is_late = on->policy->policy->adopt &&
                         on->device->recorded.start.segment_count &&
                         on->summary->start != FRAG_START_ADOPTED;

    text[0] = '\0';
    if (is_late)
        text_add(text, RELEASE_NOTE, "",
                 "the run does not start from the recorded segments (%s): %s",
                 FRAG_SHOW_SIZE(start_held(on->device, on->bound.kind)),
                 why_not_adopted(on));
    note_changes(on, text);
    if (differs(on, &recorded))
        text_add(text, RELEASE_NOTE, ": ",
                 "with the recorded settings, the run reserves %s at most; "
                 "the recorded allocator reserved %s%s",
                 FRAG_SHOW_SIZE(on->summary->peak_reserved),
                 FRAG_SHOW_SIZE(recorded),
                 is_late ? ""
                         : ", at other addresses; `fragsim validate' repeats "
                           "these");
}

/* Whether the device gave a unit or more beyond what the segments hold. */
static bool takes_more(const struct frag_summary *s)
{
    return s->peak_device > frag_round_up(s->peak_reserved, FRAG_CAPACITY_STEP);
}

static void note_bound(struct frag_bound bound, char text[RELEASE_NOTE])
{
    text[0] = '\0';
    if (bound.most)
        snprintf(text, RELEASE_NOTE,
                 "no snapshot records the limit of its process; the OOMs show "
                 "a %s, and the run uses the %s, %s; --recorded-limit states "
                 "the exact limit",
                 FRAG_SHOW_BOUND(bound),
                 bound.bytes == bound.least ? "least" : "middle",
                 FRAG_SHOW_SIZE(bound.bytes));
}

const char *cell_collects_nothing(const char *settings, struct frag_bound bound)
{
    const char *share =
        torch_value_of(settings, "garbage_collection_threshold");

    if (!share || !(strtod(share, NULL) > 0) ||
        bound.kind != FRAG_BOUND_CAPACITY ||
        torch_value_of(settings, "per_process_memory_fraction"))
        return NULL;
    return "garbage_collection_threshold has no effect, as in PyTorch, if the "
           "process has no limit (--process-limit)";
}

/* Whether the stacks name a convolution. */
static bool has_convolution(const struct frag_trace *t)
{
    for (uint32_t i = 0; i < t->string_count; i++)
        if (text_ends_with(t->strings[i], "torch/nn/modules/conv.py") ||
            strstr(t->strings[i], "cudnn_convolution"))
            return true;
    return false;
}

enum frag_err cell_notes(const struct cell_result *on, struct cell_notes *out,
                         struct frag_error *e)
{
    out->count = 0;
    FRAG_TRY(release_note(on->policy, on->trace, on->device, out->texts[0], e));
    out->count += *out->texts[0] != '\0';
    note_run(on, out->texts[out->count]);
    out->count += *out->texts[out->count] != '\0';
    if (takes_more(on->summary))
        snprintf(out->texts[out->count++], RELEASE_NOTE,
                 "the device gives segments in units of 2 MiB, so the run took "
                 "more of it than peak reserved (column peak_device_bytes)");
    note_bound(on->bound, out->texts[out->count]);
    out->count += *out->texts[out->count] != '\0';
    if (on->bound.kind == FRAG_BOUND_LIMIT &&
        on->summary->peak_reserved > on->bound.bytes)
        snprintf(out->texts[out->count++], RELEASE_NOTE,
                 "the limit of the process counts the bytes of live requests "
                 "here, so the run holds %s of the device, more than the limit",
                 FRAG_SHOW_SIZE(on->summary->peak_reserved));
    if (on->bound.bytes != FRAG_UNLIMITED && has_convolution(on->trace))
        snprintf(out->texts[out->count++], RELEASE_NOTE,
                 "the program has convolutions: where a workspace of cuDNN is "
                 "refused, PyTorch tries one that needs less, so the program "
                 "may survive with less memory than a replay needs");
    if (on->policy->policy == &frag_policy_torch &&
        cell_collects_nothing(on->params, on->bound))
        snprintf(out->texts[out->count++], RELEASE_NOTE, "%s",
                 cell_collects_nothing(on->params, on->bound));
    if (on->policy->policy->assumes)
        snprintf(out->texts[out->count++], RELEASE_NOTE, "%s",
                 on->policy->policy->assumes);
    return FRAG_OK;
}

const char *cell_place(const char *policy, struct frag_bound bound,
                       char text[CELL_PLACE])
{
    snprintf(text, CELL_PLACE, "%.100s, %s%s", policy,
             bound.kind == FRAG_BOUND_CAPACITY ? "capacity " : "",
             FRAG_SHOW_BOUND(bound));
    return text;
}

static struct cell_note *find(struct cell_note_list *list, const char *trace,
                              uint32_t device, const char *text)
{
    for (size_t i = 0; i < list->count; i++) {
        struct cell_note *n = &list->items[i];

        if (n->device == device && !strcmp(n->trace, trace) &&
            !strcmp(n->text, text))
            return n;
    }
    return NULL;
}

bool cell_note_add(struct cell_note_list *list, const char *trace,
                   uint32_t device, const char *text, const char *place)
{
    struct cell_note *n = find(list, trace, device, text);

    if (n) {
        n->cells++;
        return true;
    }
    if (!GROW(list->items, list->room, list->count + 1))
        return false;
    n = &list->items[list->count++];
    *n = (struct cell_note){strdup(trace), strdup(text), "", device, 1};
    snprintf(n->first, sizeof(n->first), "%s", place);
    return n->trace && n->text;
}

void cell_note_free(struct cell_note_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].trace);
        free(list->items[i].text);
    }
    free(list->items);
    *list = (struct cell_note_list){NULL, 0, 0};
}

const char *cell_note_text(const struct cell_note *n, char text[CELL_NOTE_TEXT])
{
    char cells[48] = "";

    if (n->cells > 1)
        snprintf(cells, sizeof(cells), "%" PRIu64 " cells, the first one ",
                 n->cells);
    if (n->device == CELL_NOTE_TRACE)
        snprintf(text, CELL_NOTE_TEXT, "%s", n->text);
    else
        snprintf(text, CELL_NOTE_TEXT, "%s: %s%s: %s",
                 FRAG_DEVICE_NAME(n->device), cells, n->first, n->text);
    return text;
}

enum frag_err row_notes_make(const struct cell_result *on,
                             struct cell_note_list *list, struct row_notes *out,
                             struct frag_error *e)
{
    const struct frag_trace *t = on->trace;
    const uint32_t device = on->device->device;
    struct cell_note one = {.device = device, .cells = 1};
    struct cell_notes found;

    out->count = 0;
    out->items = malloc((t->note_count + CELL_NOTES) * sizeof(*out->items));
    out->texts = malloc((size_t)CELL_NOTES * CELL_NOTE_TEXT);
    if (!out->items || !out->texts)
        return frag_no_memory(e, "the notes");
    for (; out->count < t->note_count; out->count++)
        out->items[out->count] = t->notes[out->count];
    FRAG_TRY(cell_notes(on, &found, e));
    cell_place(on->policy->text, on->bound, one.first);
    for (size_t i = 0; i < found.count; i++) {
        one.text = found.texts[i];
        out->items[out->count++] =
            cell_note_text(&one, out->texts + i * CELL_NOTE_TEXT);
        if (!cell_note_add(list, t->path, device, one.text, one.first))
            return frag_no_memory(e, "the notes");
    }
    return FRAG_OK;
}

void row_notes_free(struct row_notes *notes)
{
    free(notes->items);
    free(notes->texts);
    *notes = (struct row_notes){NULL, 0, NULL};
}

void cell_note_json(const struct cell_note_list *list, struct frag_json *j)
{
    JSON_ROWS(j, "cell_notes", 1, cell_note, list->items, list->count,
              TEXT("trace", trace),
              COLUMN(FRAG_COLUMN_DEVICE, "device", device),
              NUMBER("cells", cells), TEXT("first", first), TEXT("note", text));
}
