/* fuzz_record.c - fuzzes the reader of recorder logs (libFuzzer): any bytes as
 * the calls of a log. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/support/record_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct record_call none[] = {CALLS_END};
    unsigned char *log = malloc(LOG_ROOM + size);
    struct frag_trace *trace = NULL;
    struct frag_error e;
    size_t used;

    if (!log)
        return 0;
    used = write_log(log, none);
    if (size)
        memcpy(log + used, bytes, size);
    if (import_log(log, used + size, &trace, &e) == FRAG_OK)
        frag_trace_close(trace);
    free(log);
    return 0;
}
