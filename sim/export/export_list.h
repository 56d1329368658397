/* export_list.h - the formats of export: FORMAT(name, description for the help,
 * what it holds, most policies). sim/export/NAME.c has the writer export_NAME.
 * The file has no guard: it is included with different definitions of FORMAT.
 */
/* clang-format off */
FORMAT(csv,
       "the events, with the header op,id,bytes,stream. Every command can read"
       " the file again. Example: fragsim export run.pickle -o events.csv",
       HOLDS_STREAMS | HOLDS_LATE_FREES | HOLDS_RECORD_STREAM |
       HOLDS_EMPTY_CACHE | HOLDS_SIZES | HOLDS_LIVE, 0)
FORMAT(snapshot,
       "a PyTorch snapshot, which pytorch.org/memory_viz draws and every "
       "command can read again. It shows a policy's run, or without -p the "
       "recorded allocator. A policy that maps memory at two addresses at one "
       "time is refused, because the viewer adds up address ranges. Example: "
       "fragsim export run.pickle --to snapshot -p "
       "torch:expandable_segments:True -o expandable.pickle",
       HOLDS_EVERYTHING & ~(HOLDS_RECORD_STREAM | HOLDS_FREE_STREAMS), 1)
FORMAT(chrome,
       "a trace for ui.perfetto.dev and chrome://tracing, with the counters "
       "requested, allocated and reserved of each policy, its OOMs, and the "
       "marks of the trace as slices. Without recorded times, a microsecond is"
       " one event. Example: fragsim export run.pickle --to chrome -p torch -p"
       " best_fit -o run.json",
       HOLDS_EVERYTHING & ~(HOLDS_STREAMS | HOLDS_FREE_STREAMS |
       HOLDS_POOLS | HOLDS_STACKS), SIZE_MAX)
FORMAT(minimalloc,
       "the blocks as buffers id,lower,upper,size of static storage "
       "allocation. Times are event numbers; sizes are rounded up to 512 "
       "bytes, the largest unit of any policy. Example: fragsim export "
       "run.pickle --to minimalloc -o buffers.csv",
       0, 0)
/* clang-format on */
