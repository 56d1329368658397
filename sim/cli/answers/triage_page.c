/* triage_page.c - writes the page of triage: the verdict first, then what it
 * rests on, folded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/answers/text/answer_page.h"
#include "sim/cli/answers/text/verdict_text.h"
#include "sim/cli/answers/triage.h"
#include "traces/name.h"

static void put_verdict(const struct triage *t, struct answer_page *p)
{
    const struct verdict *v = &t->verdict;
    char line[VERDICT_LINE], fits[VERDICT_TEXT], about[QUESTION_TEXT];

    answer_page_verdict(p, VERDICT_ABOUT, question_text(&t->about, about), "");
    answer_page_verdict(p, VERDICT_HAPPENED, v->happened, "");
    answer_page_verdict(p, VERDICT_TODO, v->todo, verdict_export(v, line));
    answer_page_verdict(p, VERDICT_SURE, v->sure, "");
    answer_page_verdict_end(p);
    if (*verdict_fits(v, fits))
        answer_page_paragraph(p, fits);
}

/* ---- the evidence ---- */

static enum frag_err put_picture(const struct triage *t,
                                 const struct triage_picture *picture,
                                 struct answer_page *p, struct frag_error *e)
{
    char *file = triage_picture(t, picture);
    enum frag_err err = FRAG_OK;

    if (!file)
        return frag_no_memory(e, "a picture");
    if (access(file, R_OK) == 0)
        err = picture->is_view
                  ? answer_page_view(p, file, e)
                  : answer_page_figure(p, file, picture->caption, e);
    free(file);
    return err;
}

/* Copies what a command printed. */
static enum frag_err copy(const char *path, FILE *out, struct frag_error *e)
{
    FILE *in = fopen(path, "rbe");
    int c;

    if (!in)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    while ((c = fgetc(in)) != EOF)
        fputc(c, out);
    fclose(in);
    return FRAG_OK;
}

static enum frag_err put_output(const struct triage *t,
                                const struct triage_part *part, FILE *out,
                                struct frag_error *e)
{
    char *path;
    enum frag_err err;

    if (!triage_is_copied(t, part)) {
        part->put(t, out);
        return FRAG_OK;
    }
    path = triage_text(t, part);
    err = path ? copy(path, out, e) : frag_no_memory(e, "a text");
    free(path);
    return err;
}

static enum frag_err put_text(const struct triage *t,
                              const struct triage_part *part, bool is_command,
                              struct answer_page *p, struct frag_error *e)
{
    FILE *out = answer_page_text(p);
    enum frag_err err = FRAG_OK, end;

    if (!out)
        return frag_no_memory(e, "the page");
    if (is_command)
        triage_put_command(t, part, out);
    else
        err = put_output(t, part, out, e);
    end = answer_page_text_end(p, is_command ? NULL : part->failures, e);
    return err == FRAG_OK ? end : err;
}

static enum frag_err put_part(const struct triage *t,
                              const struct triage_part *part,
                              struct answer_page *p, struct frag_error *e)
{
    char id[64];

    snprintf(id, sizeof(id), t->about.place > 1 ? "%s-%u" : "%s", part->id,
             t->about.place);
    answer_page_section(p, part->heading, id);
    answer_page_paragraph(p, part->question);
    FRAG_TRY(put_text(t, part, true, p, e));
    if (part->picture.name)
        FRAG_TRY(put_picture(t, &part->picture, p, e));
    FRAG_TRY(put_text(t, part, false, p, e));
    answer_page_section_end(p);
    return FRAG_OK;
}

static void put_notes(const struct triage *t, struct answer_page *p)
{
    if (!t->trace->note_count && !t->rest.path)
        return;
    answer_page_section(p, "What the answers rest on", "notes");
    answer_page_list(p, t->trace->notes, t->trace->note_count);
    if (t->rest.path)
        answer_page_paragraph(p, t->rest.alike);
    answer_page_section_end(p);
}

static enum frag_err put_device(const struct triage *t, struct answer_page *p,
                                struct frag_error *e)
{
    put_verdict(t, p);
    if (!t->draws)
        answer_page_paragraph(p, "Some figures are left out, because gnuplot, "
                                 "which draws them, is not installed.");
    for (const struct triage_part *part = triage_parts; part->id; part++)
        if (triage_is_shown(t, part))
            FRAG_TRY(put_part(t, part, p, e));
    return FRAG_OK;
}

enum frag_err triage_write(void *user, FILE *out, struct frag_error *e)
{
    const struct triages *all = user;
    struct answer_page p;
    char title[256], *name = frag_trace_name(all->items[0].path);

    if (!name)
        return frag_no_memory(e, "the page");
    snprintf(title, sizeof(title), "Triage of %.200s", name);
    free(name);
    answer_page_open(&p, out, title);
    for (size_t i = 0; i < all->count; i++)
        FRAG_TRY(put_device(&all->items[i], &p, e));
    put_notes(&all->items[0], &p);
    answer_page_close(&p);
    return FRAG_OK;
}
