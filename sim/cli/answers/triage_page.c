/* triage_page.c - writes the page of triage: the verdict first, then what it
 * rests on, folded. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/answers/text/answer_page.h"
#include "sim/cli/answers/text/verdict_text.h"
#include "sim/cli/answers/triage.h"
#include "sim/cli/scratch.h"
#include "traces/bytes/temporary.h"
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

static enum frag_err put_command(const struct triage *t,
                                 const struct triage_part *part,
                                 struct answer_page *p, struct frag_error *e)
{
    FILE *out = answer_page_text(p);

    if (!out)
        return frag_no_memory(e, "the page");
    triage_put_command(t, part, out);
    return answer_page_text_end(p, NULL, e);
}

/* A part that cannot be answered holds the message of its command. */
static enum frag_err put_answer(const struct triage *t,
                                const struct triage_part *part,
                                const char *picture, struct answer_page *p,
                                struct frag_error *e)
{
    FILE *out = answer_page_text(p);
    struct frag_error own = {""};
    enum frag_err err;

    if (!out)
        return frag_no_memory(e, "the page");
    err = part->picture.is_view
              ? triage_put_view(t, p->out, &own)
              : triage_put_answer(t, part, picture, out, &own);
    if (err != FRAG_OK)
        cli_put_failure(out, part->words[0], err, &own);
    if (picture && access(picture, R_OK) == 0)
        FRAG_TRY(answer_page_figure(p, picture, part->picture.caption, e));
    FRAG_TRY(answer_page_text_end(p, part->failures, e));
    return err == FRAG_CANCELLED || cli_interrupted() ? FRAG_CANCELLED
                                                      : FRAG_OK;
}

static enum frag_err put_part(const struct triage *t,
                              const struct triage_part *part,
                              const char *folder, struct answer_page *p,
                              struct frag_error *e)
{
    char id[64], *picture = NULL;
    enum frag_err err;

    snprintf(id, sizeof(id), t->about.place > 1 ? "%s-%u" : "%s", part->id,
             t->about.place);
    answer_page_section(p, part->heading, id);
    answer_page_paragraph(p, part->question);
    FRAG_TRY(put_command(t, part, p, e));
    if (triage_can_draw(t, part))
        picture = scratch_path(folder, id, ".svg");
    err = put_answer(t, part, picture, p, e);
    free(picture);
    answer_page_section_end(p);
    return err;
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

static size_t count_parts(const struct triage *t)
{
    size_t count = 0;

    for (const struct triage_part *part = triage_parts; part->id; part++)
        count += triage_is_shown(t, part);
    return count;
}

static enum frag_err put_parts(const struct triage *t, const char *folder,
                               struct answer_page *p, struct frag_error *e)
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
        FRAG_TRY(put_part(t, part, folder, p, e));
    }
    progress_clear(t->progress);
    return FRAG_OK;
}

static enum frag_err put_device(const struct triage *t, struct answer_page *p,
                                struct frag_error *e)
{
    char *folder;
    enum frag_err err;

    put_verdict(t, p);
    if (!t->draws)
        answer_page_paragraph(p, "Some figures are left out, because gnuplot, "
                                 "which draws them, is not installed.");
    FRAG_TRY(scratch_make(&folder, e));
    err = put_parts(t, folder, p, e);
    temporary_remove(folder);
    return err;
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
