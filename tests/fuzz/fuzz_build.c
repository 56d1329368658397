/* fuzz_build.c - fuzzes the trace builder (libFuzzer): any sequence of entries,
 * segments and blocks. Each 4 bytes of input are one call: its kind, address,
 * size and duration. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "traces/build/build.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { UNIT = 512, KINDS = FRAG_ENTRY_OOM + 1 };

static enum frag_err feed(struct frag_build *b, const uint8_t *at,
                          struct frag_error *e)
{
    const frag_addr addr = (frag_addr)at[1] * UNIT;
    const frag_size size = (frag_size)at[2] * UNIT;
    const struct frag_entry entry = {.kind = (enum frag_entry_kind)at[0],
                                     .addr = addr,
                                     .size = size,
                                     .stream = at[3] % 3,
                                     .time = at[3]};
    const struct frag_snapshot_segment segment = {
        .addr = addr,
        .size = size,
        .stream = at[3] % 3,
        .pool = {0, at[3] / 3 % 3},
        .is_expandable = at[3] & 64,
    };
    const struct frag_snapshot_block block = {
        addr, size, at[3], (enum frag_block_state)(at[3] % 3)};

    if (at[0] < KINDS)
        return frag_build_entry(b, 0, &entry, 0, e);
    if (at[0] % 2)
        return frag_build_block(b, 0, &block, 0, e);
    return frag_build_segment(b, 0, &segment, 0, e);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct frag_build *b = frag_build_open("fuzz", "fuzz");
    struct frag_read_options opts = {.limit = size % 4 ? 100 * UNIT : 0};
    struct frag_trace *trace = NULL;
    enum frag_err err = FRAG_OK;
    struct frag_error e;

    for (size_t i = 0; b && i + 4 <= size && err == FRAG_OK; i += 4)
        err = feed(b, bytes + i, &e);
    if (b && err == FRAG_OK &&
        frag_build_finish(b, &opts, &trace, &e) == FRAG_OK)
        frag_trace_close(trace);
    frag_build_close(b);
    return 0;
}
