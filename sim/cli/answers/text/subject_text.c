/* subject_text.c - says where the trace of a job that died ends. */
#include "sim/cli/answers/text/subject_text.h"

#include <inttypes.h>

#include "traces/printable.h"

void subject_say_death(const struct subject *s, FILE *out)
{
    if (s->died_at == FRAG_NEVER)
        return;
    printable_line(out,
                   "%s, %s: the job died at event %" PRIu64
                   "; its trace is taken as it was recorded, so what the job "
                   "would have needed after this event is not in the values",
                   s->trace, FRAG_DEVICE_NAME(s->device), s->died_at);
}
