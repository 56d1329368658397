/* executables.c - the memory of executable graphs (executables.h). */
#include "real/dry/runtime/executables.h"

#include <pthread.h>
#include <stdlib.h>

#include "real/dry/control.h"
#include "real/dry/dry_shadow.h"
#include "real/dry/runtime/runtime.h"

enum { GRAPH = 100 << 10, LAUNCH = 8 << 10 }; /* bytes */

static struct graph {
    struct graph *next;
    uint64_t number;
    int64_t bytes;
    int device;
} * graphs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t before; /* launches, when the last capture began */

void graph_begin(void)
{
    before = frag_dry_launches();
}

void graph_end(uint64_t number, int device)
{
    struct graph *g = malloc(sizeof(*g));

    if (!g)
        abort();
    *g = (struct graph){
        .number = number,
        .bytes = GRAPH + LAUNCH * (int64_t)(frag_dry_launches() - before),
        .device = device};
    pthread_mutex_lock(&lock);
    g->next = graphs;
    graphs = g;
    pthread_mutex_unlock(&lock);
}

static struct graph **find(uint64_t number)
{
    struct graph **at = &graphs;

    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

void graph_take(uint64_t number)
{
    struct graph *g;

    pthread_mutex_lock(&lock);
    g = *find(number);
    if (g)
        frag_dry_hold(g->device, g->bytes);
    pthread_mutex_unlock(&lock);
}

void graph_return(uint64_t number)
{
    struct graph **at, *g;

    pthread_mutex_lock(&lock);
    at = find(number);
    g = *at;
    if (g) {
        *at = g->next;
        frag_dry_hold(g->device, -g->bytes);
        free(g);
    }
    pthread_mutex_unlock(&lock);
}
