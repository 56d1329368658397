/* tables.c - the measures of fragmentation that a summary has. */
#include "sim/answers/summary/summary_parts.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */
#define AT(field) offsetof(struct summary_fragmentation, field)
const struct measure summary_measures[] = {
    {"fragmentation now", "fragmentation", "1 - allocated / reserved",
     AT(now), MEASURE_SHARE, "At this event"},
    {"external", "external", "1 - largest free / free",
     AT(external), MEASURE_SHARE, NULL},
    {"internal", "internal", "1 - requested / allocated",
     AT(internal), MEASURE_SHARE, NULL},
    {"overhead now", "overhead", "reserved / requested",
     AT(overhead), MEASURE_RATIO, NULL},
    {"free", "free_bytes", "reserved - active",
     AT(free), MEASURE_BYTES, NULL},
    {"largest free", "largest_free_bytes", "inside one segment",
     AT(largest_free), MEASURE_BYTES, NULL},
    {"fragmentation", "fragmentation_so_far",
     "1 - peak allocated / peak reserved",
     AT(so_far), MEASURE_SHARE, "From the first event to this one"},
    {"mean fragmentation", "fragmentation_mean",
     "mean of 1 - allocated / reserved",
     AT(mean), MEASURE_SHARE, NULL},
    {"overhead", "overhead_so_far", "peak reserved / peak requested",
     AT(overhead_so_far), MEASURE_RATIO, NULL},
    {"lower bound", "lower_bound_bytes", "least that any policy needs",
     AT(lower_bound), MEASURE_BYTES, NULL},
    {"gap", "gap_to_bound", "peak reserved / lower bound - 1",
     AT(gap), MEASURE_SHARE, NULL},
    {"requested", "reserved_requested_bytes", "of live blocks",
     AT(parts.requested), MEASURE_BYTES, "Reserved memory is the sum of"},
    {"rounding", "reserved_rounding_bytes", "allocated - requested",
     AT(parts.rounding), MEASURE_BYTES, NULL},
    {"pending", "reserved_pending_bytes", "freed, in use by another stream",
     AT(parts.pending), MEASURE_BYTES, NULL},
    {"free here", "reserved_free_here_bytes", "in the request's stream and pool",
     AT(parts.free_here), MEASURE_BYTES, NULL},
    {"free, other stream", "reserved_free_stream_bytes",
     "in segments of another stream",
     AT(parts.free_stream), MEASURE_BYTES, NULL},
    {"free, other pool", "reserved_free_pool_bytes",
     "in segments of another pool",
     AT(parts.free_pool), MEASURE_BYTES, NULL},
    {"unusable", "reserved_unusable_bytes", "gaps below 512 bytes, unmapped",
     AT(parts.unusable), MEASURE_BYTES, NULL},
    {0},
};
/* clang-format on */

double summary_real(const struct summary *s, const struct measure *m)
{
    double x;

    memcpy(&x, (const char *)&s->fragmentation + m->offset, sizeof(x));
    return x;
}

frag_size summary_bytes(const struct summary *s, const struct measure *m)
{
    frag_size x;

    memcpy(&x, (const char *)&s->fragmentation + m->offset, sizeof(x));
    return x;
}
