/* kinds.c - the tables of edits and of their keys. The reader, the manual and
 * the notes of an edited trace are made from them. */
#include "traces/edit/parts.h"

#define HAS EDIT_HAS

/* clang-format off */
const struct edit_key_row edit_keys[KEY_COUNT] = {
    [KEY_DEVICE] = {"device", "N[+N...]",
        "requests on these devices, by their numbers", FORM_LIST, NULL},
    [KEY_STREAM] = {"stream", "HANDLE[+HANDLE...]",
        "requests on these streams, by the raw handle that the recording and "
        "`fragsim export' have", FORM_LIST, NULL},
    [KEY_POOL] = {"pool", "OWNER:NUMBER[+...]",
        "requests in these pools; 0:0 is the default pool", FORM_POOLS, NULL},
    [KEY_MIN] = {"min", "SIZE", "requests of at least this size", FORM_SIZE,
        NULL},
    [KEY_MAX] = {"max", "SIZE", "requests of at most this size", FORM_SIZE,
        NULL},
    [KEY_SITE] = {"site", "TEXT",
        "requests with a stack frame that contains TEXT; a frame is "
        "FUNCTION (FILE:LINE), as `fragsim top' prints it. This key is the "
        "last one: the rest of the edit is its text", FORM_TEXT, NULL},
    [KEY_EVENTS] = {"events", "A..B",
        "events, from 0, both ends included; A.. and ..B have one end",
        FORM_RANGE, NULL},
    [KEY_STEPS] = {"steps", "A..B",
        "complete steps, from 1, as `fragsim steps' numbers them, both ends "
        "included", FORM_RANGE, NULL},
    [KEY_SECONDS] = {"seconds", "A..B",
        "time in seconds since the first recorded event; B is not included",
        FORM_SECONDS, NULL},
    [KEY_MARK] = {"mark", "NAME",
        "marks of the recording at whose ends steps begin, without a trailing "
        "number (default: those that fit best, or the period of the events)",
        FORM_TEXT, NULL},
    [KEY_FACTOR] = {"factor", "X", "factor of the sizes, above 0; a size is "
        "rounded to whole bytes, at least 1", FORM_FACTOR, NULL},
    [KEY_UNIT] = {"unit", "SIZE", "the unit of the sizes", FORM_SIZE, NULL},
    [KEY_BYTES] = {"bytes", "SIZE", "bytes that each request has more",
        FORM_SIZE, NULL},
    [KEY_TIMES] = {"times", "N", "how often the events occur in the result",
        FORM_COUNT, NULL},
    [KEY_FILE] = {"file", "TRACE", "the other trace; its name has no comma "
        "and no semicolon", FORM_TEXT, NULL},
    [KEY_BY] = {"by", "ORDER",
        "start (default): both traces begin at the same time; clock: by the "
        "recorded times, for ranks of one job; turns: one event of each in "
        "turn", FORM_CHOICE, "start|clock|turns"},
    [KEY_DELAY] = {"delay", "SECONDS",
        "seconds by which the other trace begins later", FORM_DELAY, NULL},
    [KEY_EARLIER] = {"earlier", "N",
        "a free moves before the N events that precede it, but not before the "
        "last use of its block", FORM_COUNT, NULL},
    [KEY_LATER] = {"later", "N",
        "a free moves after the N events that follow it, at most to the end",
        FORM_COUNT, NULL},
    [KEY_AT] = {"at", "PLACE",
        "a free moves to the begin or the end of the step that it is in; a "
        "free outside of the complete steps stays", FORM_CHOICE,
        "step-begin|step-end"},
    [KEY_EVERY] = {"every", "N", "events between two calls", FORM_COUNT, NULL},
    [KEY_EVERY_STEPS] = {"every-steps", "N",
        "complete steps between two calls; a call is at the end of a step",
        FORM_COUNT, NULL},
    [KEY_FROM] = {"from", "HANDLE", "raw handle of the stream that changes",
        FORM_HANDLE, NULL},
    [KEY_INTO] = {"into", "HANDLE",
        "raw handle of the stream that takes its place; it may be new",
        FORM_HANDLE, NULL},
};

const struct edit_kind edit_kinds[] = {
    {"slice",
     "keep a part of the events. Blocks that are live at the cut are initial "
     "blocks; blocks that are live at the end stay live",
     "slice:steps=3..5", "events kept", NULL,
     HAS(KEY_MARK), 0, HAS(KEY_EVENTS) | HAS(KEY_STEPS) | HAS(KEY_SECONDS),
     run_slice},
    {"keep", "keep the requests that are selected, and leave out all others",
     "keep:min=1MiB", "requests kept", NULL, EDIT_SELECT, 0, 0, run_keep},
    {"drop", "leave out the requests that are selected",
     "drop:stream=7+9", "requests left out", NULL, EDIT_SELECT, 0, 0, run_drop},
    {"scale", "multiply sizes", "scale:factor=1.5,site=attention",
     "sizes changed", NULL, EDIT_SELECT, HAS(KEY_FACTOR), 0, run_scale},
    {"round", "round sizes up to multiples of a unit", "round:unit=2MiB,min=1MiB",
     "sizes changed", NULL, EDIT_SELECT, HAS(KEY_UNIT), 0, run_round},
    {"pad", "make requests larger by a number of bytes", "pad:bytes=256",
     "sizes changed", NULL, EDIT_SELECT, HAS(KEY_BYTES), 0, run_pad},
    {"stream", "move requests from one stream to another",
     "stream:from=7,into=0", "requests moved", NULL, EDIT_SELECT & ~HAS(KEY_STREAM),
     HAS(KEY_FROM) | HAS(KEY_INTO), 0, run_stream},
    {"free", "free blocks earlier or later, as a `del x' at another line would",
     "free:earlier=10,min=1MiB", "frees moved", NULL,
     EDIT_SELECT | HAS(KEY_MARK), 0,
     HAS(KEY_EARLIER) | HAS(KEY_LATER) | HAS(KEY_AT), run_free},
    {"empty-cache", "add empty_cache calls to those that the trace has",
     "empty-cache:every=100", "calls added, beside the events", NULL,
     HAS(KEY_MARK), 0, HAS(KEY_EVERY) | HAS(KEY_EVERY_STEPS), run_empty_cache},
    {"no-empty-cache", "leave out all empty_cache calls", "no-empty-cache",
     "calls left out of the events", NULL, 0, 0, 0, run_no_empty_cache},
    {"repeat",
     "repeat all events; blocks that are live at the end of one repetition are "
     "freed before the next",
     "repeat:times=3", "events appended to those of the input", NULL, 0,
     HAS(KEY_TIMES), 0, run_repeat},
    {"concat",
     "append another trace, as a second program of the same process; blocks "
     "that are live at the end of the first are freed before it",
     "concat:file=second.pickle.xz", "events appended to those of the input", NULL,
     0, HAS(KEY_FILE), 0, run_concat},
    {"interleave",
     "merge another trace, as a second job on the same device, which has "
     "streams of its own",
     "interleave:file=second.pickle.xz,delay=2",
     "events merged with those of the input",
     "both jobs share one allocator here: an empty_cache call or a retry of "
     "one job also returns the unused segments of the other", HAS(KEY_BY) | HAS(KEY_DELAY),
     HAS(KEY_FILE), 0, run_interleave},
    {0},
};
/* clang-format on */

static void describe_keys(FILE *out, const char *title, uint32_t keys)
{
    for (unsigned k = 0; k < KEY_COUNT; k++)
        if (keys & HAS(k)) {
            fprintf(out, "    %s%s=%s\n        %s\n", title, edit_keys[k].name,
                    edit_keys[k].value, edit_keys[k].meaning);
        }
}

static void describe(FILE *out, const struct edit_kind *kind)
{
    fprintf(out, "  %s\n    %s\n", kind->name, kind->summary);
    describe_keys(out, "", kind->needs);
    describe_keys(out, "one of: ", kind->choice);
    describe_keys(out, "optional: ", kind->keys & ~EDIT_SELECT);
    if (kind->keys & EDIT_SELECT)
        fprintf(out, "    optional: the keys that select requests%s\n",
                kind->keys & HAS(KEY_STREAM) ? "" : ", except stream");
    if (kind->limit)
        fprintf(out, "    note: %s\n", kind->limit);
    fprintf(out, "    example: %s\n\n", kind->example);
}

void frag_edits_describe(FILE *out)
{
    fputs("An edit is NAME or NAME:KEY=VALUE,KEY=VALUE. Edits are applied in "
          "their order; several\nin one text are separated by semicolons. They "
          "follow -e of `fragsim edit' and --edit of\n`fragsim sweep'. Sizes "
          "are like 512, 20MiB or 1.5GiB.\n\n",
          out);
    for (const struct edit_kind *k = edit_kinds; k->name; k++)
        describe(out, k);
    fputs("  The keys that select requests; a request must match all that are "
          "given:\n",
          out);
    describe_keys(out, "", EDIT_SELECT);
}
