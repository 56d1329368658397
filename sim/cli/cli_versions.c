/* cli_versions.c - the table of versions. The numbers are those with which the
 * formats are written. */
#include "sim/cli/cli_versions.h"

#include <stdlib.h>

#include "policies/policy.h"
#include "sim/version.h"
#include "traces/file/trace_file.h"
#include "traces/printable.h"
#include "traces/record_log.h"

const struct version versions[] = {
    {"fragsim", frag_version, 0,
     "commands, options, names of policies and exit codes. A change of their "
     "meaning raises the first number, an addition the second, a repair the "
     "third; before 1.0 the second number rises for both. What will go is "
     "deprecated for one second number at least, and says so when it is used. "
     "Texts for people (tables, notes, messages, pages) may change with each "
     "version; programs read JSON, CSV or HDF5"},
    {"result file", FRAG_RESULTS_SCHEMA, 0,
     "a column or an attribute that is added raises the second number; one "
     "that is removed, renamed or has another meaning, the first. fragsim "
     "reads the files of every earlier schema. Those of an earlier first "
     "number are deprecated: fragsim 2 need not read them; `fragsim merge "
     "NEW.h5 OLD.h5' writes them in the present one"},
    {"JSON", FRAG_JSON_SCHEMA, 0,
     "as of a result file; schema_version is the first key of every answer, "
     "and the columns of CSV are those of JSON. A program must accept keys "
     "that it does not know"},
    {"trace file", TRACE_SCHEMA_VERSION, 0,
     "as of a result file; files of all versions with the same first number "
     "are read"},
    {"record log", NULL, RECORD_VERSION,
     "none: the log lies between `fragsim record' and the trace that it makes; "
     "a log of another version is refused"},
    {"policy interface", NULL, FRAG_POLICY_ABI,
     "a compiled policy (./FILE.so) works with every fragsim of this number "
     "and is refused by others, which ask to build it again. The number rises "
     "with each change of policies/policy.h that breaks compiled policies. The "
     "other functions of libfragsim promise nothing before 1.0"},
    {0},
};

const char *version_text(const struct version *v, char text[VERSION_ROOM])
{
    if (v->text)
        snprintf(text, VERSION_ROOM, "%s", v->text);
    else
        snprintf(text, VERSION_ROOM, "%u", v->number);
    return text;
}

void versions_line(FILE *out)
{
    char text[VERSION_ROOM];

    for (const struct version *v = &versions[1]; v->name; v++)
        fprintf(out, "%s %s%s", v->name, version_text(v, text),
                v[1].name ? ", " : "\n");
}

void versions_note(const struct common *common, const char *path,
                   const struct frag_loaded *file)
{
    if (common->quiet || atoi(file->schema) >= atoi(FRAG_RESULTS_SCHEMA))
        return;
    printable_line(
        stderr,
        "%s: note: result files of schema %s are deprecated; columns "
        "that this schema lacks are empty or 0; `fragsim merge "
        "NEW.h5 %s' writes schema " FRAG_RESULTS_SCHEMA,
        path, file->schema, path);
}
