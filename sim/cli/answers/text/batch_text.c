/* batch_text.c - the table of batch sizes, the sentences below it, and the same
 * as JSON. */
#include "sim/cli/answers/text/batch_text.h"

#include <inttypes.h>
#include <stdarg.h>

#include "sim/cli/output/table.h"
#include "traces/printable.h"
#include "traces/text.h"

/* ---- what the answer rests on ---- */

enum { NOTE_TEXT = 768, NOTES = 5 };

struct notes {
    char text[NOTES][NOTE_TEXT];
    const char *items[NOTES];
    size_t count;
};

static void FRAG_PRINTF(2, 3) note(struct notes *n, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(n->text[n->count], NOTE_TEXT, format, arguments);
    va_end(arguments);
    n->items[n->count] = n->text[n->count];
    n->count++;
}

static void note_unknown(struct notes *n, const struct scaling *s)
{
    const struct scale_requests *alone = &s->requests[SCALE_ALONE],
                                *changed = &s->requests[SCALE_CHANGED];

    if (!alone->count && !changed->count)
        return;
    note(n,
         "%" PRIu64 " of %" PRIu64 " requests at batch %" PRIu64
         " have no partner (%s at the peak), and %" PRIu64
         " have partners of uncertain meaning (%s at the peak), because a "
         "library may choose another algorithm at another batch size; they "
         "are predicted to grow in proportion to the batch",
         alone->count, s->blocks.count, s->recordings[s->count - 1].batch,
         FRAG_SHOW_SIZE(alone->peak_bytes), changed->count,
         FRAG_SHOW_SIZE(changed->peak_bytes));
}

static void note_range(struct notes *n, const struct batch_report *r)
{
    const struct scale_requests *guessed = &r->question->scaling->guessed;
    char texts[NOTE_TEXT / 2] = "", peak[FRAG_SIZE_TEXT];

    if (!guessed->count)
        return;
    for (size_t g = 0; g < SCALE_GUESSES; g++)
        text_add(texts, sizeof(texts), ", ", "%s", scale_guesses[g].text);
    note(n,
         "low and high are the least and the most peak reserved of %d replays: "
         "with the predicted sizes, and with other sizes of the %" PRIu64
         " requests (%s at the peak) that are not known for sure (without a "
         "partner, uncertain, or a workspace that grows): %s",
         SCALE_GUESSES + 1, guessed->count,
         frag_size_format(guessed->peak_bytes, peak), texts);
}

static double beside(frag_size other, const struct batch_row *row)
{
    return 100 * ((double)other / (double)row->summary.peak_reserved - 1);
}

static double width(const struct batch_row *row)
{
    return beside(row->high_reserved, row) - beside(row->low_reserved, row);
}

/* A replay with an OOM ends there, so that its peak says little. */
static const struct batch_row *widest_row(const struct batch_answer *a)
{
    const struct batch_row *widest = NULL;

    for (size_t i = 0; i < a->count; i++)
        if (a->rows[i].num_replays_with_oom == 0 &&
            (!widest || width(&a->rows[i]) > width(widest)))
            widest = &a->rows[i];
    return widest;
}

static void note_unsure(struct notes *n, const struct batch_report *r)
{
    const struct batch_answer *a = r->answer;
    const struct batch_row *widest = widest_row(a);
    char range[128] = "";
    size_t unsure = 0;

    for (size_t i = 0; i < a->count; i++)
        unsure += !batch_is_sure(&a->rows[i]);
    if (!unsure)
        return;
    if (widest)
        snprintf(range, sizeof(range),
                 "; widest range without an OOM: batch %" PRIu64
                 ", %+.1f %% to %+.1f %%",
                 widest->batch, beside(widest->low_reserved, widest),
                 beside(widest->high_reserved, widest));
    note(n,
         "in %zu of %zu rows the replays differ from the predicted peak "
         "reserved by more than 2 %%, or in whether they run out of memory%s",
         unsure, a->count, range);
}

static void find_notes(const struct batch_report *r, struct notes *n)
{
    const struct scaling *s = r->question->scaling;

    n->count = 0;
    note(n,
         "batch sizes that were not recorded are predictions: the events of "
         "the recording at batch %" PRIu64
         ", with sizes that follow from the %zu recordings",
         s->recordings[s->count - 1].batch, s->count);
    note_unknown(n, s);
    note_range(n, r);
    note_unsure(n, r);
    if (!r->question->at_count)
        note(n,
             "the search assumes that a batch size fits if a larger one does; "
             "the %d batch sizes above each result were replayed and do not "
             "fit",
             BATCH_BEYOND);
}

/* ---- text ---- */

static const char *source_name(const struct batch_row *row)
{
    return row->recorded ? "recorded" : "predicted";
}

static void add_row(struct table *t, const struct batch_report *r,
                    const struct batch_row *row)
{
    table_cell(t, false, "%s", r->question->policies[row->policy].text);
    table_cell(t, false, "%" PRIu64, row->batch);
    table_cell(t, false, "%s", source_name(row));
    table_size(t, row->requested);
    table_size(t, row->summary.peak_reserved);
    table_size(t, row->low_reserved);
    table_size(t, row->high_reserved);
    table_cell(t, row->summary.num_ooms > 0, "%" PRIu64, row->summary.num_ooms);
    table_cell(t, false, "%" PRIu64, row->summary.num_alloc_retries);
    table_size(t, row->constant);
    table_size(t, (frag_size)row->per_sample);
    table_share(t, batch_growing_share(row));
}

/* The range of the largest batch from low to high; nothing if both are equal.
 */
static void format_range(const struct batch_answer *a, size_t policy, char *out,
                         size_t size)
{
    const uint64_t low = a->low_largest[policy], high = a->high_largest[policy];

    out[0] = '\0';
    if (low != high && low)
        snprintf(out, size, "; between low and high, %" PRIu64 " to %" PRIu64,
                 low, high);
    else if (low != high)
        snprintf(out, size, "; between low and high, none to %" PRIu64, high);
}

static void say_largest(const struct batch_report *r, FILE *out)
{
    const struct batch_question *q = r->question;
    const char *of = q->at_count ? " of these" : "";
    char bound[FRAG_BOUND_TEXT], range[96];

    if (q->bound.bytes == FRAG_UNLIMITED)
        return;
    frag_bound_format(q->bound, bound);
    for (size_t p = 0; p < q->policy_count; p++) {
        format_range(r->answer, p, range, sizeof(range));
        if (r->answer->largest[p])
            printable_line(out,
                           "%s: the largest batch%s that fits into %s is "
                           "%" PRIu64 "%s",
                           q->policies[p].text, of, bound,
                           r->answer->largest[p], range);
        else
            printable_line(out, "%s: no batch%s fits into %s%s",
                           q->policies[p].text, of, bound, range);
    }
}

static enum frag_err put_table(const struct batch_report *r, FILE *out,
                               bool color, struct frag_error *e)
{
    struct table t = table_of(
        "prlrrrrrrrrr", "policy|batch|known as|peak requested|peak reserved|"
                        "low|high|OOMs|retries|constant part|per sample|"
                        "growing share");

    for (size_t i = 0; i < r->answer->count; i++)
        add_row(&t, r, &r->answer->rows[i]);
    return table_print(&t, out, color) == FRAG_OK
               ? FRAG_OK
               : frag_no_memory(e, "the table");
}

enum frag_err batch_text(const struct batch_report *r, FILE *out, bool color,
                         struct frag_error *e)
{
    struct notes n;

    FRAG_TRY(put_table(r, out, color, e));
    fputc('\n', out);
    say_largest(r, out);
    find_notes(r, &n);
    for (size_t i = 0; i < n.count; i++)
        printable_line(out, "note: %s", n.items[i]);
    return FRAG_OK;
}

/* ---- JSON ---- */

static void json_row(struct frag_json *j, const struct batch_report *r,
                     const struct batch_row *row)
{
    frag_json_new_object(j, 2, NULL);
    frag_json_number(j, "batch", row->batch);
    frag_json_text(j, "policy", r->question->policies[row->policy].text);
    frag_json_text(j, "known_as", source_name(row));
    frag_json_number(j, "peak_requested_bytes", row->requested);
    frag_json_number(j, "peak_reserved_bytes", row->summary.peak_reserved);
    frag_json_number(j, "low_peak_reserved_bytes", row->low_reserved);
    frag_json_number(j, "high_peak_reserved_bytes", row->high_reserved);
    frag_json_number(j, "num_replays", row->num_replays);
    frag_json_number(j, "num_replays_with_oom", row->num_replays_with_oom);
    frag_json_number(j, "num_ooms", row->summary.num_ooms);
    frag_json_count(j, "first_oom_event", row->summary.first_oom_event);
    frag_json_number(j, "num_alloc_retries", row->summary.num_alloc_retries);
    frag_json_number(j, "constant_bytes", row->constant);
    frag_json_real(j, "bytes_per_sample", row->per_sample);
    frag_json_real(j, "growing_ratio", batch_growing_share(row));
    frag_json_end(j);
}

static void json_largest(struct frag_json *j, const struct batch_report *r,
                         const char *key, const uint64_t *largest)
{
    const struct batch_question *q = r->question;

    frag_json_new_object(j, 1, key);
    for (size_t p = 0; p < q->policy_count; p++)
        frag_json_count(j, q->policies[p].text,
                        largest[p] ? largest[p] : UINT64_MAX);
    frag_json_end(j);
}

static void json_requests_of(struct frag_json *j, const char *key,
                             const struct scale_requests *r)
{
    frag_json_object(j, key);
    frag_json_number(j, "count", r->count);
    frag_json_number(j, "bytes", r->bytes);
    frag_json_number(j, "peak_bytes", r->peak_bytes);
    frag_json_end(j);
}

static void json_requests(struct frag_json *j, const struct scaling *s)
{
    frag_json_new_object(j, 1, "requests");
    for (size_t k = 0; k < SCALE_KIND_COUNT; k++)
        json_requests_of(j, scale_kind_names[k], &s->requests[k]);
    frag_json_end(j);
    frag_json_line(j, 1);
    json_requests_of(j, "guessed_requests", &s->guessed);
}

static void json_sources(struct frag_json *j, const struct batch_report *r)
{
    frag_json_new_array(j, 1, "recordings");
    for (size_t i = 0; i < r->source_count; i++) {
        const struct batch_source *s = &r->sources[i];

        frag_json_new_object(j, 2, NULL);
        frag_json_number(j, "batch", s->batch);
        frag_json_text(j, "path", s->trace->path);
        frag_json_text(j, "sha256", s->trace->sha256);
        frag_json_number(j, "device", s->device->device);
        frag_json_texts(j, "notes", s->trace->notes, s->trace->note_count);
        frag_json_end(j);
    }
    frag_json_end(j);
}

void batch_json(const struct batch_report *r, const struct call *call,
                FILE *out)
{
    struct frag_json j;
    struct notes n;

    cli_json_open(call, &j, out);
    for (size_t i = 0; i < r->answer->count; i++)
        json_row(&j, r, &r->answer->rows[i]);
    frag_json_line(&j, 1);
    frag_json_end(&j);
    frag_json_line(&j, 1);
    frag_json_count(&j, "capacity_bytes",
                    frag_bound_of(r->question->bound, FRAG_BOUND_CAPACITY));
    frag_json_count(&j, "process_limit_bytes",
                    frag_bound_of(r->question->bound, FRAG_BOUND_LIMIT));
    json_largest(&j, r, "largest", r->answer->largest);
    json_largest(&j, r, "low_largest", r->answer->low_largest);
    json_largest(&j, r, "high_largest", r->answer->high_largest);
    json_requests(&j, r->question->scaling);
    json_sources(&j, r);
    find_notes(r, &n);
    frag_json_line(&j, 1);
    frag_json_texts(&j, "notes", n.items, n.count);
    frag_json_end(&j);
    fputc('\n', out);
}
