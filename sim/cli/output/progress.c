/* progress.c - draws the progress bar: share done, rate, estimated time left.
 */
#include "sim/cli/output/progress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/cli/cli.h"

uint64_t progress_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct progress progress_start(const struct common *common)
{
    const char *term = getenv("TERM"), *ci = getenv("CI");

    return (struct progress){
        .shown = !common->quiet && isatty(STDERR_FILENO) && term &&
                 strcmp(term, "dumb") != 0 && !(ci && *ci),
    };
}

void progress_step(struct progress *p, size_t step, size_t steps,
                   const char *unit, double scale, const char *label)
{
    p->step = step;
    p->steps = steps;
    p->unit = unit;
    p->scale = scale;
    p->started = progress_clock();
    snprintf(p->label, sizeof(p->label), "%s", label);
}

static void draw(struct progress *p, double share, double rate, double left)
{
    enum { WIDE = 24 };
    char bar[WIDE + 1];

    for (int i = 0; i < WIDE; i++)
        bar[i] = i < share * WIDE ? '#' : '.';
    bar[WIDE] = '\0';
    fprintf(stderr, "\r\033[K%.40s [%s] %3.0f%%  %.1f M%s/s  %.0f s left",
            p->label, bar, 100 * share, rate, p->unit, left);
    if (p->steps > 1)
        fprintf(stderr, "  (%zu of %zu)", p->step, p->steps);
    fflush(stderr);
    p->drawn = true;
}

bool progress_tick(void *progress, uint64_t done, uint64_t total)
{
    struct progress *p = progress;
    double seconds = (double)(progress_clock() - p->started) / 1e9;
    double share = total ? (double)done / (double)total : 0;

    if (p->shown && share > 0 && seconds > 0)
        draw(p, share, (double)done * p->scale / seconds / 1e6,
             seconds * (1 - share) / share);
    return cli_interrupted();
}

void progress_clear(struct progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}
