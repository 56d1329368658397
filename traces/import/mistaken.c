/* mistaken.c - the table of the files that users take for a trace: the output
 * of other functions of PyTorch, of its profiler, of other tools that observe
 * memory, and of fragsim itself. It imports none of them. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "traces/bytes/fields.h"
#include "traces/bytes/source.h"
#include "traces/import/importers.h"
#include "traces/text.h"

#define BY_SCRIPT(script) \
    "which " script " makes a CSV of; \"fragsim help recipes\" has it"
#define BY_RECIPE "\"fragsim help recipes\" shows how to make a CSV of it"

#define TIMELINE                                                           \
    "a memory timeline of torch.profiler (export_memory_timeline), which " \
    "has no addresses; export_chrome_trace(\"run.json.gz\") of the same "  \
    "profile has them, or " FRAG_RECORD_SNAPSHOT
#define RMM                                                                  \
    "the debug log of RMM, whose lines are messages; RMM logs its requests " \
    "to another file, as CSV: rmm.reinitialize(logging=True, "               \
    "log_file_name=\"rmm.csv\")"
#define RESULTS                                                              \
    "results of fragsim, which other programs read; pass the trace itself, " \
    "or write results with -o results.h5 for `fragsim plot` and `fragsim "   \
    "report`"
#define HEAP                                                                  \
    "a report of valgrind, ltrace, jemalloc or tcmalloc, which lacks calls "  \
    "or has sums of them; record the program with heaptrack or with glibc's " \
    "mtrace; \"fragsim help recipes\" makes a CSV of either"
#define SUMS                                                          \
    "a profile of pprof or speedscope, which has sums and no single " \
    "events; " FRAG_RECORD_SNAPSHOT
#define MTRACE "a log of glibc's mtrace, " BY_SCRIPT("mtrace_to_csv.py")
#define MEMRAY "a recording of memray, which only memray reads; " BY_RECIPE
#define XLA                                                          \
    "a memory report of XLA; its files *-buffer-assignment.txt and " \
    "*-live-range.txt together have the buffers; " BY_RECIPE
#define COUNTERS                                                      \
    "the counters of torch.cuda.memory_stats() or memory_summary(), " \
    "which have no single events; " FRAG_RECORD_SNAPSHOT
#define SERVER                                                                 \
    "the log of an inference server, which `fragsim triage' reads; for other " \
    "answers, " FRAG_RECORD_SNAPSHOT
#define OTHER_JSON "a JSON of an unknown kind; " FRAG_RECORD_SNAPSHOT

/* A kind of file: how it starts, after white space, and a word among its first
 * FRAG_SOURCE_WINDOW bytes; "" is any. The first row that fits is said. */
static const struct {
    size_t at; /* where `start` stands, if not at the start */
    const char *start, *word, *sentence;
} mistakes[] = {
    {257, "ustar", "",
     "a tar archive; unpack it with `tar -xf', and pass the trace in it"},
    {0, "PK\5\6", "", "a zip archive without files; pack it again"},
    {0, "BZh", "",
     "a file that bzip2 compressed, which is not unpacked here; unpack it "
     "first with bunzip2"},
    {0, "version https://git-lfs.github.com/", "",
     "a pointer of Git LFS, which stands for a file that was not downloaded; "
     "download the file in its repository with `git lfs pull'"},
    {0, "SQLite format 3", "",
     "an SQLite database; if it is of Nsight Systems, with memory events "
     "(nsys profile --cuda-memory-usage=true), " BY_RECIPE},
    {0, "= Start", "", MTRACE},
    {0, "@ ", " + 0x", MTRACE},
    {0, "", "\"allocator_ref\"",
     "a replay log of Umpire, " BY_SCRIPT("umpire_to_csv.py")},
    {0, "v 1", "\nI ", "data of heaptrack, " BY_SCRIPT("heaptrack_to_csv.py")},
    {0, "", "Allocation_Size",
     "the CSV of rocprofv3, " BY_SCRIPT("rocprof_to_csv.py")},
    {0, "", ": malloc 0x",
     "malloc calls of Android, " BY_SCRIPT("android_to_csv.py")},
    {0, "[[", "", TIMELINE},
    {0, "<", "Memory Timeline", TIMELINE},
    {0, "<", "",
     "an HTML page; a page of memory_viz is made from a snapshot: pass the "
     "snapshot, the .pickle file"},
    {0, "[", "\"ph\"",
     "a JSON of profiler events, which no importer "
     "reads; " FRAG_RECORD_SNAPSHOT},
    {0, "[", "RMM LOG ", RMM},
    {0, "[", "][stream ", RMM},
    {0, "{", "\"segment_type\"",
     "a snapshot of PyTorch as JSON, which no importer reads; pass the .pickle "
     "file that _dump_snapshot wrote"},
    {0, "{", "\"tool\": \"fragsim ", RESULTS},
    {0, "trace,device,policy,", "", RESULTS},
    {0, "==", "algrind", HEAP},
    {0, "desc:", "time_unit:", HEAP},
    {0, "{", "\"dhatFileVersion\"", HEAP},
    {0, "heap_v2/", "", HEAP},
    {0, "heap profile:", "", HEAP},
    {0, "", "->malloc(", HEAP},
    {0, "\x04\b\x01\x10\x02", "", SUMS}, /* its first byte is white space */
    {0, "{", "speedscope.app/file-format-schema", SUMS},
    {0, "memray", "", MEMRAY},
    {0, "\x04\"M\x18", "memray", MEMRAY}, /* in LZ4 */
    {0, "BufferAssignment:", "", XLA},
    {0, "HloLiveRange", "", XLA},
    {0, "Memory Space:", "used_by_n_values", XLA},
    {0, "Total bytes used:", "Used values:", XLA},
    {0, "", "bfc_allocator.cc:",
     "a log of TensorFlow's BFC allocator, whose frees have no addresses; "
     "record the device calls of the program with `fragsim record -o run.h5 "
     "-- PROGRAM`"},
    {0, "", "active.all.", COUNTERS},
    {0, "", "num_alloc_retries", COUNTERS},
    {0, "", "PyTorch CUDA memory summary", COUNTERS},
    {0, "", "Model loading took ", SERVER},
    {0, "", "KV Cache is allocated", SERVER},
    {0, "", "CUDA out of memory",
     "a text with PyTorch's report of an OOM, which has no "
     "events; " FRAG_RECORD_SNAPSHOT ", also when an exception ends it"},
    {0, "{", "", OTHER_JSON},
    {0, "[", "", OTHER_JSON},
};

static bool starts_with(struct field text, size_t at, const char *start)
{
    while (!at && text.length && isspace((unsigned char)*text.text))
        text = (struct field){text.text + 1, text.length - 1};
    return text.length >= at &&
           field_begins((struct field){text.text + at, text.length - at},
                        start);
}

/* The sentence about a file that begins with `text`; NULL: it is unknown. */
static const char *find(struct field text)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++)
        if (starts_with(text, mistakes[i].at, mistakes[i].start) &&
            (!*mistakes[i].word || field_contains(text, mistakes[i].word)))
            return mistakes[i].sentence;
    return NULL;
}

enum frag_err mistaken_explain(struct frag_source *source, struct frag_error *e)
{
    enum { SHORT = 6 }; /* bytes, the longest mark of a packed form */
    const unsigned char *bytes;
    enum frag_err err;
    const size_t count =
        frag_source_peek(source, FRAG_SOURCE_WINDOW, &bytes, &err, e);
    const char *sentence =
        count ? find((struct field){(const char *)bytes, count}) : NULL;
    char known[256] = "";

    FRAG_TRY(err);
    if (count < SHORT)
        return frag_fail(e, FRAG_CORRUPT,
                         "%s:0: expected a trace, found %zu byte%s only; it is "
                         "incomplete: copy it again, or see why the program "
                         "that should write it did not",
                         frag_source_name(source), count,
                         count == 1 ? "" : "s");
    if (sentence)
        return frag_fail(e, FRAG_CORRUPT, "%s:0: expected a trace, found %s",
                         frag_source_name(source), sentence);
    for (size_t i = 0; frag_importers[i]; i++)
        text_add(known, sizeof(known), ", ", "%s", frag_importers[i]->name);
    return frag_fail(
        e, FRAG_CORRUPT,
        "%s:0: expected a known format (%s or a trace file), found none of "
        "them; \"fragsim help formats\" describes them",
        frag_source_name(source), known);
}
