/* recipes.c - the recipes: shell lines with SQL and Python that turn the files
 * of other tools into a CSV. An importer would need their libraries. */
#include "sim/cli/recipes.h"

#include "sim/cli/texts/texts.h"

const struct recipe recipes[] = {
    {"nsys", "memory events of Nsight Systems, as an SQLite database",
     "nsys profile --cuda-memory-usage=true PROGRAM, then nsys export --type "
     "sqlite",
     "stacks; of a caching allocator it has the segments, not the requests; "
     "the script takes device 0 of all processes, drops frees of blocks that "
     "are older than the report, and makes an empty CSV of a report without "
     "times",
     text_nsys_sh},
    {"xla", "buffers that XLA places in the temporary memory of a program",
     "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" PROGRAM, with "
     "JAX or TensorFlow",
     "streams, times, stacks; XLA places the buffers ahead of the run, so the "
     "CSV is a static instance; parameters and outputs are not in it",
     text_xla_sh},
    {"memray", "allocations of a Python process",
     "memray run -o run.bin PROGRAM",
     "streams, times, failed requests; the script leaves out the stacks",
     text_memray_sh},
    {0},
};

const char recipes_text[] =
    "fragsim reads no file of these tools itself. The lines below make a CSV "
    "of it; paste them into a shell and change the names of the files. Any "
    "other tool that sees each allocation and each free, such as a script of "
    "bpftrace, can print this CSV too: the header op,id,bytes,stream, then a "
    "line alloc,ADDRESS,BYTES,STREAM or free,ADDRESS,, for each call, with "
    "decimal numbers. A tracer that drops events under load makes a CSV that "
    "is wrong without notice.";
