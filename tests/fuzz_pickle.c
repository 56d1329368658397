/* fuzz_pickle.c - fuzzes the reader of PyTorch snapshots and the unpacking
 * before it (libFuzzer), on any bytes. Seeds: traces/bundled, packed and
 * unpacked. */
#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/import/importers.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void import(struct frag_source *s, struct frag_build *b)
{
    struct frag_trace *trace = NULL;
    struct frag_error e;
    char hex[65];

    if (frag_importer_torch.read(s, b, NULL, &e) == FRAG_OK &&
        frag_source_sha256(s, hex, &e) == FRAG_OK &&
        frag_build_finish(b, NULL, &trace, &e) == FRAG_OK)
        frag_trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct frag_source *s;
    struct frag_build *b;
    struct frag_error e;

    if (frag_source_open_memory("fuzz", bytes, size, &s, &e) != FRAG_OK)
        return 0;
    b = frag_build_open("fuzz", "torch");
    if (b)
        import(s, b);
    frag_build_close(b);
    frag_source_close(s);
    return 0;
}
