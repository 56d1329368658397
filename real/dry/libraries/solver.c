/* solver.c - a libcusolver. Its work is done on the device; the sizes of its
 * workspaces, which the real one decides on the host, are those that cuSOLVER
 * 12.0 (CUDA 13.0) asked for on an H200: PyTorch 2.11's operators of
 * torch.linalg, float and double, at 31 sizes of square matrices from 1 to
 * 8192. A size between two of them is interpolated, which is right within 3 %
 * at 15 others, and noted as a guess. The functions of complex numbers, and
 * those of matrices that are not square where only square ones were measured,
 * are noted as sizes that are not known. */
#include <stdbool.h>

enum { DRY_LACKING = 9 }; /* CUSOLVER_STATUS_NOT_SUPPORTED */
#include "real/dry/stubs.h"

#include "real/dry/libraries/solver.def"

/* Elements of a workspace at matrices of n rows. */
struct curve_point {
    int n;
    double elements;
};

#define CURVE(name) static const struct curve_point name[]
/* The last size of a curve is 0. */
CURVE(of_getrf) = {
    {1, 192},     {32, 192},     {33, 320},     {64, 320},     {100, 576},
    {128, 576},   {129, 896},    {192, 960},    {256, 1088},   {300, 1728},
    {384, 1856},  {512, 2112},   {768, 2624},   {1024, 3136},  {1500, 5288},
    {1536, 5440}, {2048, 13120}, {3000, 15808}, {4096, 24640}, {8192, 81984},
    {0, 0},
};
CURVE(of_syevd) = {
    {1, 66358},       {4, 68715},     {8, 71939},      {16, 78643},
    {31, 92274},      {48, 109395},   {64, 127059},    {100, 172427},
    {127, 211538},    {192, 323667},  {256, 458835},   {384, 802899},
    {513, 1249110},   {768, 2489811}, {1024, 4357331}, {1536, 9665235},
    {2048, 17070291}, {0, 0},
};
CURVE(of_syevj) = {
    {1, 3109},     {32, 3109},    {33, 4212},   {48, 5442},   {64, 7250},
    {100, 15288},  {128, 21700},  {129, 23019}, {192, 44374}, {256, 75272},
    {384, 161740}, {512, 281104}, {0, 0},
};
CURVE(of_gesvdj) = {
    {1, 992},        {32, 992},       {33, 7392},     {64, 13408},
    {100, 29408},    {128, 42208},    {192, 87392},   {256, 149024},
    {384, 321504},   {512, 559648},   {768, 1232928}, {1024, 2168864},
    {1536, 4828736}, {2048, 8539200}, {0, 0},
};
CURVE(of_ormqr) = {
    {1, 67616},       {8, 69504},       {16, 71936},       {32, 77568},
    {48, 84256},      {64, 91936},      {100, 112960},     {127, 132160},
    {192, 190240},    {256, 263968},    {384, 460576},     {513, 725056},
    {768, 1443616},   {1024, 2426656},  {1500, 4951360},   {2048, 8980256},
    {3000, 18835360}, {4096, 34670368}, {8192, 136382240}, {0, 0},
};
/* Of orgqr, where it is no formula. */
CURVE(of_orgqr) = {
    {1, 33056},   {4, 33056},   {8, 33088},  {16, 33280},
    {32, 34048},  {48, 35328},  {64, 37120}, {100, 46656},
    {127, 65088}, {128, 65792}, {0, 0},
};

/* The curve at n; beyond its ends along its outermost pieces. Sizes grow with
 * the square of n, so it is straight over n * n. */
static size_t at(const struct curve_point *curve, int n, const char *function)
{
    const struct curve_point *p = curve;

    while (p[2].n && p[1].n < n)
        p++;
    if (n == p[0].n || n == p[1].n)
        return (size_t)(n == p[0].n ? p[0] : p[1]).elements;
    frag_dry_note(DRY_GUESS, function);

    double from = (double)p[0].n * p[0].n, to = (double)p[1].n * p[1].n;
    double part = ((double)n * n - from) / (to - from);
    return (size_t)(p[0].elements + part * (p[1].elements - p[0].elements));
}

static size_t at_square(const struct curve_point *curve, int m, int n,
                        const char *function)
{
    if (m == n)
        return at(curve, n, function);
    frag_dry_note(DRY_SIZE, function);
    return 0;
}

/* ---- Cholesky, QR: formulas that fit every measured size ---- */

/* Bytes, of any type. */
static size_t potrf(int64_t n)
{
    size_t tiles = ((size_t)n + 31) / 32;

    return (4 * tiles * tiles + 128 + 31) / 32 * 32;
}

/* Bytes; it does not depend on the number of rows. */
static size_t geqrf(int64_t n, size_t element)
{
    size_t columns = n < 256 ? 256 : (size_t)n;

    return 128 + element * ((1 << 19) + 1024 * columns);
}

/* Elements. */
static size_t orgqr(int m, int n, const char *function)
{
    size_t square =
        n > 128 ? 384 * (size_t)n + 16640 : at(of_orgqr, n, function);
    size_t width = n < 128 ? (size_t)n : 128;

    return square + (m > n ? (size_t)(m - n) * width : 0);
}

static size_t bytes_of(int type) /* a cudaDataType */
{
    enum { REAL_32 = 0, REAL_64 = 1 };

    return type == REAL_32 ? 4 : type == REAL_64 ? 8 : 0;
}

/* A size of the interface without types; 0 bytes of an element: not measured.
 */
static int sized(size_t size, size_t element, size_t *device, size_t *host,
                 const char *function)
{
    if (element == 0)
        frag_dry_note(DRY_SIZE, function);
    *device = element ? size : 0;
    *host = 0;
    return 0;
}

#define X_POTRF      cusolverDnXpotrf_bufferSize
#define X_GEQRF      cusolverDnXgeqrf_bufferSize
#define X_SYEVD      cusolverDnXsyevd_bufferSize
#define X_SYEV_BATCH cusolverDnXsyevBatched_bufferSize

DRY_EXPORT int X_SYEV_BATCH(void *handle, void *params, int what, int part,
                            int64_t n, int type, const void *a, int64_t row,
                            int w_type, const void *w, int compute,
                            size_t *device, size_t *host, int64_t batch);

DRY_EXPORT int X_POTRF(void *handle, void *params, int part, int64_t n,
                       int type, const void *a, int64_t row, int compute,
                       size_t *device, size_t *host)
{
    (void)handle, (void)params, (void)part, (void)a, (void)row, (void)compute;
    return sized(potrf(n), bytes_of(type), device, host, "cusolverDnXpotrf");
}

DRY_EXPORT int X_GEQRF(void *handle, void *params, int64_t m, int64_t n,
                       int type, const void *a, int64_t row, int tau_type,
                       const void *tau, int compute, size_t *device,
                       size_t *host)
{
    (void)handle, (void)params, (void)m, (void)a, (void)row, (void)compute;
    (void)tau_type, (void)tau;
    size_t element = bytes_of(type);
    return sized(geqrf(n, element), element, device, host, "cusolverDnXgeqrf");
}

DRY_EXPORT int X_SYEVD(void *handle, void *params, int what, int part,
                       int64_t n, int type, const void *a, int64_t row,
                       int w_type, const void *w, int compute, size_t *device,
                       size_t *host)
{
    return X_SYEV_BATCH(handle, params, what, part, n, type, a, row, w_type, w,
                        compute, device, host, 1);
}

int X_SYEV_BATCH(void *handle, void *params, int what, int part, int64_t n,
                 int type, const void *a, int64_t row, int w_type,
                 const void *w, int compute, size_t *device, size_t *host,
                 int64_t batch)
{
    (void)handle, (void)params, (void)what, (void)part, (void)a, (void)row;
    (void)w_type, (void)w, (void)compute;
    static const char function[] = "cusolverDnXsyevd";
    size_t element = bytes_of(type);
    return sized((size_t)batch * element * at(of_syevd, (int)n, function),
                 element, device, host, function);
}

/* ---- the functions of a type: S of float, D of double ---- */

#define TYPED(S)                                                               \
    DRY_EXPORT int cusolverDn##S##getrf_bufferSize(                            \
        void *handle, int m, int n, void *a, int row, int *elements);          \
    int cusolverDn##S##getrf_bufferSize(void *handle, int m, int n, void *a,   \
                                        int row, int *elements)                \
    {                                                                          \
        (void)handle, (void)m, (void)a, (void)row;                             \
        *elements = (int)(at(of_getrf, n, "cusolverDn" #S "getrf") * 4 /       \
                          DRY_BYTES_##S);                                      \
        return 0;                                                              \
    }                                                                          \
    DRY_EXPORT int cusolverDn##S##orgqr_bufferSize(                            \
        void *handle, int m, int n, int k, const void *a, int row,             \
        const void *tau, int *elements);                                       \
    int cusolverDn##S##orgqr_bufferSize(void *handle, int m, int n, int k,     \
                                        const void *a, int row,                \
                                        const void *tau, int *elements)        \
    {                                                                          \
        (void)handle, (void)k, (void)a, (void)row, (void)tau;                  \
        *elements = (int)orgqr(m, n, "cusolverDn" #S "orgqr");                 \
        return 0;                                                              \
    }                                                                          \
    DRY_EXPORT int cusolverDn##S##ormqr_bufferSize(                            \
        void *handle, int side, int transposed, int m, int n, int k,           \
        const void *a, int row, const void *tau, const void *c, int c_row,     \
        int *elements);                                                        \
    int cusolverDn##S##ormqr_bufferSize(                                       \
        void *handle, int side, int transposed, int m, int n, int k,           \
        const void *a, int row, const void *tau, const void *c, int c_row,     \
        int *elements)                                                         \
    {                                                                          \
        (void)handle, (void)side, (void)transposed, (void)n, (void)a;          \
        (void)row, (void)tau, (void)c, (void)c_row;                            \
        *elements = (int)at_square(of_ormqr, m, k, "cusolverDn" #S "ormqr");   \
        return 0;                                                              \
    }                                                                          \
    DRY_EXPORT int cusolverDn##S##syevj_bufferSize(                            \
        void *handle, int what, int part, int n, const void *a, int row,       \
        const void *w, int *elements, void *params);                           \
    int cusolverDn##S##syevj_bufferSize(                                       \
        void *handle, int what, int part, int n, const void *a, int row,       \
        const void *w, int *elements, void *params)                            \
    {                                                                          \
        (void)handle, (void)what, (void)part, (void)a, (void)row, (void)w;     \
        (void)params;                                                          \
        *elements = (int)at(of_syevj, n, "cusolverDn" #S "syevj");             \
        return 0;                                                              \
    }                                                                          \
    DRY_EXPORT int cusolverDn##S##gesvdj_bufferSize(                           \
        void *handle, int what, int economy, int m, int n, const void *a,      \
        int row, const void *s, const void *u, int u_row, const void *v,       \
        int v_row, int *elements, void *params);                               \
    int cusolverDn##S##gesvdj_bufferSize(                                      \
        void *handle, int what, int economy, int m, int n, const void *a,      \
        int row, const void *s, const void *u, int u_row, const void *v,       \
        int v_row, int *elements, void *params)                                \
    {                                                                          \
        (void)handle, (void)what, (void)economy, (void)a, (void)row, (void)s;  \
        (void)u, (void)u_row, (void)v, (void)v_row, (void)params;              \
        *elements = (int)at_square(of_gesvdj, m, n, "cusolverDn" #S "gesvdj"); \
        return 0;                                                              \
    }                                                                          \
    DRY_EXPORT int cusolverDn##S##gesvdjBatched_bufferSize(                    \
        void *handle, int what, int m, int n, const void *a, int row,          \
        const void *s, const void *u, int u_row, const void *v, int v_row,     \
        int *elements, void *params, int batch);                               \
    int cusolverDn##S##gesvdjBatched_bufferSize(                               \
        void *handle, int what, int m, int n, const void *a, int row,          \
        const void *s, const void *u, int u_row, const void *v, int v_row,     \
        int *elements, void *params, int batch)                                \
    {                                                                          \
        (void)handle, (void)what, (void)m, (void)n, (void)a, (void)row;        \
        (void)s, (void)u, (void)u_row, (void)v, (void)v_row, (void)params;     \
        (void)batch;                                                           \
        *elements = 992;                                                       \
        return 0;                                                              \
    }

enum { DRY_BYTES_S = 4, DRY_BYTES_D = 8 };
TYPED(S)
TYPED(D)
