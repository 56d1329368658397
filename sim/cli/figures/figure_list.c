/* figure_list.c - the table of all figures, made from figure_list.h. */
#include <string.h>

#include "sim/cli/figures/figure.h"

#define FIGURE(name, text) &figure_##name,
const struct figure *const figures[] = {
#include "sim/cli/figures/figure_list.h"
    NULL};
#undef FIGURE

const struct figure *figure_find(const char *name)
{
    for (size_t i = 0; figures[i]; i++)
        if (!strcmp(figures[i]->name, name))
            return figures[i];
    return NULL;
}
