/* mistaken.c - the table of the files that users take for a trace: the output
 * of other functions of PyTorch, of its profiler, of other tools that observe
 * memory, and of fragsim itself. It imports none of them. */
#include "traces/import/mistaken.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "traces/bytes/fields.h"
#include "traces/bytes/source.h"
#include "traces/import/importers.h"
#include "traces/text.h"

#define EVENTS_NEEDED "a trace needs the single events; " FRAG_RECORD_SNAPSHOT

#define RECORD_HEAP                                                        \
    "record the program with heaptrack or with glibc's mtrace; \"fragsim " \
    "help formats\" shows how"

#define USE_RECIPE "\"fragsim help recipes\" shows how to make a CSV of it"

#define XLA_REPORT                                                      \
    "a memory report of XLA, which lacks the live ranges",              \
        "take XLA's files *-buffer-assignment.txt and "                 \
        "*-live-range.txt; \"fragsim help recipes\" shows how to make " \
        "a CSV of them"

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
    {"[",
     {"RMM LOG ", "[A][stream ", "[D][stream "},
     "the debug log of RMM, whose lines are messages",
     "RMM logs its requests to another file, as CSV: "
     "rmm.reinitialize(logging=True, log_file_name=\"rmm.csv\")"},
    {"PK\5\6", {NULL}, "a zip archive without files", "pack it again"},
    {"BZh",
     {NULL},
     "a file that bzip2 compressed, which is not unpacked here",
     "unpack it first with bunzip2"},
    {"version https://git-lfs.github.com/",
     {NULL},
     "a pointer of Git LFS, which stands for a file that was not downloaded",
     "download the file in its repository with `git lfs pull'"},
    {"{",
     {"\"segment_pool_id\"", "\"device_traces\"", "\"segment_type\""},
     "a snapshot of PyTorch as JSON, which no importer reads",
     "pass the .pickle file that _dump_snapshot wrote"},
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
    {"==",
     {"valgrind", "Valgrind"},
     "the output of valgrind, which no importer reads",
     RECORD_HEAP},
    {"",
     {"->malloc(", "->free("},
     "the output of ltrace, which lacks the calls inside of the C library",
     RECORD_HEAP},
    {"desc:",
     {"time_unit:"},
     "the output of valgrind's massif, which has sums and no single events",
     RECORD_HEAP},
    {"{",
     {"\"dhatFileVersion\""},
     "the output of valgrind's DHAT, which has sums and no single events",
     RECORD_HEAP},
    {"heap_v2/",
     {NULL},
     "a heap profile of jemalloc, which has sums of samples",
     RECORD_HEAP},
    {"heap profile:",
     {NULL},
     "a heap profile of tcmalloc, which has sums of samples",
     RECORD_HEAP},
    {"\x04\b\x01\x10\x02", /* after its first byte, which is white space */
     {NULL},
     "a profile of pprof, which has sums and no single events",
     EVENTS_NEEDED},
    {"{",
     {"speedscope.app/file-format-schema"},
     "a profile of speedscope, which has sums and no single events",
     EVENTS_NEEDED},
    {"\x04\"M\x18", /* LZ4 */
     {"memray"},
     "a recording of memray, which only memray reads",
     USE_RECIPE},
    {"memray",
     {NULL},
     "a recording of memray, which only memray reads",
     USE_RECIPE},
    {"BufferAssignment:", {NULL}, "a buffer assignment of XLA", USE_RECIPE},
    {"HloLiveRange",
     {NULL},
     "the live ranges of XLA, which need the buffer assignment beside them",
     USE_RECIPE},
    {"Memory Space:", {"used_by_n_values"}, XLA_REPORT},
    {"Total bytes used:", {"Used values:"}, XLA_REPORT},
    {"",
     {"bfc_allocator.cc:"},
     "a log of TensorFlow's BFC allocator, whose frees have no addresses",
     "record the device calls of the program with `fragsim record -o run.h5 "
     "-- PROGRAM`"},
    {"",
     {"active.all.", "allocated_bytes", "num_alloc_retries"},
     "the counters of torch.cuda.memory_stats()",
     EVENTS_NEEDED},
    {"",
     {"PyTorch CUDA memory summary"},
     "the table of torch.cuda.memory_summary()",
     EVENTS_NEEDED},
    {"", {oom_text}, log_found, log_remedy},
    {"{", {NULL}, "a JSON of an unknown kind", FRAG_RECORD_SNAPSHOT},
    {"[", {NULL}, "a JSON of an unknown kind", FRAG_RECORD_SNAPSHOT},
};

/* A kind of SQLite database. It is recognized by the name of a table, anywhere
 * in the file. */
static const struct database {
    const char *table; /* "": any */
    const char *found, *remedy;
} databases[] = {
    {"CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS",
     "a database of Nsight Systems with memory events", USE_RECIPE},
    {"CREATE TABLE ENUM_NSYS_EVENT_TYPE",
     "a database of Nsight Systems without memory events",
     "record it again with `nsys profile --cuda-memory-usage=true`, then "
     "\"fragsim help recipes\" shows how to make a CSV of it"},
    {"CREATE TABLE EVENTS (EVENT",
     "an SQLite database of Umpire, which no importer reads",
     "use an Umpire that was built without UMPIRE_ENABLE_SQLITE_EXPERIMENTAL: "
     "with UMPIRE_REPLAY=On it writes a log that can be read, the file "
     "*.stats"},
    {"", "an SQLite database",
     "record the program with `fragsim record -o run.h5 -- PROGRAM`"},
};

enum { DATABASES = sizeof(databases) / sizeof(*databases) };

static bool contains(const unsigned char *bytes, size_t count, const char *text)
{
    return field_contains((struct field){(const char *)bytes, count}, text);
}

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

    for (size_t i = 0; frag_importers[i]; i++)
        text_add(known, sizeof(known), ", ", "%s", frag_importers[i]->name);
    return frag_fail(
        e, FRAG_CORRUPT,
        "%s:0: expected a known format (%s or a trace file), found "
        "none of them; \"fragsim help formats\" describes them",
        frag_source_name(source), known);
}

/* Finds out which of the texts the rest of the input has: sets *first to the
 * index of the first of them that occurs anywhere, or to `count`. The overlap
 * of two windows finds a text that lies across their border. */
static enum frag_err find_texts(struct frag_source *source,
                                const char *const *texts, size_t count,
                                size_t *first, struct frag_error *e)
{
    enum { OVERLAP = 64 }; /* bytes; more than any of the texts */
    enum frag_err err;

    for (*first = count; *first;) {
        const unsigned char *bytes;
        const size_t size =
            frag_source_peek(source, FRAG_SOURCE_WINDOW, &bytes, &err, e);

        FRAG_TRY(err);
        for (size_t i = 0; i < *first; i++)
            if (contains(bytes, size, texts[i]))
                *first = i;
        if (size < FRAG_SOURCE_WINDOW)
            return FRAG_OK;
        frag_source_skip(source, size - OVERLAP);
    }
    return FRAG_OK;
}

static enum frag_err explain_database(struct frag_source *source,
                                      struct frag_error *e)
{
    const char *tables[DATABASES];
    size_t kind;

    for (size_t i = 0; i < DATABASES; i++)
        tables[i] = databases[i].table;
    FRAG_TRY(find_texts(source, tables, DATABASES - 1, &kind, e));
    return is_instead(source, databases[kind].found, databases[kind].remedy, e);
}

/* Its mark follows the header of the first file. */
static bool is_tar(const unsigned char *bytes, size_t count)
{
    enum { MARK = 257 };

    return count > MARK + 5 && !memcmp(bytes + MARK, "ustar", 5);
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

/* The texts that any line of a long log may have. */
static enum frag_err explain_log(struct frag_source *source,
                                 struct frag_error *e)
{
    const char *const texts[] = {oom_text};
    size_t found;

    FRAG_TRY(find_texts(source, texts, 1, &found, e));
    return found ? unknown(source, e)
                 : is_instead(source, log_found, log_remedy, e);
}

enum frag_err mistaken_explain(struct frag_source *source, struct frag_error *e)
{
    static const char database[] = "SQLite format 3";
    enum { SHORT = 6 }; /* bytes, the longest mark of a packed form */
    const unsigned char *bytes;
    enum frag_err err;
    const size_t count =
        frag_source_peek(source, FRAG_SOURCE_WINDOW, &bytes, &err, e);

    FRAG_TRY(err);
    if (count < SHORT)
        return too_short(source, count, e);
    if (count >= sizeof(database) && !memcmp(bytes, database, sizeof(database)))
        return explain_database(source, e);
    if (is_tar(bytes, count))
        return is_instead(source, "a tar archive",
                          "unpack it with `tar -xf', and pass the trace in it",
                          e);
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++)
        if (matches(&mistakes[i], bytes, count))
            return is_instead(source, mistakes[i].found, mistakes[i].remedy, e);
    return memchr(bytes, '\0', count) ? unknown(source, e)
                                      : explain_log(source, e);
}
