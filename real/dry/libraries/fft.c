/* fft.c - a libcufft. The size of a plan's work area, which the real one
 * decides on the host, follows rules that fit what cuFFT 12.0 (CUDA 13.0) asked
 * for on an H200: 34 lengths from 8 to 4 million at four batches, float and
 * double, and 13 shapes of more dimensions. A length that no rule was measured
 * for is noted as a guess. */
#include <stdbool.h>

enum { DRY_LACKING = 16 }; /* CUFFT_NOT_SUPPORTED */
#include "real/dry/stubs.h"

#include "real/dry/libraries/fft.def"

DRY_EXPORT int cufftCreate(int *plan)
{
    static int plans;
    static uint64_t seen;

    frag_dry_take(&seen, 0, 8);
    *plan = __atomic_add_fetch(&plans, 1, __ATOMIC_RELAXED);
    return 0;
}

/* A transform: `rows` of them of length n. */
struct transform {
    size_t n, rows, number; /* bytes of a complex number */
    bool real;              /* one of its sides is real */
};

enum { MOST_PRIME = 127 }; /* of a length that needs no convolution */

static size_t largest_prime(size_t n)
{
    size_t largest = 1;

    for (size_t p = 2; p * p <= n; p++)
        for (; n % p == 0; n /= p)
            largest = p;
    return n > largest ? n : largest;
}

/* Whether one kernel transforms a row, so that there is no work area. */
static bool in_one_kernel(const struct transform *t)
{
    bool two = (t->n & (t->n - 1)) == 0, single = t->number == 8;

    if (!two && t->n > 512 && t->n < 32768)
        frag_dry_note(DRY_GUESS, "whether cuFFT needs a work area");

    if (t->real)
        return t->n <= (two ? single ? 16384 : 4096 : 1024);
    return t->n <= (two || single ? 16384 : 8192);
}

/* The work area of the last dimension. A real transform of even length is a
 * complex one of half the length; of odd length it takes rows by twos. A length
 * with a large prime is a convolution: about 2.025 times twice the length. */
static size_t area(const struct transform *t)
{
    size_t row = t->n * t->number;
    bool odd = t->real && t->n % 2;

    if (largest_prime(t->n) > MOST_PRIME && t->n > 1024) {
        frag_dry_note(DRY_GUESS, "cuFFT's work area for a length with a large "
                                 "prime factor");
        return odd ? row * (t->rows + 1) / 2 * 5 : row * t->rows * 405 / 100;
    }
    if (odd && t->n > MOST_PRIME)
        return row * ((t->rows + 1) / 2) * 2;
    if (in_one_kernel(t))
        return 0;
    return t->real ? row * t->rows / 2 : row * t->rows;
}

DRY_EXPORT int cufftXtMakePlanMany(int plan, int rank, const int64_t *n,
                                   const int64_t *in, int64_t in_stride,
                                   int64_t in_distance, int in_type,
                                   const int64_t *out, int64_t out_stride,
                                   int64_t out_distance, int out_type,
                                   int64_t batch, size_t *bytes, int type)
{
    enum {
        REAL_32 = 0,
        REAL_64 = 1,
        REAL_16 = 2,
        COMPLEX_64 = 5,
        COMPLEX_16 = 6
    };

    (void)plan, (void)in, (void)in_stride, (void)in_distance, (void)out;
    (void)out_stride, (void)out_distance;
    struct transform t = {
        .n = (size_t)n[rank - 1],
        .rows = (size_t)batch,
        .number = type == COMPLEX_64 || type == REAL_64      ? 16
                  : type == COMPLEX_16 || in_type == REAL_16 ? 4
                                                             : 8,
        .real = in_type <= REAL_16 || out_type <= REAL_16,
    };
    for (int i = 0; i < rank - 1; i++)
        t.rows *= (size_t)n[i];
    *bytes = area(&t);
    return 0;
}
