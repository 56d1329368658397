/* verdict_text.c - writes a verdict. */
#include "sim/cli/answers/text/verdict_text.h"

#include "real/device/gpus.h"
#include "sim/arena/arena.h"
#include "sim/results/row.h"
#include "traces/printable.h"
#include "traces/text.h"
#include "traces/torch_platforms.h"
#include "traces/torch_sizes.h"

const char *verdict_export(const struct verdict *v, char text[VERDICT_LINE])
{
    const char *variable = torch_variable_of(v->whole->settings);
    const char *sign = v->action == VERDICT_SETTING ? "" : "# ";

    *text = '\0';
    if (v->rung && torch_is_followed(v->rung->text))
        return text;
    if (v->rung && *v->rung->text)
        snprintf(text, VERDICT_LINE, "%sexport %s='%s'", sign, variable,
                 v->rung->text);
    else if (v->rung && !v->rung->recorded)
        snprintf(text, VERDICT_LINE, "%sunset %s", sign, variable);
    return text;
}

/* ---- the GPUs ---- */

/* Whether the GPU has that memory beside a CUDA context. Nobody recorded what
 * the host needs, with which a unified GPU shares its memory. */
static bool has(const struct frag_gpu *g, frag_size need)
{
    return !g->is_unified && frag_gpu_room(g) >= need;
}

/* The smallest GPU that has it; NULL: none has. The table begins with the
 * largest. */
static const struct frag_gpu *smallest_gpu(frag_size need)
{
    const struct frag_gpu *found = NULL;

    for (const struct frag_gpu *g = frag_gpus; g->id; g++)
        if (has(g, need))
            found = g;
    return found;
}

static const char *name_of(const struct verdict_need *n)
{
    return torch_is_followed(n->setting) ? TORCH_FOLLOWED
           : *n->setting                 ? n->setting
                                         : "PyTorch's default settings";
}

static void add_need(const struct verdict_need *n, char *text)
{
    const struct frag_gpu *gpu = smallest_gpu(verdict_need_bytes(n));

    text_add(text, VERDICT_TEXT, " ", "With %.300s the job needs %s%s",
             name_of(n),
             n->is_open   ? "more than "
             : n->is_most ? "at most "
                          : "",
             FRAG_SHOW_SIZE(n->bytes));
    if (n->enough > n->bytes)
        text_add(text, VERDICT_TEXT, "",
                 " for what was recorded, and %s for further steps",
                 FRAG_SHOW_SIZE(n->enough));
    text_add(text, VERDICT_TEXT, "", "; %s %s.",
             n->is_open ? "how much more is"
             : gpu      ? "the smallest GPU that has it:"
                        : "no GPU of",
             n->is_open ? "not known"
             : gpu      ? gpu->id
                        : "`fragsim help dry' has it");
}

const char *verdict_fits(const struct verdict *v, char text[VERDICT_TEXT])
{
    const bool is_lasting =
        v->action != VERDICT_LEAK && v->action != VERDICT_RECORD;

    *text = '\0';
    for (size_t i = 0; is_lasting && i < VERDICT_NEEDS; i++)
        if (v->needs[i].bytes != FRAG_UNLIMITED)
            add_need(&v->needs[i], text);
    if (*text)
        text_add(text, VERDICT_TEXT, " ",
                 "A monitor may show more: PyTorch gives cached memory back "
                 "before a request fails.");
    if ((v->needs[0].is_most || v->needs[1].is_most) && *text)
        text_add(text, VERDICT_TEXT, " ",
                 "The search was cut short: `fragsim fit' finds the least.");
    return text;
}

/* ---- text ---- */

static void put_part(FILE *out, const char *heading, const char *text)
{
    if (!*text)
        return;
    fprintf(out, "%s: ", heading);
    printable_put(out, text);
    fputc('\n', out);
}

/* Only what to do. */
static void put_todo(const struct verdict *v, FILE *out)
{
    char line[VERDICT_LINE];

    put_part(out, VERDICT_TODO, v->todo);
    if (!*verdict_export(v, line))
        return;
    fputs("    ", out);
    printable_put(out, line);
    fputc('\n', out);
}

void verdict_put_explained(const struct explain *x, const struct verdict *v,
                           FILE *out)
{
    printable_line(out, "%s, %s", x->trace->path,
                   FRAG_DEVICE_NAME(x->device->device));
    explain_put_text(x, out);
    if (v)
        put_todo(v, out);
}

void verdict_put_text(const struct verdict *v, FILE *out)
{
    char text[VERDICT_TEXT], about[QUESTION_TEXT];

    put_part(out, VERDICT_ABOUT, question_text(&v->question.about, about));
    put_part(out, VERDICT_HAPPENED, v->happened);
    put_todo(v, out);
    put_part(out, VERDICT_SURE, v->sure);
    put_part(out, "What fits", verdict_fits(v, text));
}

/* ---- JSON ---- */

static void put_action(const struct verdict *v, struct frag_json *j,
                       const char *key)
{
    const struct tune_rung *best = v->ladder.best;
    char line[VERDICT_LINE];

    frag_json_line(j, 3);
    frag_json_object(j, key);
    JSON_ROW(j, verdict, v, WORD("kind", action, verdict_action_words),
             TEXT("text", todo));
    frag_json_text(j, "setting", best ? best->text : NULL);
    frag_json_text(j, "odds", best ? odds_words[best->odds.verdict] : NULL);
    frag_json_number(j, "lived", best ? best->odds.lived : 0);
    frag_json_number(j, "of", best ? best->odds.of : 0);
    frag_json_text(j, "command", *verdict_export(v, line) ? line : NULL);
    frag_json_text(j, "change_kind",
                   v->change ? explain_change_words[v->change->kind] : NULL);
    frag_json_text(j, "change", v->change ? v->change->text : NULL);
    frag_json_number(j, "saved_bytes", v->saved);
    frag_json_end(j);
}

static void put_need(const struct verdict_need *n, struct frag_json *j)
{
    frag_json_new_object(j, 4, NULL);
    JSON_ROW(j, verdict_need, n, TEXT("setting", setting),
             NUMBER("need_bytes", bytes), NOT("is_least", is_most),
             NUMBER("more_is_unknown", is_open),
             POSITIVE("enough_bytes", enough));
    frag_json_array(j, "gpus");
    for (const struct frag_gpu *g = frag_gpus;
         n->bytes != FRAG_UNLIMITED && !n->is_open && g->id; g++)
        if (has(g, verdict_need_bytes(n)))
            frag_json_text(j, NULL, g->id);
    frag_json_end(j);
    frag_json_end(j);
}

void verdict_put_json_action(const struct verdict *v, struct frag_json *j)
{
    put_action(v, j, "advice");
}

void verdict_put_json(const struct verdict *v, struct frag_json *j)
{
    const struct question *q = &v->question.about;
    const struct explain *x = v->failure ? v->failure : v->here;

    frag_json_new_object(j, 2, NULL);
    frag_json_text(j, "trace", q->trace->path);
    frag_json_number(j, "device", q->device->device);
    JSON_ROW(j, question, q, WORD("bound", bound.kind, frag_bound_words),
             NUMBER("bound_bytes", bound.bytes),
             WORD("bound_source", source, question_words), LINE(3));
    frag_json_object(j, "happened");
    JSON_ROW(j, verdict, v, WORD("state", state, verdict_state_words),
             WORD("cause", cause, explain_cause_words));
    frag_json_text(j, "growth", leaks_verdict_names[x->growth]);
    frag_json_text(j, "text", v->happened);
    frag_json_end(j);
    put_action(v, j, "action");
    frag_json_line(j, 3);
    frag_json_text(j, "sure", v->sure);
    frag_json_new_array(j, 3, "fits");
    for (size_t i = 0; i < VERDICT_NEEDS; i++)
        put_need(&v->needs[i], j);
    frag_json_end(j);
    frag_json_line(j, 3);
    frag_json_texts(j, "notes", q->trace->notes, q->trace->note_count);
    frag_json_end(j);
}
