/* meter_index.h - which segment a granule belongs to; private to the meter.
 *
 * Two levels of tables over 47 bits of address. A granule that several ranges
 * touch says so, and is then looked up in the ordered set; addresses beyond are
 * too. Clearing never fails.
 */
#ifndef FRAG_METER_INDEX_H
#define FRAG_METER_INDEX_H

#include "sim/meter.h"

/* Makes sure that the range can be entered. NOMEM. */
enum frag_err meter_index_room(struct meter *m, frag_addr addr, frag_size size);
/* The range, which is not yet in m->held, belongs to segment `index`. */
void meter_index_set(struct meter *m, frag_addr addr, frag_size size,
                     uint32_t index);
/* The range, which is no longer in m->held, belongs to nobody. */
void meter_index_clear(struct meter *m, frag_addr addr, frag_size size);
void meter_index_close(struct meter *m);

#endif
