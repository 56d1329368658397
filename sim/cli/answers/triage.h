/* triage.h - one run of the command triage. Private to sim/cli/answers/.
 *
 *   verb_triage.c   the options, and the order of the work
 *   triage_parts.c  the evidence: which command answers each part, and copies
 *                   of this process that run them
 *   triage_page.c   the page
 */
#ifndef FRAG_SIM_CLI_ANSWERS_TRIAGE_H
#define FRAG_SIM_CLI_ANSWERS_TRIAGE_H

#include <sys/types.h>

#include "sim/answers/verdict/verdict.h"
#include "sim/cli/answers/rest.h"
#include "sim/cli/cli.h"

enum { TRIAGE_PARTS_MOST = 12, TRIAGE_WORDS = 16 };

struct triage;

/* A file that a part shows. */
struct triage_picture {
    const char *name, *caption; /* a view has no caption; name NULL: none */
    bool is_over_time;          /* it shows recorded events */
    bool is_view;               /* it is interactive, and needs no gnuplot */
};

/* A part of the page: a heading, the command that answers it, and what that
 * draws. */
struct triage_part {
    const char *id, *heading, *question;
    const char *words[TRIAGE_WORDS];
    struct triage_picture picture; /* of its option -o */
    const char *failures;          /* as for answer_page_text_end */
    /* Writes what the command prints, from the verdict's answers. NULL: a copy
     * of this process runs the command. */
    void (*put)(const struct triage *t, FILE *out);
    bool is_of_recorded; /* `put' is for the recorded bound only */
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
    char *folder;     /* for the outputs of the copies; NULL: no
                         page is made */
    struct frag_trace *trace, *whole; /* whole: of the rest, or NULL */
    const struct frag_device_trace *device;
    struct rest rest; /* with --dry */
    struct verdict verdict;
    bool has_verdict;
    bool draws;                              /* gnuplot is installed */
    pid_t copies[TRIAGE_PARTS_MOST], drawer; /* 0: none runs */
};

struct triages {
    struct triage *items; /* a row for each device */
    size_t count;
};

/* Starts the copies that run commands. Errors of child_copy, NOMEM. */
enum frag_err triage_start(struct triage *t,
                           struct frag_error *e) FRAG_MUST_CHECK;
/* Starts the copy that draws what the verdict's answers show. */
enum frag_err triage_draw(struct triage *t,
                          struct frag_error *e) FRAG_MUST_CHECK;
/* Waits for all copies. CANCELLED; IO. */
enum frag_err triage_wait(struct triage *t,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* Writes the command line of a part, and a line break. */
void triage_put_command(const struct triage *t, const struct triage_part *part,
                        FILE *out);
/* The path of a part's text, or of a picture; NULL: the host has no memory. */
char *triage_text(const struct triage *t, const struct triage_part *part);
char *triage_picture(const struct triage *t,
                     const struct triage_picture *picture);
bool triage_is_shown(const struct triage *t, const struct triage_part *part);
/* Whether a copy of this process answers the part. */
bool triage_is_copied(const struct triage *t, const struct triage_part *part);

/* Writes the page; user is a struct triages. IO, NOMEM. */
enum frag_err triage_write(void *user, FILE *out,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
