/* pattern.c - the two kernels, in PTX, and their launches. */
#include "real/device/pattern.h"

#include <stdlib.h>

#include "real/device/cuda.h"

/* Word i of a range is (first + i) * factor. `first` is a hash of the seed, so
 * the sequences of two seeds do not overlap. The factor is odd, so no two words
 * of one range are equal. A thread handles a pair of words, then the pair that
 * lies one grid further. */
static const uint64_t factor = 0x9e3779b97f4a7c15u;

/* The beginning of both kernels: %d1 is the address of the range, %d2 its
 * number of pairs, %d3 first, %d4 factor, %d5 this thread's pair, %d6 the
 * number of pairs in a grid. */
#define BEGIN                        \
    ".reg .pred %p<4>;\n"            \
    ".reg .u32 %r<5>;\n"             \
    ".reg .u64 %d<14>;\n"            \
    "ld.param.u64 %d1, [range];\n"   \
    "ld.param.u64 %d2, [pairs];\n"   \
    "ld.param.u64 %d3, [first];\n"   \
    "ld.param.u64 %d4, [factor];\n"  \
    "cvta.to.global.u64 %d1, %d1;\n" \
    "mov.u32 %r1, %ctaid.x;\n"       \
    "mov.u32 %r2, %ntid.x;\n"        \
    "mov.u32 %r3, %tid.x;\n"         \
    "mov.u32 %r4, %nctaid.x;\n"      \
    "mul.wide.u32 %d5, %r1, %r2;\n"  \
    "cvt.u64.u32 %d6, %r3;\n"        \
    "add.u64 %d5, %d5, %d6;\n"       \
    "mul.wide.u32 %d6, %r4, %r2;\n"

/* Computes the next pair's words in %d8 and %d9, its address in %d10 and its
 * offset in %d11. Branches to DONE after the last pair. */
#define NEXT_PAIR                  \
    "NEXT:\n"                      \
    "setp.ge.u64 %p1, %d5, %d2;\n" \
    "@%p1 bra DONE;\n"             \
    "shl.b64 %d7, %d5, 1;\n"       \
    "add.u64 %d7, %d7, %d3;\n"     \
    "mul.lo.u64 %d8, %d7, %d4;\n"  \
    "add.u64 %d9, %d8, %d4;\n"     \
    "shl.b64 %d11, %d5, 4;\n"      \
    "add.u64 %d10, %d1, %d11;\n"   \
    "add.u64 %d5, %d5, %d6;\n"

static const char ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"

    ".visible .entry frag_fill(.param .u64 range, .param .u64 pairs,\n"
    "  .param .u64 first, .param .u64 factor)\n{\n" BEGIN NEXT_PAIR
    "st.global.v2.u64 [%d10], {%d8, %d9};\n"
    "bra NEXT;\n"
    "DONE:\nret;\n}\n"

    ".visible .entry frag_verify(.param .u64 range, .param .u64 pairs,\n"
    "  .param .u64 first, .param .u64 factor, .param .u64 wrong)\n{\n" BEGIN
        NEXT_PAIR "ld.global.v2.u64 {%d12, %d13}, [%d10];\n"
    "setp.ne.u64 %p2, %d12, %d8;\n"
    "setp.ne.u64 %p3, %d13, %d9;\n"
    "or.pred %p2, %p2, %p3;\n"
    "@!%p2 bra NEXT;\n"
    "ld.param.u64 %d12, [wrong];\n"
    "cvta.to.global.u64 %d12, %d12;\n"
    "red.global.min.u64 [%d12], %d11;\n"
    "DONE:\nret;\n}\n";

struct frag_pattern {
    struct frag_backend *mem;
    cu_module module;
    cu_function fill, verify;
    cu_address wrong; /* 8 bytes of device memory: the offset of the first
                       * difference */
};

/* ---- open and close ---- */

static cu_result load(struct frag_pattern *p, const struct cu_driver *cu)
{
    cu_result code = cu->cuModuleLoadData(&p->module, ptx);

    if (code == CU_SUCCESS)
        code = cu->cuModuleGetFunction(&p->fill, p->module, "frag_fill");
    if (code == CU_SUCCESS)
        code = cu->cuModuleGetFunction(&p->verify, p->module, "frag_verify");
    if (code == CU_SUCCESS)
        code = cu->cuMemAlloc_v2(&p->wrong, sizeof(uint64_t));
    return code;
}

enum frag_err frag_pattern_open(struct frag_backend *mem,
                                struct frag_pattern **out, struct frag_error *e)
{
    const struct cu_driver *cu = frag_cuda_driver(mem);
    struct frag_pattern *p = calloc(1, sizeof(*p));
    cu_result code;
    char words[256];

    if (!p)
        return frag_no_memory(e, "the check of contents");
    p->mem = mem;
    if (frag_cuda_enter(mem) != FRAG_OK) {
        free(p);
        return frag_fail(e, FRAG_DEVICE, "%s", frag_cuda_words(mem));
    }
    code = load(p, cu);
    frag_cuda_leave(mem);
    if (code != CU_SUCCESS) {
        frag_pattern_close(p);
        return frag_fail(e, FRAG_DEVICE, "the check of contents cannot run: %s",
                         cu_words(cu, code, words));
    }
    *out = p;
    return FRAG_OK;
}

void frag_pattern_close(struct frag_pattern *p)
{
    const struct cu_driver *cu;

    if (!p)
        return;
    cu = frag_cuda_driver(p->mem);
    if (frag_cuda_enter(p->mem) == FRAG_OK) {
        if (p->wrong)
            cu->cuMemFree_v2(p->wrong);
        if (p->module)
            cu->cuModuleUnload(p->module);
        frag_cuda_leave(p->mem);
    }
    free(p);
}

/* ---- kernels ---- */

enum {
    THREADS = 256,
    BLOCKS_MOST = 132 * 16
}; /* an H200 has 132
    * multiprocessors */

static uint64_t first_of(uint64_t seed)
{
    seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
    return seed ^ (seed >> 31);
}

static cu_result launch(struct frag_pattern *p, cu_function kernel,
                        frag_addr addr, frag_size size, uint64_t seed)
{
    uint64_t pairs = (size + 15) / 16, first = first_of(seed), by = factor;
    uint64_t blocks = (pairs + THREADS - 1) / THREADS;
    void *args[] = {&addr, &pairs, &first, &by, &p->wrong};

    if (blocks > BLOCKS_MOST)
        blocks = BLOCKS_MOST;
    return frag_cuda_driver(p->mem)->cuLaunchKernel(
        kernel, (unsigned)blocks, 1, 1, THREADS, 1, 1, 0, NULL, args, NULL);
}

enum frag_err frag_pattern_fill(struct frag_pattern *p, frag_addr addr,
                                frag_size size, uint64_t seed)
{
    cu_result code;

    FRAG_TRY(frag_cuda_enter(p->mem));
    code = launch(p, p->fill, addr, size, seed);
    frag_cuda_leave(p->mem);
    return frag_cuda_answer(p->mem, "the kernel that fills", code);
}

enum frag_err frag_pattern_verify(struct frag_pattern *p, frag_addr addr,
                                  frag_size size, uint64_t seed,
                                  frag_size *wrong)
{
    const struct cu_driver *cu = frag_cuda_driver(p->mem);
    uint64_t none = UINT64_MAX, found = 0;
    cu_result code;

    FRAG_TRY(frag_cuda_enter(p->mem));
    code = cu->cuMemcpyHtoD_v2(p->wrong, &none, sizeof(none));
    if (code == CU_SUCCESS)
        code = launch(p, p->verify, addr, size, seed);
    if (code == CU_SUCCESS)
        code = cu->cuMemcpyDtoH_v2(&found, p->wrong, sizeof(found));
    frag_cuda_leave(p->mem);
    if (code == CU_SUCCESS)
        *wrong = found;
    return frag_cuda_answer(p->mem, "the kernel that verifies", code);
}
