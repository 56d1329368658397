/* fuzz_journal.c - fuzzes the reader of a sweep's journal (libFuzzer): entries
 * with any bytes and a correct checksum. The checksum detects accidental
 * damage, not files made on purpose. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/experiments/sweep/sweep_entries.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct cell_notes notes;
    struct frag_run run;
    frag_size total;

    (void)run_key(bytes, size);
    if (run_unpack(bytes, size, &total, &notes, &run) == FRAG_OK)
        frag_run_free(&run);
    return 0;
}
