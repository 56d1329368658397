/* progress.c - draws the progress bar: share done, rate, estimated time left.
 */
#include "sim/cli/output/progress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/cli/cli.h"
#include "traces/printable.h"

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
    p->drawer = pthread_self();
    p->preparing = false;
    p->done = 0;
    p->next = 0;
    p->started = progress_clock();
    printable_text(p->label, sizeof(p->label), label);
}

enum { SECOND = 1000000000 };

/* Counts the work of a tick; a new count, and the end of a preparation, starts
 * its own clock. Returns the seconds since then. */
static double count(struct progress *p, uint64_t done, uint64_t now)
{
    if (done < p->done || (p->preparing && done))
        p->started = now;
    p->preparing = !done && now - p->started >= SECOND / 2;
    p->done = done;
    return (double)(now - p->started) / SECOND;
}

static void draw(struct progress *p, double share, double seconds)
{
    enum { WIDE = 24 };
    char bar[WIDE + 1];

    for (int i = 0; i < WIDE; i++)
        bar[i] = i < share * WIDE ? '#' : '.';
    bar[WIDE] = '\0';
    fprintf(stderr, "\r\033[K%s [%s] %3.0f%%  ", p->label, bar, 100 * share);
    if (p->preparing)
        fprintf(stderr, "preparing, %.0f s", seconds);
    else
        fprintf(stderr, "%.1f M%s/s  %.0f s left",
                (double)p->done * p->scale / seconds / 1e6, p->unit,
                seconds * (1 - share) / share);
    if (p->steps > 1)
        fprintf(stderr, "  (%zu of %zu)", p->step, p->steps);
    fflush(stderr);
    p->drawn = true;
}

static void show(struct progress *p, uint64_t done, uint64_t total)
{
    const uint64_t now = progress_clock();
    const double share = total ? (double)done / (double)total : 0;
    const double seconds = count(p, done, now);

    if (now < p->next || seconds <= 0 || (share <= 0 && !p->preparing))
        return;
    p->next = now + SECOND / 10;
    draw(p, share, seconds);
}

bool progress_tick(void *progress, uint64_t done, uint64_t total)
{
    struct progress *p = progress;

    if (p->shown && pthread_equal(p->drawer, pthread_self()))
        show(p, done, total);
    return cli_interrupted();
}

void progress_clear(struct progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}
