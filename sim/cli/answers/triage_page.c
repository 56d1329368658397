/* triage_page.c - writes the page of triage: the verdict first, then what it
 * rests on, folded. */
#include <stdlib.h>
#include <string.h>

#include "sim/cli/answers/text/verdict_text.h"
#include "sim/cli/answers/triage.h"
#include "sim/cli/page/page.h"
#include "traces/name.h"

static void put_paragraph(FILE *out, const char *text)
{
    html_between(out, "<p>", text, "</p>\n");
}

static void put_heading(FILE *out, const char *heading, const char *text)
{
    html_between(out, "<h2>", heading, "</h2>\n");
    put_paragraph(out, text);
}

static void put_verdict(const struct triage *t, FILE *out)
{
    const struct verdict *v = &t->verdict;
    char line[VERDICT_LINE], fits[VERDICT_TEXT], about[QUESTION_TEXT];

    fputs("<section class=\"verdict\">\n", out);
    put_heading(out, VERDICT_ABOUT, question_text(&t->about, about));
    put_heading(out, VERDICT_HAPPENED, v->happened);
    put_heading(out, VERDICT_TODO, v->todo);
    if (*verdict_export(v, line))
        html_between(out, "<pre class=\"copy\">", line, "</pre>\n");
    put_heading(out, VERDICT_SURE, v->sure);
    fputs("</section>\n", out);
    if (*verdict_fits(v, fits))
        put_paragraph(out, fits);
}

/* ---- the evidence ---- */

static enum frag_err put_command(const struct triage *t,
                                 const struct triage_part *part, struct page *p,
                                 struct frag_error *e)
{
    FILE *out = page_text(p);

    if (!out)
        return frag_no_memory(e, "the page");
    triage_put_command(t, part, out);
    return page_text_end(p, NULL, e);
}

/* Begins a part that is folded. */
static void open_part(FILE *out, const char *heading, const char *id)
{
    html_between(out, "<details class=\"part\" id=\"", id, "\">");
    html_between(out, "<summary>", heading, "</summary>\n");
}

static void close_part(FILE *out)
{
    fputs("</details>\n", out);
}

/* A part that cannot be answered holds the message of its command. */
static enum frag_err put_part(const struct triage *t,
                              const struct triage_part *part, struct page *p,
                              struct frag_error *e)
{
    char id[64];
    struct frag_error own = {""};
    enum frag_err err;
    FILE *text;

    snprintf(id, sizeof(id), t->about.place > 1 ? "%s-%u" : "%s", part->id,
             t->about.place);
    open_part(p->out, part->heading, id);
    put_paragraph(p->out, part->question);
    FRAG_TRY(put_command(t, part, p, e));
    text = page_text(p);
    if (!text)
        return frag_no_memory(e, "the page");
    err = triage_put_answer(t, part, p, text, &own);
    if (err == FRAG_CANCELLED || cli_interrupted())
        return FRAG_CANCELLED;
    if (err != FRAG_OK)
        cli_put_failure(text, part->words[0], err, &own);
    FRAG_TRY(page_text_end(p, part->failures, e));
    close_part(p->out);
    return FRAG_OK;
}

static void put_notes(const struct triage *t, FILE *out)
{
    if (!t->trace->note_count && !t->rest.path)
        return;
    open_part(out, "What the answers rest on", "notes");
    html_list(out, t->trace->notes, t->trace->note_count);
    fputc('\n', out);
    if (t->rest.path)
        put_paragraph(out, t->rest.alike);
    close_part(out);
}

static size_t count_parts(const struct triage *t)
{
    size_t count = 0;

    for (const struct triage_part *part = triage_parts; part->id; part++)
        count += triage_is_shown(t, part);
    return count;
}

static enum frag_err put_parts(const struct triage *t, struct page *p,
                               struct frag_error *e)
{
    const size_t count = count_parts(t);
    size_t done = 0;

    for (const struct triage_part *part = triage_parts; part->id; part++) {
        if (!triage_is_shown(t, part))
            continue;
        progress_step(t->progress, VERDICT_STAGES + 1, VERDICT_STAGES + 1,
                      " parts", 1, "the page");
        if (progress_tick(t->progress, ++done, count))
            return FRAG_CANCELLED;
        FRAG_TRY(put_part(t, part, p, e));
    }
    progress_clear(t->progress);
    return FRAG_OK;
}

static enum frag_err put_page(struct page *p, void *user, struct frag_error *e)
{
    const struct triages *all = user;

    html_between(p->out, "<h1>", p->title, "</h1>\n");
    for (size_t i = 0; i < all->count; i++) {
        put_verdict(&all->items[i], p->out);
        if (!all->items[i].draws)
            put_paragraph(p->out,
                          "Some figures are left out, because gnuplot, which "
                          "draws them, is not installed.");
        FRAG_TRY(put_parts(&all->items[i], p, e));
    }
    put_notes(all->items, p->out);
    return FRAG_OK;
}

enum frag_err triage_write(struct triages *all, const char *path,
                           struct frag_error *e)
{
    char title[256], *name = frag_trace_name(all->items[0].path);

    if (!name)
        return frag_no_memory(e, "the page");
    snprintf(title, sizeof(title), "Triage of %.200s", name);
    free(name);
    return page_write(path, title, put_page, all, e);
}
