/* recipes.c - the recipes: shell lines with SQL and Python that turn the files
 * of other tools into a CSV. An importer would need their libraries. */
#include "sim/cli/recipes/recipes.h"

#include <stddef.h>

/* Sources: the schema of Nsight Systems' SQLite exports
 * (docs.nvidia.com/nsight-systems, exporter pages); XLA's dumps
 * (--xla_dump_to), buffer assignment and HLO live range; memray's Python API.
 */

/* A free whose block was allocated before the report began is dropped: the row
 * before it, of the same address, is no allocation. */
static const char nsys_script[] =
    "cat >nsys.sql <<'END'\n"
    ".mode csv\n"
    ".headers on\n"
    "WITH calls AS (\n"
    "  SELECT start, correlationId, bytes, memoryOperationType AS is_free,\n"
    "         coalesce(streamId, 0) AS stream,\n"
    "         dense_rank() OVER (ORDER BY globalPid, contextId, address) AS "
    "id,\n"
    "         lag(memoryOperationType) OVER (\n"
    "           PARTITION BY globalPid, contextId, address\n"
    "           ORDER BY start, correlationId) AS before\n"
    "  FROM CUDA_GPU_MEMORY_USAGE_EVENTS\n"
    "  WHERE memKind = 2 AND deviceId = 0 AND start > 0)\n"
    "SELECT iif(is_free, 'free', 'alloc') AS op, id, bytes, stream\n"
    "FROM calls WHERE NOT is_free OR before = 0\n"
    "ORDER BY start, correlationId;\n"
    "END\n"
    "sqlite3 report.sqlite <nsys.sql >events.csv\n";

/* XLA lets an output occupy the place of an operand in the operation that uses
 * the operand last, so a buffer is live in [begin, end). */
static const char xla_script[] =
    "cat >xla.py <<'END'\n"
    "import re, sys\n"
    "assignment, ranges = (open(path).read() for path in sys.argv[1:3])\n"
    "live = {name: (int(begin), int(end)) for name, begin, end in\n"
    "        re.findall(r'^    (\\S+\\}):(\\d+)-(\\d+)$', ranges, re.M)}\n"
    "print('id,lower,upper,size')\n"
    "for part in re.split(r'^allocation ', assignment, flags=re.M):\n"
    "    if not re.match(r'\\d+: size \\d+, preallocated-temp', part):\n"
    "        continue\n"
    "    for name, size in re.findall(\n"
    "            r'^ value: <\\d+ (\\S+) @\\d+> \\(size=(\\d+),', part, "
    "re.M):\n"
    "        begin, end = live[name if '{' in name else name + '{}']\n"
    "        print(f'{name},{begin},{max(end, begin + 1)},{size}')\n"
    "END\n"
    "python3 xla.py MODULE-buffer-assignment.txt MODULE-live-range.txt "
    ">buffers.csv\n";

static const char memray_script[] =
    "cat >memray_to_csv.py <<'END'\n"
    "import sys\n"
    "from memray import AllocatorType, FileReader\n"
    "frees = {AllocatorType.FREE, AllocatorType.MUNMAP, "
    "AllocatorType.PYMALLOC_FREE}\n"
    "live = set()\n"
    "print('op,id,bytes,stream')\n"
    "for call in FileReader(sys.argv[1]).get_allocation_records():\n"
    "    if call.address in live:\n"
    "        print(f'free,{call.address},,')\n"
    "    live.discard(call.address)\n"
    "    if call.size and AllocatorType(call.allocator) not in frees:\n"
    "        print(f'alloc,{call.address},{call.size},0')\n"
    "        live.add(call.address)\n"
    "END\n"
    "python3 memray_to_csv.py run.bin >events.csv\n";

const struct recipe recipes[] = {
    {"nsys", "memory events of Nsight Systems, as an SQLite database",
     "nsys profile --cuda-memory-usage=true PROGRAM, then nsys export --type "
     "sqlite",
     "stacks; of a caching allocator it has the segments, not the requests; "
     "the script takes device 0 of all processes, drops frees of blocks that "
     "are older than the report, and makes an empty CSV of a report without "
     "times",
     nsys_script},
    {"xla", "buffers that XLA places in the temporary memory of a program",
     "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" PROGRAM, with "
     "JAX or TensorFlow",
     "streams, times, stacks; XLA places the buffers ahead of the run, so the "
     "CSV is a static instance; parameters and outputs are not in it",
     xla_script},
    {"memray", "allocations of a Python process",
     "memray run -o run.bin PROGRAM",
     "streams, times, failed requests; the script leaves out the stacks",
     memray_script},
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
