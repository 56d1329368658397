/* trace_file.h - the layout of a trace file, which is HDF5, and the function
 * that reads one. Only the version is used outside of traces/; other folders
 * read files by trace.h.
 *
 *   /                          attributes schema_name "fragsim-trace",
 *                              schema_version "1.1", tool, source_path,
 *                              source_format, source_sha256, settings,
 *                              releases
 *   /devices/<n>               attributes slots, initial, has_actions, has_end,
 *                              free_streams (absent: 0)
 *   /devices/<n>/events/       op id bytes stream pool time stack
 *   /devices/<n>/recorded/     addr actions start_segments start_blocks
 *                              end_segments end_blocks
 *   /devices/<n>/              streams pools marks changes (since 1.1)
 *   /strings/                  text first: string k is text[first[k]] up to the
 *                              0 before first[k + 1]
 *   /stacks/                   frames first
 *   /notes/                    text first
 *
 * Only /devices/<n>/events/{op,id,bytes} are required. A dataset that is absent
 * means zeros, an empty table, or "not recorded". The writer stores event
 * columns contiguous, uncompressed, little-endian and aligned to a page, so
 * that the reader can map them; the reader copies columns that are stored
 * otherwise. Every dataset has the attributes units and long_name.
 *
 * HDF5 is not thread-safe: a process may run only one of these functions at a
 * time.
 */
#ifndef FRAG_TRACES_FILE_TRACE_FILE_H
#define FRAG_TRACES_FILE_TRACE_FILE_H

#include "traces/trace.h"

/* The number after the point rises if something is added, and that before it
 * if a program that reads the earlier layout would read wrong values; files of
 * another number before the point are refused. */
#define TRACE_SCHEMA_VERSION "1.1"

extern const char *const trace_file_format; /* "hdf5" */

/* Returns whether the first bytes of a file are those of HDF5. */
bool trace_file_is(const unsigned char *bytes, size_t count);

/* Reads a trace file, which must be HDF5. opts is not used. CORRUPT, IO with a
 * message in e; NOMEM. On error *out is unchanged. */
enum frag_err trace_file_read(const char *path, struct frag_trace **out,
                              struct frag_error *e) FRAG_MUST_CHECK;

#endif
