/* triage.h - one run of the command triage. Private to sim/cli/answers/.
 *
 *   verb_triage.c   the options, and the order of the work
 *   triage_parts.c  the evidence: which function answers each part, and which
 *                   command line
 *   triage_page.c   the page
 */
#ifndef FRAG_SIM_CLI_ANSWERS_TRIAGE_H
#define FRAG_SIM_CLI_ANSWERS_TRIAGE_H

#include "sim/answers/verdict/verdict.h"
#include "sim/cli/answers/rest.h"
#include "sim/cli/answers/text/shown.h"
#include "sim/cli/cli.h"
#include "sim/cli/page/page.h"

enum { TRIAGE_WORDS = 16 };

struct triage;

/* Writes an answer that the verdict already has. */
typedef enum frag_err triage_put(const struct triage *t, const struct shown *on,
                                 struct frag_error *e);

/* A part of the page: a heading, the command line that answers it, what that
 * draws, and the function that answers. A view has none. */
struct triage_part {
    const char *id, *heading, *question;
    const char *words[TRIAGE_WORDS];
    struct {
        const char *name, *caption; /* a view has no caption */
    } picture;                      /* of the option -o; name NULL: none */
    const char *failures;           /* as for page_text_end */
    triage_put *put; /* with `show', only if the bound is the recorded one */
    shown_put *show;
    bool (*is_shown)(const struct triage *t); /* NULL: always */
};

extern const struct triage_part triage_parts[]; /* ended by a NULL id */

/* One device of a file. */
struct triage {
    const struct call *call;
    struct progress *progress;
    const char *path;
    struct question about;
    bool is_recorded; /* the bound is that which the recording has */
    struct frag_trace *trace, *whole; /* whole: of the rest, or NULL */
    const struct frag_device_trace *device;
    struct rest rest; /* with --dry */
    struct verdict verdict;
    bool draws; /* gnuplot is installed */
};

struct triages {
    struct triage *items; /* a row for each device */
    size_t count;
};

/* Writes the command line of a part, and a line break. */
void triage_put_command(const struct triage *t, const struct triage_part *part,
                        FILE *out);
/* Whether the part is on the page. */
bool triage_is_shown(const struct triage *t, const struct triage_part *part);

/* Puts the picture of a part into the page, if it can be drawn, and its text
 * into `text'. CANCELLED; errors of the answer. */
enum frag_err triage_put_answer(const struct triage *t,
                                const struct triage_part *part, struct page *p,
                                FILE *text,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* Writes the page. CANCELLED; errors of page_write. */
enum frag_err triage_write(struct triages *all, const char *path,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
