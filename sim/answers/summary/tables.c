/* tables.c - the measures of fragmentation that a summary has. */
#include "sim/answers/summary/summary_parts.h"

#include <stddef.h>

/* clang-format off */
#define AT(field) offsetof(struct summary_fragmentation, field)
#define BYTES FRAG_COLUMN_COUNT
#define REAL  FRAG_COLUMN_REAL
const struct frag_column summary_measures[] = {
    {NULL, FRAG_COLUMN_LINE, 4, "", "At this event", NULL, NULL},
    {"fragmentation", REAL, AT(now), "%",
     "fragmentation now", "1 - allocated / reserved", NULL},
    {"external", REAL, AT(external), "%",
     "external", "1 - largest free / free", NULL},
    {"internal", REAL, AT(internal), "%",
     "internal", "1 - requested / allocated", NULL},
    {"overhead", REAL, AT(overhead), "1",
     "overhead now", "reserved / requested", NULL},
    {"free_bytes", BYTES, AT(free), "byte", "free", "reserved - active", NULL},
    {"largest_free_bytes", BYTES, AT(largest_free), "byte",
     "largest free", "inside one segment", NULL},
    {NULL, FRAG_COLUMN_LINE, 4, "", "From the first event to this one", NULL, NULL},
    {"fragmentation_so_far", REAL, AT(so_far), "%",
     "fragmentation", "1 - peak allocated / peak reserved", NULL},
    {"fragmentation_mean", REAL, AT(mean), "%",
     "mean fragmentation", "mean of 1 - allocated / reserved", NULL},
    {"overhead_so_far", REAL, AT(overhead_so_far), "1",
     "overhead", "peak reserved / peak requested", NULL},
    {"lower_bound_bytes", BYTES, AT(lower_bound), "byte",
     "lower bound", "least that any policy needs", NULL},
    {"gap_to_bound", REAL, AT(gap), "%",
     "gap", "peak reserved / lower bound - 1", NULL},
    {NULL, FRAG_COLUMN_LINE, 4, "", "Reserved memory is the sum of", NULL, NULL},
    {"reserved_requested_bytes", BYTES, AT(parts.requested), "byte",
     "requested", "of live blocks", NULL},
    {"reserved_rounding_bytes", BYTES, AT(parts.rounding), "byte",
     "rounding", "allocated - requested", NULL},
    {"reserved_pending_bytes", BYTES, AT(parts.pending), "byte",
     "pending", "freed, in use by another stream", NULL},
    {"reserved_free_here_bytes", BYTES, AT(parts.free_here), "byte",
     "free here", "in the request's stream and pool", NULL},
    {"reserved_free_stream_bytes", BYTES, AT(parts.free_stream), "byte",
     "free, other stream", "in segments of another stream", NULL},
    {"reserved_free_pool_bytes", BYTES, AT(parts.free_pool), "byte",
     "free, other pool", "in segments of another pool", NULL},
    {"reserved_unusable_bytes", BYTES, AT(parts.unusable), "byte",
     "unusable", "gaps below 512 bytes, unmapped", NULL},
    {NULL, FRAG_COLUMN_END, 0, NULL, NULL, NULL, NULL},
};
/* clang-format on */
