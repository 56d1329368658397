/* fuzz_journal.c - fuzzes the reader of a sweep's journal (libFuzzer): entries
 * with any bytes and a correct checksum. The checksum detects accidental
 * damage, not files made on purpose. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/experiments/sweep/entries.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct trace_header header, again;
    struct cell_notes notes;
    struct frag_run run;
    frag_size total;
    size_t packed;
    void *copy;

    (void)run_key(bytes, size);
    if (run_unpack(bytes, size, &total, &notes, &run) == FRAG_OK)
        frag_run_free(&run);
    if (trace_header_unpack(bytes, size, &header) != FRAG_OK)
        return 0;
    copy = trace_header_pack(&header, &packed);
    if (copy && trace_header_unpack(copy, packed, &again) != FRAG_OK)
        abort();
    if (copy)
        trace_header_free(&again);
    free(copy);
    trace_header_free(&header);
    return 0;
}
