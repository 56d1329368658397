/* manual.c - prints the tables of commands, options, policies, formats, columns
 * and words as text and as roff. It holds only texts that no table has. */
#include "sim/cli/manual.h"
#include "sim/cli/apart.h"

#include <ctype.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/cli/cli.h"
#include "sim/cli/cli_versions.h"
#include "sim/cli/texts/cli_texts.h"
#include "sim/results/columns.h"
#include "sim/version.h"
#include "traces/bytes/source.h"
#include "traces/edit/edit.h"
#include "traces/import/importers.h"
#include "traces/text.h"

static const char purpose[] =
    "replay recorded allocation traces against allocator policies";

static const struct exit_row {
    int code;
    const char *text;
} exits[] = {
#define X(name, code, text) {code, text},
    FRAG_EXITS(X)
#undef X
};

static const struct {
    const char *name, *text;
} variables[] = {
    {"NO_COLOR", "if it is set and not empty, --color=auto means never"},
    {"SOURCE_DATE_EPOCH",
     "time in seconds since the epoch that results store as the time of the "
     "run; measured times are then left out, and equal runs write equal files"},
    {SOURCE_MOST_VARIABLE, "the value of --" SOURCE_MOST_OPTION},
    {APART_SECONDS,
     "seconds that a policy in a shared library may work on one event; 0: "
     "without end (default: 60)"},
    {APART_MEMORY,
     "memory of the host that a run with such a policy may take (default: "
     "three quarters of what is available)"},
    {"FRAG_PLOTS", "folder that holds the gnuplot scripts"},
    {"CI, TERM",
     "if CI is set and not empty, or TERM is dumb or not set, there is no "
     "progress bar"},
};

enum { EXITS = sizeof(exits) / sizeof(*exits) };
enum { VARIABLES = sizeof(variables) / sizeof(*variables) };

static void print_exits(FILE *out)
{
    for (size_t i = 0; i < EXITS; i++) {
        fprintf(out, "  %-4d %s\n", exits[i].code, exits[i].text);
        for (const struct exit_case *c = exit_cases; c->verb; c++)
            if ((int)c->code == exits[i].code)
                fprintf(out, "       %-10s %s\n", c->verb, c->text);
    }
}

static void print_table(FILE *out, const char *title,
                        const struct frag_column *c)
{
    fprintf(out, "%s\n\n", title);
    for (; c->kind != FRAG_COLUMN_END; c++) {
        fprintf(out, "  %-26s %-5s %s\n", c->name, c->units, c->meaning);
        if (c->formula)
            fprintf(out, "  %-26s       = %s\n", "", c->formula);
    }
    fputc('\n', out);
}

static const char results_text[] =
    "A result file is HDF5. /summary is a table with one row for each run; its "
    "columns are those of JSON and CSV. A number that is none (an unlimited "
    "capacity, the first OOM of a run without one) is NaN; it is null in JSON "
    "and empty in CSV. In files of schema_version 1 it is -1; every command "
    "reads them too. /runs/N has the run's provenance as attributes, "
    "and the groups series, oom and segments with one dataset for each column. "
    "Every column has the attributes units and long_name; a computed column "
    "also has the attribute formula. Texts have a fixed length (from schema "
    "2.2 on), which h5py reads as bytes. A sweep's file has the attributes "
    "shards, the parts of the sweep that it has (--shard 1/1: all), and "
    "missing, the cells that failed, if there are any.";

/* sim/cli/site/more.md has the same lines; tests/package/check_pandas.py runs
 * them. */
static const char python_text[] =
    "import h5py, pandas\n"
    "df = pandas.DataFrame(h5py.File(\"results.h5\")[\"summary\"][:])\n"
    "df = df.apply(lambda column: column.str.decode(\"utf-8\", \"replace\")\n"
    "              if column.dtype == object else column)";

static const char names_text[] =
    "A file name or another text of an input may hold any bytes. In tables, "
    "messages, CSV, pages and figures it is printable: a line break is written "
    "as \\n, another control character as \\x1b or \\u009b. JSON and HDF5 hold "
    "the exact text.";

static const struct {
    const char *title;
    const struct frag_column *columns;
} tables[] = {
    {"/summary", frag_summary_columns},
    {"/runs/N/series, in buckets of events; minima and maxima are exact",
     frag_series_columns},
    {"/runs/N/oom, one row for each request that failed", frag_oom_columns},
    {"/runs/N/segments", frag_segment_columns},
};

enum { TABLES = sizeof(tables) / sizeof(*tables) };

static void print_lines(FILE *out, const char *text)
{
    while (*text) {
        const int n = (int)strcspn(text, "\n");

        fprintf(out, "  %.*s\n", n, text);
        text += n + (text[n] == '\n');
    }
}

static const char formats_text[] =
    "The format of an input is recognized by its contents, not by its name. "
    "Input may be compressed with gzip, xz or zstd, or be the first .pickle, "
    ".pkl or .txt file of a zip archive; - is stdin. Where "
    "an answer rests on something that its format lacks, the notes of the "
    "answer state it.";

/* traces/file/ reads trace files, so no importer describes them. */
static const struct frag_importer trace_file = {
    .name = "trace file",
    .summary = "trace of fragsim (HDF5), which is read the fastest",
    .made = "fragsim import TRACE -o run.h5, or fragsim record -o run.h5 -- "
            "PROGRAM",
    .lacks = "nothing that its source has; it must not be compressed, and "
             "stdin cannot be one",
};

#define TO_CSV(name) "python3 " name "_to_csv.py "

/* How to make a CSV of files that no importer reads. The first four members are
 * as in struct frag_importer. tests/commands/check_recipes.py runs the lines.
 */
static const struct recipe {
    const char *name, *summary, *made, *lacks;
    const char *script;
    const char *program; /* NULL, or NAME_to_csv.py, which `script` runs */
} recipes[] = {
    {"nsys", "memory events of Nsight Systems, as an SQLite database",
     "nsys profile --cuda-memory-usage=true PROGRAM, then nsys export --type "
     "sqlite",
     "stacks; of a caching allocator it has the segments, not the requests; "
     "the script takes device 0 of all processes, drops frees of blocks that "
     "are older than the report, and makes an empty CSV of a report without "
     "times",
     text_nsys_sh, NULL},
    {"xla", "buffers that XLA places in the temporary memory of a program",
     "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" PROGRAM, with "
     "JAX or TensorFlow",
     "streams, times, stacks; XLA places the buffers ahead of the run, so the "
     "CSV is a static instance; parameters and outputs are not in it",
     text_xla_sh, NULL},
    {"memray", "allocations of a Python process",
     "memray run -o run.bin PROGRAM",
     "streams, times, failed requests; the script leaves out the stacks",
     text_memray_sh, NULL},
    {"heaptrack", "allocations of a process, recorded by heaptrack",
     "heaptrack PROGRAM; with --raw, the data has addresses",
     "streams, times, stacks, failed requests; without --raw also which of "
     "equal blocks a free is of",
     "zstd -dc heaptrack.PROGRAM.zst | " TO_CSV("heaptrack") ">events.csv\n",
     text_heaptrack_to_csv_py},
    {"android", "malloc calls of an Android process (memory_replay)",
     "malloc_debug with record_allocs on Android",
     "streams, times, stacks, alignments, failed requests",
     TO_CSV("android") "<calls.txt >events.csv\n", text_android_to_csv_py},
    {"mtrace", "malloc calls of a process, logged by glibc's mtrace()",
     "MALLOC_TRACE=run.mtrace LD_PRELOAD=libc_malloc_debug.so.0 PROGRAM, in a "
     "program that calls mtrace()",
     "streams, times, stacks, alignments, failed requests",
     TO_CSV("mtrace") "<run.mtrace >events.csv\n", text_mtrace_to_csv_py},
    {"umpire", "replay log of Umpire (JSON lines)",
     "UMPIRE_REPLAY=On PROGRAM; the log is the file *.stats",
     "streams, times, failed requests, stacks, which pool a block is of",
     TO_CSV("umpire") "<umpire.stats >events.csv\n", text_umpire_to_csv_py},
    {"rocprof", "CSV of rocprofv3 for programs on AMD GPUs",
     "rocprofv3 --memory-allocation-trace -f csv -- PROGRAM",
     "streams, times, stacks, failed requests; of a caching allocator it has "
     "the segments, not the requests",
     TO_CSV("rocprof") "<memory_allocation_trace.csv >events.csv\n",
     text_rocprof_to_csv_py},
    {0},
};

static const char recipes_text[] =
    "fragsim reads no file of these tools itself. The lines below make a CSV "
    "of it; paste them into a shell and change the names of the files. Any "
    "other tool that sees each allocation and each free, such as a script of "
    "bpftrace, can print this CSV too: the header op,id,bytes,stream, then a "
    "line alloc,ADDRESS,BYTES,STREAM or free,ADDRESS,, for each call, with "
    "decimal numbers. A tracer that drops events under load makes a CSV that "
    "is wrong without notice.";

static void print_labelled(FILE *out, const char *label, const char *text)
{
    char line[1024];

    snprintf(line, sizeof(line), "%s: %s", label, text);
    text_paragraph(out, 6, line);
}

static void print_format(FILE *out, const char *name, const char *summary,
                         const char *made, const char *lacks)
{
    fprintf(out, "  %s\n", name);
    text_paragraph(out, 6, summary);
    print_labelled(out, "made by", made);
    if (lacks)
        print_labelled(out, "lacks", lacks);
}

static void print_importer(FILE *out, const struct frag_importer *i)
{
    print_format(out, i->name, i->summary, i->made, i->lacks);
}

static void print_formats(FILE *out)
{
    text_paragraph(out, 0, formats_text);
    fputc('\n', out);
    print_importer(out, &trace_file);
    for (size_t i = 0; frag_importers[i]; i++)
        print_importer(out, frag_importers[i]);
    fputs("\nBy a recipe (fragsim help recipes):\n\n", out);
    for (const struct recipe *r = recipes; r->name; r++)
        print_format(out, r->name, r->summary, r->made, r->lacks);
}

static void print_recipes(FILE *out)
{
    text_paragraph(out, 0, recipes_text);
    for (const struct recipe *r = recipes; r->name; r++) {
        fprintf(out, "\n%s: %s\n\n", r->name, r->summary);
        if (r->program)
            fprintf(out, "cat >%s_to_csv.py <<'END'\n%sEND\n", r->name,
                    r->program);
        fputs(r->script, out);
    }
}

static void print_words(FILE *out)
{
    fputs(text_words_txt, out);
}

static void print_results(FILE *out)
{
    fprintf(out, "%s\n\n", results_text);
    print_lines(out, python_text);
    fprintf(out, "\n%s\n\n", names_text);
    for (size_t i = 0; i < TABLES; i++)
        print_table(out, tables[i].title, tables[i].columns);
}

static void print_versions(FILE *out)
{
    char text[VERSION_ROOM];

    for (const struct version *v = versions; v->name; v++) {
        fprintf(out, "  %s %s\n", v->name, version_text(v, text));
        print_labelled(out, "promised", v->promise);
    }
}

const struct topic topics[] = {
    {"words", "the meaning of each word in the tables", print_words},
    {"formats", "inputs that can be read", print_formats},
    {"recipes", "how to make a CSV of files that cannot be read",
     print_recipes},
    {"results", "the result file and the meaning of each column",
     print_results},
    {"versions",
     "the numbers of formats and interfaces, and what each promises",
     print_versions},
    {"edits", "the edits of a trace, for edit and sweep --edit",
     frag_edits_describe},
    {"exits", "exit codes and their meaning", print_exits},
    {0},
};

void manual_overview(FILE *out, const struct verb *const *verbs)
{
    static const char *const first[] = {"triage", "dry", "fit", "replay",
                                        "report"};

    fprintf(out, "fragsim - %s\n\n", purpose);
    fputs("usage: fragsim COMMAND ...\n\n", out);
    for (size_t i = 0; verbs[i]; i++)
        fprintf(out, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    for (const struct alias *a = aliases; a->name; a++)
        fprintf(out, "  %-10s %s (alias of %s)\n", a->name, a->summary,
                a->verb);
    fputs("\nMore: fragsim help COMMAND, or one of these:\n\n", out);
    for (size_t i = 0; topics[i].name; i++)
        fprintf(out, "  %-10s %s\n", topics[i].name, topics[i].summary);
    fputs("\nFirst steps:\n\n", out);
    for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
        fprintf(out, "  %s\n", verb_find(verbs, first[i])->example);
}

/* -- the man page -------------------------------------------------------- */

/* Text as roff: backslashes, hyphens, and a period or quote at the start of a
 * line are escaped; an empty line separates paragraphs. */
static void roff(FILE *out, const char *text)
{
    bool start = true;

    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (text[0] == '\n' && text[1] == '\n') {
            fputs("\n.PP", out);
            continue;
        }
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        start = *text == '\n';
    }
}

static void entry(FILE *out, const char *term, const char *text)
{
    fputs(".TP\n.B ", out);
    roff(out, term);
    fputc('\n', out);
    roff(out, text);
    fputc('\n', out);
}

static void section(FILE *out, const char *title, const char *text)
{
    fprintf(out, ".SH %s\n", title);
    if (text)
        roff(out, text);
    fputs("\n", out);
}

static void option_entries(FILE *out, const struct option_row *row)
{
    for (; row && row->name; row++) {
        char term[128];

        snprintf(term, sizeof(term), "%c%c%s--%s%s%s", row->key ? '-' : ' ',
                 row->key ? row->key : ' ', row->key ? ", " : "", row->name,
                 row->value ? "=" : "", row->value ? row->value : "");
        entry(out, term + (row->key ? 0 : 2), row->help);
    }
}

static void verb_synopsis(FILE *out, const struct verb *v)
{
    fprintf(out, ".B fragsim %s\n[\\fIOPTION\\fR...] ", v->name);
    roff(out, v->args ? v->args : "");
    fputc('\n', out);
}

static void verb_section(FILE *out, const struct verb *v)
{
    fprintf(out, ".SS %s\n", v->name);
    verb_synopsis(out, v);
    fputs(".PP\n", out);
    roff(out, v->summary);
    fputs(".\n.PP\n", out);
    roff(out, v->about);
    fputc('\n', out);
    option_entries(out, v->options);
}

/* Of one command, or of all: NULL. */
static void exit_section(FILE *out, const struct verb *v)
{
    section(out, "EXIT STATUS", NULL);
    for (size_t i = 0; i < EXITS; i++) {
        char code[8];

        snprintf(code, sizeof(code), "%d", exits[i].code);
        entry(out, code, exits[i].text);
        for (const struct exit_case *c = exit_cases; c->verb; c++)
            if ((int)c->code == exits[i].code &&
                (!v || !strcmp(v->name, c->verb))) {
                fputs(".RS\n", out);
                entry(out, c->verb, c->text);
                fputs(".RE\n", out);
            }
    }
}

static void example(FILE *out, const struct verb *v)
{
    if (!v->example)
        return;
    fputs(".EX\n", out);
    roff(out, v->example);
    fputs("\n.EE\n.PP\n", out);
}

void manual_verb_page(FILE *out, const struct verb *v)
{
    fputs(".TH \"FRAGSIM\\-", out);
    for (const char *c = v->name; *c; c++)
        fputc(toupper((unsigned char)*c), out);
    fprintf(out, "\" 1 \"\" \"fragsim %s\" \"User Commands\"\n", frag_version);
    fprintf(out, ".SH NAME\nfragsim\\-%s \\- ", v->name);
    roff(out, v->summary);
    fputs("\n.SH SYNOPSIS\n", out);
    verb_synopsis(out, v);
    section(out, "DESCRIPTION", v->about);
    section(out, "OPTIONS", NULL);
    option_entries(out, v->options);
    option_entries(out, common_options);
    exit_section(out, v);
    if (v->example)
        section(out, "EXAMPLE", NULL);
    example(out, v);
    section(out, "SEE ALSO", NULL);
    fputs(".BR fragsim (1)\n", out);
}

static void policy_section(FILE *out)
{
    section(
        out, "POLICIES",
        "A policy is written NAME or NAME:PARAMS. The PARAMS of torch are a "
        "value of PyTorch's own variable PYTORCH_CUDA_ALLOC_CONF; "
        "torch@recorded uses the settings that are stored in the trace, and "
        "torch@2.6:PARAMS the rules and settings of that release of PyTorch, "
        "from 2.1 to 2.15 (default: the release that wrote the trace, else "
        "2.15). The PARAMS of all other policies are key=value,... with the "
        "keys that `fragsim policies` prints. A name of two words may be "
        "written with a colon: plan:online,rest=expandable is "
        "plan_online:rest=expandable.");
    for (size_t i = 0; frag_policies[i]; i++)
        entry(out, frag_policies[i]->name, frag_policies[i]->summary);
}

/* The topics have their own texts, which the page does not repeat. */
static void topic_section(FILE *out)
{
    section(out, "TOPICS", "fragsim help TOPIC prints each of them.");
    for (size_t i = 0; topics[i].name; i++)
        entry(out, topics[i].name, topics[i].summary);
}

void manual_page(FILE *out, const struct verb *const *verbs)
{
    fprintf(out, ".TH FRAGSIM 1 \"\" \"fragsim %s\" \"User Commands\"\n",
            frag_version);
    fprintf(out, ".SH NAME\nfragsim \\- %s\n", purpose);
    fputs(".SH SYNOPSIS\n.B fragsim\n\\fICOMMAND\\fR [\\fIOPTION\\fR...] "
          "[\\fIARGUMENT\\fR...]\n",
          out);
    section(
        out, "DESCRIPTION",
        "Would another allocator, or another setting of the same allocator, "
        "have fitted? fragsim answers this without a GPU: it replays the "
        "requests of a recorded run against allocator policies on a "
        "simulated device, and measures peak reserved memory, "
        "fragmentation and out-of-memory points. Results go to stdout or "
        "to files, messages to stderr.");
    section(out, "COMMANDS", NULL);
    for (size_t i = 0; verbs[i]; i++)
        verb_section(out, verbs[i]);
    for (const struct alias *a = aliases; a->name; a++) {
        fprintf(out, ".SS %s\n", a->name);
        roff(out, a->summary);
        fprintf(out, "\n(alias of %s)\n", a->verb);
    }
    section(out, "COMMON OPTIONS", NULL);
    option_entries(out, common_options);
    policy_section(out);
    exit_section(out, NULL);
    section(out, "ENVIRONMENT", NULL);
    for (size_t i = 0; i < VARIABLES; i++)
        entry(out, variables[i].name, variables[i].text);
    section(out, "EXAMPLES", NULL);
    for (size_t i = 0; verbs[i]; i++)
        example(out, verbs[i]);
    topic_section(out);
}
