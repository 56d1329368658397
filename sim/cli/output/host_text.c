/* host_text.c - shows the answer about pinned host memory. */
#include "sim/cli/output/host_text.h"

#include "sim/cli/cell_options.h"
#include "traces/printable.h"

enum frag_err host_text_show(const struct input *in, FILE *out,
                             struct frag_json *j, bool *is_first,
                             struct frag_error *e)
{
    const struct cell_values none = {.costs = NULL};
    struct cell_settings cell;
    struct host_answer a;

    FRAG_TRY(cell_settings_read(&none, &cell, e));
    FRAG_TRY(host_answer_make(&cell, in, &a, e));
    if (j) {
        host_answer_json(&a, j);
        return FRAG_OK;
    }
    if (!*is_first)
        fputc('\n', out);
    printable_line(out, "%s, %s", in->trace->path,
                   FRAG_DEVICE_NAME(FRAG_HOST_DEVICE));
    host_answer_put(&a, out);
    *is_first = false;
    return FRAG_OK;
}
