/* kernels.h - the compiled kernels of the program's libraries: for which
 * capabilities they were compiled, and which of these the GPU runs. PyTorch and
 * CUB select kernels by that. Private to real/dry/.
 */
#ifndef FRAG_REAL_DRY_RUNTIME_KERNELS_H
#define FRAG_REAL_DRY_RUNTIME_KERNELS_H

struct frag_gpu;

/* A library's kernels, as __cudaRegisterFatBinary passes them. NULL if the host
 * has no memory. */
struct kernels;
struct kernels *kernels_add(const void *image, const struct frag_gpu *gpu);
/* The function of the library that starts one of them. */
void kernels_name(const struct kernels *k, const void *function);

/* The capabilities, such as 86, for which the code of a function that runs on
 * the GPU was compiled: to machine code, and to PTX before. */
struct kernel_code {
    int binary, ptx;
};

/* Finds the code of a function. A function that is not known has code for the
 * GPU itself; binary is 0 if no code runs on the GPU. */
struct kernel_code kernels_find(const void *function,
                                const struct frag_gpu *gpu);

#endif
