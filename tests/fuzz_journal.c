/* fuzz_journal.c - records of a sweep's journal with any bytes in them: a
 * checksum keeps out accidents, not files that were made. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/experiments/sweep/subject.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct subject subject, again;
    struct frag_run run;
    frag_size total;
    size_t packed;
    void *copy;

    (void)run_key(bytes, size);
    if (run_unpack(bytes, size, &total, &run) == FRAG_OK)
        frag_run_free(&run);
    if (subject_unpack(bytes, size, &subject) != FRAG_OK)
        return 0;
    copy = subject_pack(&subject, &packed);
    if (copy && subject_unpack(copy, packed, &again) != FRAG_OK)
        abort();
    if (copy)
        subject_free(&again);
    free(copy);
    subject_free(&subject);
    return 0;
}
