/* mistaken.c - the table of the files that users take for a trace: the output
 * of other functions of PyTorch, of its profiler, and of fragsim itself. It
 * imports none of them. */
#include "traces/import/mistaken.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "traces/bytes/source.h"
#include "traces/import/fields.h"
#include "traces/import/importers.h"

#define EVENTS_NEEDED "a trace needs the single events; " FRAG_RECORD_SNAPSHOT

/* A kind of file. It is recognized by how it starts, after white space, and by
 * texts of which its first FRAG_SOURCE_WINDOW bytes contain at least one. */
struct mistake {
    const char *start;    /* "": any */
    const char *texts[3]; /* NULL ends the list; none: any */
    const char *found, *remedy;
};

static const char oom_text[] = "CUDA out of memory";

static const char log_found[] = "a text with PyTorch's report of an OOM",
                  log_remedy[] =
                      "the report has no events; " FRAG_RECORD_SNAPSHOT
                      ", also when an exception ends it";

#define TIMELINE_NEEDED                                                   \
    "a trace needs every alloc and free with its address; "               \
    "export_chrome_trace(\"run.json.gz\") of the same profile has them, " \
    "or " FRAG_RECORD_SNAPSHOT

static const struct mistake mistakes[] = {
    {"<",
     {"Memory Timeline"},
     "the page of torch.profiler's export_memory_timeline, a picture",
     TIMELINE_NEEDED},
    {"[[-1, ",
     {NULL},
     "the raw memory timeline of torch.profiler (export_memory_timeline), "
     "which has no addresses",
     TIMELINE_NEEDED},
    {"[[",
     {NULL},
     "rows of numbers, such as the memory timeline of torch.profiler "
     "(export_memory_timeline), which has the sums of categories",
     TIMELINE_NEEDED},
    {"<",
     {"<html", "<HTML", "<!doctype"},
     "an HTML page",
     "a page of memory_viz is made from a snapshot: pass the snapshot, the "
     ".pickle file"},
    {"<",
     {"<!DOCTYPE html"},
     "an HTML page",
     "a page of memory_viz is made from a snapshot: pass the snapshot, the "
     ".pickle file"},
    {"[",
     {"\"ph\""},
     "a JSON of profiler events, which no importer reads",
     FRAG_RECORD_SNAPSHOT},
    {"{",
     {"\"tool\": \"fragsim "},
     "results of fragsim as JSON, which other programs read",
     "pass the trace itself, or write results with -o results.h5 for "
     "`fragsim plot` and `fragsim report`"},
    {"trace,device,policy,",
     {NULL},
     "results of fragsim as CSV, which other programs read",
     "pass the trace itself, or write results with -o results.h5 for "
     "`fragsim plot` and `fragsim report`"},
    {"",
     {"active.all.", "allocated_bytes", "num_alloc_retries"},
     "the counters of torch.cuda.memory_stats()",
     EVENTS_NEEDED},
    {"",
     {"PyTorch CUDA memory summary"},
     "the table of torch.cuda.memory_summary()",
     EVENTS_NEEDED},
    {"", {oom_text}, log_found, log_remedy},
    {"SQLite format 3",
     {NULL},
     "an SQLite database",
     "record the program with `fragsim record -o run.h5 -- PROGRAM`"},
    {"{", {NULL}, "a JSON of an unknown kind", FRAG_RECORD_SNAPSHOT},
    {"[", {NULL}, "a JSON of an unknown kind", FRAG_RECORD_SNAPSHOT},
};

static bool matches(const struct mistake *m, const unsigned char *bytes,
                    size_t count)
{
    const struct field text = {(const char *)bytes, count};
    size_t blank = 0;

    while (blank < count && isspace(bytes[blank]))
        blank++;
    if (count - blank < strlen(m->start) ||
        memcmp(bytes + blank, m->start, strlen(m->start)) != 0)
        return false;
    for (size_t i = 0; i < 3 && m->texts[i]; i++)
        if (field_contains(text, m->texts[i]))
            return true;
    return !m->texts[0];
}

static enum frag_err is_instead(const struct frag_source *source,
                                const char *found, const char *remedy,
                                struct frag_error *e)
{
    return frag_fail(e, FRAG_CORRUPT, "%s:0: expected a trace, found %s; %s",
                     frag_source_name(source), found, remedy);
}

/* Lists the formats. */
static enum frag_err unknown(const struct frag_source *source,
                             struct frag_error *e)
{
    char known[256] = "";
    size_t at = 0;

    for (size_t i = 0; frag_importers[i] && at < sizeof(known); i++)
        at += (size_t)snprintf(known + at, sizeof(known) - at, "%s, ",
                               frag_importers[i]->name);
    return frag_fail(e, FRAG_CORRUPT,
                     "%s:0: expected a known format (%sor a trace file), found "
                     "none of them; \"fragsim help formats\" describes them",
                     frag_source_name(source), known);
}

/* Sets *found if the input has the line of a report of an OOM anywhere. The
 * overlap of two windows finds a text that lies across their border. */
static enum frag_err find_oom(struct frag_source *source, bool *found,
                              struct frag_error *e)
{
    enum { OVERLAP = sizeof(oom_text) };
    enum frag_err err;

    for (*found = false; !*found;) {
        const unsigned char *bytes;
        const size_t count =
            frag_source_peek(source, FRAG_SOURCE_WINDOW, &bytes, &err, e);

        FRAG_TRY(err);
        *found = field_contains((struct field){(const char *)bytes, count},
                                oom_text);
        if (count < FRAG_SOURCE_WINDOW)
            return FRAG_OK;
        frag_source_skip(source, count - OVERLAP);
    }
    return FRAG_OK;
}

/* An empty input, or one of a few bytes. */
static enum frag_err too_short(const struct frag_source *source, size_t count,
                               struct frag_error *e)
{
    char found[64];

    snprintf(found, sizeof(found), "%zu byte%s only", count,
             count == 1 ? "" : "s");
    if (!count && frag_source_read(source))
        snprintf(found, sizeof(found), "compressed data of 0 bytes");
    else if (!count)
        snprintf(found, sizeof(found), "an empty input");
    return is_instead(source, found,
                      "it is incomplete: copy it again, or see why the "
                      "program that should write it did not",
                      e);
}

enum frag_err mistaken_explain(struct frag_source *source, struct frag_error *e)
{
    enum { SHORT = 6 }; /* bytes, the longest mark of a packed form */
    const unsigned char *bytes;
    enum frag_err err;
    const size_t count =
        frag_source_peek(source, FRAG_SOURCE_WINDOW, &bytes, &err, e);
    bool reports_oom = false;

    FRAG_TRY(err);
    if (count < SHORT)
        return too_short(source, count, e);
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++)
        if (matches(&mistakes[i], bytes, count))
            return is_instead(source, mistakes[i].found, mistakes[i].remedy, e);
    if (!memchr(bytes, '\0', count))
        FRAG_TRY(find_oom(source, &reports_oom, e));
    return reports_oom ? is_instead(source, log_found, log_remedy, e)
                       : unknown(source, e);
}
