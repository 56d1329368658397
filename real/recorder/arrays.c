/* arrays.c - intercepts the calls that create and destroy arrays.
 *
 * An array has no address, and the driver does not report the size of an array
 * that has its own memory (cuda.h, cuArrayGetMemoryRequirements). The recorder
 * stores the bytes of the array's elements, computed from its descriptor. This
 * is the least that the array can occupy.
 */
#include "real/recorder/watch.h"

/* Bits of one channel of a CUarray_format, or of a whole element where the
 * format includes all channels. Compressed and planar formats are not in the
 * table. */
static const struct format {
    unsigned format, bits;
    bool has_channels;
} formats[] = {
    {0x01, 8, true},   {0x02, 16, true},  {0x03, 32, true},  /* UNSIGNED_INT */
    {0x08, 8, true},   {0x09, 16, true},  {0x0a, 32, true},  /* SIGNED_INT */
    {0x10, 16, true},  {0x20, 32, true},                     /* HALF, FLOAT */
    {0x50, 32, false},                                       /* 101010_2 */
    {0xc0, 8, false},  {0xc1, 16, false}, {0xc2, 32, false}, /* UNORM_INT8 */
    {0xc3, 16, false}, {0xc4, 32, false}, {0xc5, 64, false}, /* UNORM_INT16 */
    {0xc6, 8, false},  {0xc7, 16, false}, {0xc8, 32, false}, /* SNORM_INT8 */
    {0xc9, 16, false}, {0xca, 32, false}, {0xcb, 64, false}, /* SNORM_INT16 */
};

/* 0 if the format is not in the table. */
static uint64_t bytes_of_element(unsigned format, unsigned channels)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
        if (formats[i].format == format)
            return formats[i].bits / 8 *
                   (formats[i].has_channels ? channels : 1);
    return 0;
}

/* UINT64_MAX stands for a product beyond 64 bits. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t at_least_1(uint64_t n)
{
    return n ? n : 1;
}

/* Each level has half the sides of the level before it; the number of layers
 * and faces stays. */
static uint64_t bytes_of(const struct driver_array_3d *like, unsigned levels)
{
    const uint64_t element = bytes_of_element(like->format, like->channels);
    const bool is_flat = like->flags & (DRIVER_LAYERED | DRIVER_CUBEMAP);
    uint64_t sum = 0;

    for (unsigned i = 0; i < levels && i < 64; i++) {
        const uint64_t depth = is_flat ? like->depth : like->depth >> i;
        const uint64_t level =
            times(times(element, at_least_1(like->width >> i)),
                  times(at_least_1(like->height >> i), at_least_1(depth)));

        if (__builtin_add_overflow(sum, level, &sum))
            return UINT64_MAX;
    }
    return sum;
}

/* The program maps the memory of a sparse or deferred array into it later. */
static struct watch begin_array(const struct driver_array_3d *like,
                                unsigned levels)
{
    struct watch w = watch_begin(RECORD_ARRAY);

    w.call.context = watch_context();
    if (like->flags & (DRIVER_SPARSE | DRIVER_DEFERRED))
        w.call.device = RECORD_ELSEWHERE;
    else
        w.call.bytes = bytes_of(like, levels);
    return w;
}

static driver_result end_array(struct watch *w, driver_result result,
                               void *const *array)
{
    if (result == DRIVER_SUCCESS)
        w->call.other = (uint64_t)(uintptr_t)*array;
    return watch_end_alloc(w, result);
}

driver_result cuArrayCreate_v2(void **array, const struct driver_array *like)
{
    struct driver_array_3d whole = {0};
    struct watch w;

    if (like)
        whole = (struct driver_array_3d){.width = like->width,
                                         .height = like->height,
                                         .format = like->format,
                                         .channels = like->channels};
    w = begin_array(&whole, 1);
    return end_array(&w, DRIVER_PASS_ON(cuArrayCreate_v2, array, like), array);
}

driver_result cuArray3DCreate_v2(void **array,
                                 const struct driver_array_3d *like)
{
    static const struct driver_array_3d none;
    struct watch w = begin_array(like ? like : &none, 1);

    return end_array(&w, DRIVER_PASS_ON(cuArray3DCreate_v2, array, like),
                     array);
}

driver_result cuMipmappedArrayCreate(void **array,
                                     const struct driver_array_3d *like,
                                     unsigned levels)
{
    static const struct driver_array_3d none;
    struct watch w = begin_array(like ? like : &none, levels);

    return end_array(
        &w, DRIVER_PASS_ON(cuMipmappedArrayCreate, array, like, levels), array);
}

#define DESTROY(name)                               \
    WATCHED(name, (void *array), (array),           \
            watch_begin_release(RECORD_ARRAY_GONE), \
            w.call.other = (uint64_t)(uintptr_t)array)

DESTROY(cuArrayDestroy)
DESTROY(cuMipmappedArrayDestroy)
