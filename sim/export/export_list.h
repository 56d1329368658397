/* export_list.h - the formats of export: FORMAT(name, what it holds, most
 * policies, writer of a trace, writer of runs). The file has no guard: it is
 * included with different definitions of FORMAT. */
/* clang-format off */
FORMAT(csv, HOLDS_STREAMS | HOLDS_LATE_FREES | HOLDS_RECORD_STREAM |
       HOLDS_EMPTY_CACHE | HOLDS_SIZES | HOLDS_LIVE | HOLDS_REPETITIONS,
       0, NULL, export_csv)
FORMAT(snapshot, HOLDS_EVERYTHING & ~(HOLDS_RECORD_STREAM | HOLDS_FREE_STREAMS),
       1, NULL, export_snapshot)
FORMAT(chrome, HOLDS_EVERYTHING & ~(HOLDS_STREAMS | HOLDS_FREE_STREAMS |
       HOLDS_POOLS | HOLDS_STACKS),
       SIZE_MAX, NULL, export_chrome)
FORMAT(folded, HOLDS_EVERYTHING, 0, NULL, export_folded)
FORMAT(rmm, HOLDS_STREAMS | HOLDS_FREE_STREAMS | HOLDS_TIMES | HOLDS_FAILED |
       HOLDS_SIZES | HOLDS_LIVE,
       0, frag_trace_write_rmm, NULL)
FORMAT(minimalloc, 0, 0, frag_trace_write_minimalloc, NULL)
/* clang-format on */
