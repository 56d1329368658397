/* dry_limits.c - what the answer of `fragsim dry` rests on, and where it stops.
 */
#include <stdarg.h>
#include <stdio.h>

#include "sim/cli/verbs/dry/dry_answer.h"

enum { TEXT = 640 };

/* A receiver of sentences. */
struct sink {
    void (*put)(void *user, const char *text);
    void *user;
};

/* Puts a sentence. */
static void FRAG_PRINTF(2, 3) say(const struct sink *s, const char *format, ...)
{
    char text[TEXT];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    s->put(s->user, text);
}

static void say_torch(const struct dry_answer *a, const struct sink *s)
{
    const char *release = dry_note_name(a->processes, "torch");
    const char *newest = dry_note_name(a->processes, "newer");
    const bool is_tried = dry_note_name(a->processes, "tried") != NULL;

    say(s,
        "PyTorch %.100s ran as on the %s, with its own allocator and its own "
        "choice of kernels; CUDA's libraries and the device were stand-ins: a "
        "fault that only a kernel finds, such as an index out of range, does "
        "not end it. On another GPU of the table PyTorch may choose other "
        "kernels: --gpu asks for it",
        release ? release : "of an unknown release", a->gpu->name);
    if (newest)
        say(s,
            "this release is newer than %.20s, the newest on which the "
            "stand-ins were compared with a GPU: %s",
            newest,
            is_tried ? "the functions that its libraries import are all there, "
                       "and programs of 22 kinds ran; what they need was not "
                       "compared"
                     : "they may lack functions that it calls");
}

static void say_outside(const struct dry_answer *a, const struct sink *s)
{
    const struct dry_device *d = dry_largest(a);

    say(s,
        "others take %s of the %s: the CUDA context (%s), and what cuBLAS, "
        "cuSOLVER, cuFFT, NCCL, streams and graphs take for themselves "
        "(measured on an H200); memory of the GPU: %s. Other kernels that need "
        "memory and other processes there come on top",
        FRAG_SHOW_SIZE(dry_outside(a, d, a->gpu)), a->gpu->name,
        a->gpu->context_source, a->gpu->memory_source);
    if (a->gpu->is_unified)
        say(s,
            "the %s has one memory for the device and the host: what others "
            "take includes the %s that the process had of the host at most; "
            "what the system and other programs hold there comes on top: "
            "compare with MemAvailable of /proc/meminfo, not with what the "
            "driver calls free",
            a->gpu->name, FRAG_SHOW_SIZE(dry_host(d->process)));
}

static void say_lacking(const struct dry_device *d, const struct sink *s)
{
    if (dry_lacks_memory(d))
        say(s,
            "PyTorch counted %s reserved and %s requested at most on device "
            "%u, its trace has %s and %s: a part of the run is not in it",
            FRAG_SHOW_SIZE(d->counted_reserved),
            FRAG_SHOW_SIZE(d->counted_requested), (unsigned)d->device,
            FRAG_SHOW_SIZE(d->traced_reserved), FRAG_SHOW_SIZE(d->peak.live));
}

static void say_end(const struct dry_answer *a, const struct sink *s)
{
    char text[TEXT];

    for (size_t i = 0; i < a->count; i++)
        say_lacking(&a->devices[i], s);
    if (dry_died(a))
        say(s, "the program ran out of memory, so its trace ends there, and "
               "it needs more than the answer says; without --strict, --memory "
               "and a limit of its own it runs to its end");
    for (size_t i = 0; i < a->process_count; i++)
        if (dry_death(&a->processes[i], a->status, text, sizeof(text)))
            say(s, "%s", text);
    if (a->status)
        say(s,
            "the program ended with exit code %d, so the answer holds up to "
            "there",
            a->status);
}

static void say_shared(const struct dry_answer *a, const struct sink *s)
{
    for (size_t i = 0; i < a->count; i++)
        if (dry_sharers(a, &a->devices[i]) > 1) {
            say(s, "several processes use one GPU; their needs are added up, "
                   "as if all had their peaks at the same time");
            return;
        }
}

/* The runs that differ in what was drawn. */
static void say_drawn(const struct dry_answer *a, const struct sink *s)
{
    if (!dry_has(a, "drawn"))
        return;
    say(s, "the program read values that hang on numbers that nobody computed, "
           "such as trained weights: they were drawn");
    if (a->runs == 1)
        say(s, "it failed, so it did not run again with other ones");
    else
        say(s,
            "it ran %u times, with other ones and such that all rows are "
            "alike; "
            "%u of them ended in another way and do not count. The upper end "
            "is the largest need and the mean gap; a GPU may need another one",
            a->runs, a->left_out);
}

static void say_room(const struct dry_answer *a, const struct sink *s)
{
    if (dry_has(a, "room"))
        say(s,
            "the program asks how much memory is free, so what it takes may "
            "follow from that and is no need: the answer holds for the %s "
            "alone; --gpu all runs it on each GPU",
            a->gpu->name);
}

static void say_late(const struct dry_answer *a, const struct sink *s)
{
    if (dry_has(a, "late"))
        say(s,
            "a thread of NCCL frees what collectives used, and when is a "
            "matter of time: the upper end has it late, the lower end early");
}

void dry_limits(const struct dry_answer *a,
                void (*put)(void *user, const char *text), void *user)
{
    const struct sink s = {put, user};

    say_torch(a, &s);
    say_outside(a, &s);
    say_end(a, &s);
    say_shared(a, &s);
    say_room(a, &s);
    say_late(a, &s);
    if (dry_has(a, "lacks"))
        put(user, "functions that the stand-ins lack failed: the program may "
                  "have taken another way than on a GPU");
    if (dry_has(a, "read"))
        put(user, "values that the program read from the device were not "
                  "computed: where it decides by them, it may take another "
                  "way on a GPU");
    say_drawn(a, &s);
    if (dry_has(a, "size"))
        put(user, "workspaces of unknown size were taken as 0 bytes: the need "
                  "is larger by what they take");
}
