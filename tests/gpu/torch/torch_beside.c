/* torch_beside.c - serves the requests of a trace by libfragsim_torch.so on the
 * stand-in for the driver, beside the simulation of the same policy. usage:
 * torch_beside LIBRARY TRACE POLICY capacity|limit|full|late BYTES...
 *
 * full: memory that the policy does not know of leaves BYTES of the device;
 * late: it came after a request, before an empty_cache.
 *
 * After each event both must have refused or served it, at the same address
 * relative to the first segment or map, and must have allocated, freed, mapped
 * and unmapped the same memory. The stand-in has no chunks for small segments,
 * so from the first segment that is not whole granules on, addresses are not
 * compared. For each bound a line says whether the trace
 * "lived" or "died". The trace has one stream and no pools, since a recording
 * does not say when a program would have waited for another stream.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/device/cuda.h"
#include "real/torch/service.h"
#include "sim/arena/arena.h"
#include "sim/replay/replay.h"
#include "traces/grow.h"

static struct {
    enum frag_torch_answer (*serve)(int, size_t, frag_torch_stream,
                                    struct frag_service_block *, char *);
    enum frag_torch_answer (*end)(int, uint64_t, frag_torch_stream, char *);
    enum frag_torch_answer (*trim)(int, char *);
    enum frag_torch_answer (*limit)(int, uint64_t, char *);
    void (*listen)(const struct frag_torch_listener *);
    size_t (*peak_reserved)(int);
} torch;

/* One change of the memory that the policy holds. */
struct change {
    enum frag_torch_change what;
    uint64_t addr, size, same;
};

static const struct frag_device_trace *trace;
static uint64_t event, *blocks; /* by slot: the program's address, or 0 */
/* What the simulation did in this event; the program has done `done` of it. */
static struct change *changes;
static uint64_t count, done, room;
static uint64_t first_sim, first_real; /* addresses of the first change */
static struct frag_backend *gpu;       /* what fills it; NULL: nothing */
static bool has_chunks; /* the simulation put segments into chunks */

static void stop(const char *words, ...)
{
    va_list arguments;

    va_start(arguments, words);
    fprintf(stderr, "event %" PRIu64 ": ", event);
    vfprintf(stderr, words, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);

    if (!library)
        stop("%s", dlerror());
#define LOAD(name)                                               \
    *(void **)&torch.name = dlsym(library, "frag_torch_" #name); \
    if (!torch.name)                                             \
        stop("the library lacks %s", #name);
    LOAD(serve)
    LOAD(end)
    LOAD(trim)
    LOAD(limit)
    LOAD(listen)
    LOAD(peak_reserved)
#undef LOAD
}

/* ---- the simulation ---- */

static void changed_sim(void *user, enum frag_call call, frag_addr addr,
                        frag_size size, frag_addr same)
{
    static const enum frag_torch_change of[FRAG_CALL_COUNT] = {
        [FRAG_CALL_SEGMENT_ALLOC] = FRAG_TORCH_SEGMENT,
        [FRAG_CALL_SEGMENT_FREE] = FRAG_TORCH_SEGMENT_FREED,
        [FRAG_CALL_MAP] = FRAG_TORCH_MAP,
        [FRAG_CALL_UNMAP] = FRAG_TORCH_UNMAP,
    };

    (void)user;
    if (!GROW(changes, room, count + 1))
        stop("no memory");
    if (!first_sim)
        first_sim = addr;
    has_chunks |= call == FRAG_CALL_SEGMENT_ALLOC && size % FRAG_CAPACITY_STEP;
    changes[count++] = (struct change){of[call], addr - first_sim, size,
                                       same ? same - first_sim : 0};
}

/* ---- the program ---- */

static void changed_real(int device, enum frag_torch_change what, uint64_t addr,
                         uint64_t size, uint64_t same)
{
    const struct change *c = &changes[done];

    (void)device;
    if (done == count)
        stop("the program changed what the simulation did not: %d, %" PRIu64
             " bytes",
             (int)what, size);
    if (!first_real)
        first_real = addr;
    if (c->what != what || c->size != size ||
        (!has_chunks && (c->addr != addr - first_real ||
                         c->same != (same ? same - first_real : 0))))
        stop("change %d of %" PRIu64 " bytes at %" PRIx64 ", simulated %d of "
             "%" PRIu64 " at %" PRIx64,
             (int)what, size, addr - first_real, (int)c->what, c->size,
             c->addr);
    done++;
}

static void serve(const struct frag_block *simulated)
{
    const uint64_t size = trace->bytes[event];
    struct frag_service_block block = {0, 0};
    char words[FRAG_TORCH_WORDS];
    const enum frag_torch_answer answer =
        torch.serve(0, size, NULL, &block, words);

    if (answer != (simulated ? FRAG_TORCH_OK : FRAG_TORCH_OOM))
        stop("%" PRIu64 " bytes: %s, simulated: %s", size,
             answer == FRAG_TORCH_OK ? "served" : words,
             simulated ? "served" : "refused");
    if (simulated && (block.size != simulated->size ||
                      (!has_chunks &&
                       block.addr - first_real != simulated->addr - first_sim)))
        stop("%" PRIu64 " bytes at %" PRIx64 ", simulated %" PRIu64
             " at %" PRIx64,
             block.size, block.addr - first_real, simulated->size,
             simulated->addr - first_sim);
    blocks[trace->id[event]] = block.addr;
}

static void follow(void *user, uint64_t at, const struct frag_block *simulated)
{
    enum frag_torch_answer answer = FRAG_TORCH_OK;
    char words[FRAG_TORCH_WORDS];

    (void)user;
    event = at;
    switch (trace->op[at]) {
    case FRAG_ALLOC:
        serve(simulated);
        break;
    case FRAG_FREE:
        if (blocks[trace->id[at]])
            answer = torch.end(0, blocks[trace->id[at]], NULL, words);
        break;
    case FRAG_EMPTY_CACHE:
        answer = torch.trim(0, words);
        break;
    default:
        stop("expected a trace of one stream");
    }
    if (answer != FRAG_TORCH_OK)
        stop("%s", words);
    if (done != count)
        stop("the simulation changed %" PRIu64 " bytes, the program did not",
             changes[done].size);
    done = count = 0;
}

/* ---- a run ---- */

/* Takes memory of the device, as another program does, until `bytes` and less
 * than a granule more can be had. Returns what the simulated device has. */
static struct frag_arena_options filled_device(frag_size bytes)
{
    struct frag_arena_options left = {0};
    struct frag_error e;
    frag_size most;
    frag_phys phys; /* without addresses, so that those of segments stay */

    if (frag_cuda_open(&(const struct frag_cuda_options){.shared = true}, &gpu,
                       &e) != FRAG_OK)
        stop("%s", e.text);
    left.total = gpu->total;
    if (frag_cuda_free_bytes(gpu, &most) != FRAG_OK ||
        frag_device_room(most) < bytes)
        stop("the device has less memory");
    most = frag_device_room(most) - bytes;
    most -= most % gpu->granularity;
    if (gpu->ops->phys_create(gpu, most, &phys) != FRAG_OK ||
        frag_cuda_free_bytes(gpu, &left.capacity) != FRAG_OK)
        stop("the device cannot be filled");
    left.capacity = frag_device_room(left.capacity);
    return left;
}

/* The policy meets an empty device before it is filled. */
static struct frag_arena_options filled_late(frag_size bytes)
{
    struct frag_service_block block = {0, 0};
    struct frag_arena_options left;
    char words[FRAG_TORCH_WORDS];

    if (torch.serve(0, FRAG_MIB, NULL, &block, words) != FRAG_TORCH_OK ||
        torch.end(0, block.addr, NULL, words) != FRAG_TORCH_OK ||
        torch.trim(0, words) != FRAG_TORCH_OK)
        stop("%s", words);
    left = filled_device(bytes);
    if (torch.trim(0, words) != FRAG_TORCH_OK)
        stop("%s", words);
    return left;
}

/* What the simulated device has under this kind of bound. */
static struct frag_arena_options bounded(const char *kind, frag_size bytes)
{
    if (!strcmp(kind, "full"))
        return filled_device(bytes);
    if (!strcmp(kind, "late"))
        return filled_late(bytes);
    if (!strcmp(kind, "limit"))
        return (struct frag_arena_options){.capacity = FRAG_UNLIMITED,
                                           .limit = bytes};
    return (struct frag_arena_options){.capacity = bytes};
}

static void run(const char *policy, const char *kind, frag_size bytes)
{
    const struct frag_torch_listener listener = {.changed = changed_real};
    const struct frag_replay_watch watch = {.changed = changed_sim,
                                            .done = follow};
    const struct frag_arena_options options = bounded(kind, bytes);
    struct frag_backend *arena = frag_arena_open(&options);
    const char *params = strchr(policy, ':');
    char name[64], words[FRAG_TORCH_WORDS];
    struct frag_error e;
    struct frag_run r;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(policy, ":"), policy);
    torch.listen(&listener);
    if (options.limit && torch.limit(0, bytes, words) != FRAG_TORCH_OK)
        stop("%s", words);
    if (frag_replay(
            &(const struct frag_replay){.trace = trace,
                                        .watch = &watch,
                                        .policy = frag_policy_find(name),
                                        .params = params ? params + 1 : "",
                                        .mem = arena,
                                        .repeat = 1},
            &r, &e) != FRAG_OK)
        stop("%s", e.text);
    if (torch.peak_reserved(0) != r.summary.peak_reserved)
        stop("peak reserved %zu, simulated %" PRIu64, torch.peak_reserved(0),
             r.summary.peak_reserved);
    puts(r.summary.num_ooms ? "died" : "lived");
    frag_run_free(&r);
    frag_arena_close(arena);
    frag_cuda_close(gpu);
}

/* The library reads its settings once, so each run has its own process. */
static bool ended_well(char **argv, const char *bytes)
{
    const bool is_capacity = !strcmp(argv[4], "capacity");
    int status;
    pid_t child = fork();

    if (!child) {
        char text[32];

        snprintf(text, sizeof(text), "%sB", bytes);
        setenv("FRAGSIM_POLICY", argv[3], 1);
        setenv("FRAGSIM_CAPACITY", is_capacity ? text : "inf", 1);
        load(argv[1]);
        run(argv[3], argv[4], strtoull(bytes, NULL, 10));
        exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && !status;
}

int main(int argc, char **argv)
{
    struct frag_trace *whole;
    struct frag_error e;
    bool good = true;

    if (argc < 6)
        return 2;
    if (frag_trace_open(argv[2], NULL, &whole, &e) != FRAG_OK)
        stop("%s", e.text);
    trace = &whole->devices[0];
    blocks = calloc(trace->slots, sizeof(*blocks));
    for (int i = 5; blocks && i < argc; i++)
        if (!ended_well(argv, argv[i])) {
            fprintf(stderr, "%s, %s of %s B\n", argv[3], argv[4], argv[i]);
            good = false;
        }
    free(blocks);
    free(changes);
    frag_trace_close(whole);
    return !good;
}
