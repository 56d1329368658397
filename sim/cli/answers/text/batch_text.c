/* batch_text.c - the table of batch sizes, the sentences below it, and the same
 * as JSON. */
#include "sim/cli/answers/text/batch_text.h"

#include <inttypes.h>
#include <stdarg.h>

#include "sim/cli/output/table.h"
#include "traces/printable.h"

/* ---- what the answer rests on ---- */

enum { NOTE_TEXT = 512, NOTES = 3 };

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
    char a[FRAG_SIZE_TEXT], c[FRAG_SIZE_TEXT];

    if (!alone->count && !changed->count)
        return;
    note(n,
         "%" PRIu64 " of %" PRIu64 " requests at batch %" PRIu64
         " have no partner (%s at the peak), and %" PRIu64
         " have partners of uncertain meaning (%s at the peak), because a "
         "library may choose another algorithm at another batch size; they "
         "are taken to grow in proportion to the batch",
         alone->count, s->blocks.count, s->recordings[s->count - 1].batch,
         frag_size_format(alone->peak_bytes, a), changed->count,
         frag_size_format(changed->peak_bytes, c));
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
    if (!r->question->at_count)
        note(n,
             "the search assumes that a batch size fits if a larger one does; "
             "the %d batch sizes above each result were replayed and do not "
             "fit",
             BATCH_BEYOND);
}

/* ---- text ---- */

static const char *const heads[] = {
    "policy", "batch",   "known as",      "peak requested", "peak reserved",
    "OOMs",   "retries", "constant part", "per sample",     "growing share"};

enum { HEADS = sizeof(heads) / sizeof(*heads) };

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
    table_cell(t, row->summary.num_ooms > 0, "%" PRIu64, row->summary.num_ooms);
    table_cell(t, false, "%" PRIu64, row->summary.num_alloc_retries);
    table_size(t, row->constant);
    table_size(t, (frag_size)row->per_sample);
    table_cell(t, false, "%.1f %%", 100 * batch_growing_share(row));
}

static void say_largest(const struct batch_report *r, FILE *out)
{
    const struct batch_question *q = r->question;
    char capacity[FRAG_SIZE_TEXT];

    if (q->capacity == FRAG_UNLIMITED)
        return;
    frag_size_format(q->capacity, capacity);
    for (size_t p = 0; p < q->policy_count; p++)
        if (r->answer->largest[p])
            printable_line(out,
                           "%s: the largest batch%s that fits into %s is "
                           "%" PRIu64,
                           q->policies[p].text, q->at_count ? " of these" : "",
                           capacity, r->answer->largest[p]);
        else
            printable_line(out, "%s: no batch%s fits into %s",
                           q->policies[p].text, q->at_count ? " of these" : "",
                           capacity);
}

static enum frag_err put_table(const struct batch_report *r, FILE *out,
                               bool color, struct frag_error *e)
{
    struct table t = {.columns = HEADS, .right = "prlrrrrrrr"};
    enum frag_err err;

    for (size_t i = 0; i < HEADS; i++)
        table_cell(&t, false, "%s", heads[i]);
    for (size_t i = 0; i < r->answer->count; i++)
        add_row(&t, r, &r->answer->rows[i]);
    err = table_print(&t, out, color);
    table_free(&t);
    return err == FRAG_OK ? FRAG_OK : frag_no_memory(e, "the table");
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
    frag_json_line(j, 2);
    frag_json_object(j, NULL);
    frag_json_number(j, "batch", row->batch);
    frag_json_text(j, "policy", r->question->policies[row->policy].text);
    frag_json_text(j, "known_as", source_name(row));
    frag_json_number(j, "peak_requested_bytes", row->requested);
    frag_json_number(j, "peak_reserved_bytes", row->summary.peak_reserved);
    frag_json_number(j, "num_ooms", row->summary.num_ooms);
    frag_json_count(j, "first_oom_event", row->summary.first_oom_event);
    frag_json_number(j, "num_alloc_retries", row->summary.num_alloc_retries);
    frag_json_number(j, "constant_bytes", row->constant);
    frag_json_real(j, "bytes_per_sample", row->per_sample);
    frag_json_real(j, "growing_ratio", batch_growing_share(row));
    frag_json_end(j);
}

static void json_largest(struct frag_json *j, const struct batch_report *r)
{
    const struct batch_question *q = r->question;

    frag_json_line(j, 1);
    frag_json_object(j, "largest");
    for (size_t p = 0; p < q->policy_count; p++)
        frag_json_count(j, q->policies[p].text,
                        r->answer->largest[p] ? r->answer->largest[p]
                                              : UINT64_MAX);
    frag_json_end(j);
}

static void json_requests(struct frag_json *j, const struct scaling *s)
{
    frag_json_line(j, 1);
    frag_json_object(j, "requests");
    for (size_t k = 0; k < SCALE_KIND_COUNT; k++) {
        frag_json_object(j, scale_kind_names[k]);
        frag_json_number(j, "count", s->requests[k].count);
        frag_json_number(j, "bytes", s->requests[k].bytes);
        frag_json_number(j, "peak_bytes", s->requests[k].peak_bytes);
        frag_json_end(j);
    }
    frag_json_end(j);
}

static void json_sources(struct frag_json *j, const struct batch_report *r)
{
    frag_json_line(j, 1);
    frag_json_array(j, "recordings");
    for (size_t i = 0; i < r->source_count; i++) {
        const struct batch_source *s = &r->sources[i];

        frag_json_line(j, 2);
        frag_json_object(j, NULL);
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
    frag_json_count(&j, "capacity_bytes", r->question->capacity);
    json_largest(&j, r);
    json_requests(&j, r->question->scaling);
    json_sources(&j, r);
    find_notes(r, &n);
    frag_json_line(&j, 1);
    frag_json_texts(&j, "notes", n.items, n.count);
    frag_json_end(&j);
    fputc('\n', out);
}
