/* edit_keys.c - the table of the keys that edits have. */
#include "traces/edit/edit_parts.h"

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
    [KEY_TIMES] = {"times", "N", "how often the events occur in the result",
        FORM_COUNT, NULL},
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
    [KEY_FROM] = {"from", "EVENT", "the event, from 0, before which the change "
        "lies", FORM_COUNT, NULL},
    [KEY_CHANGE] = {"change", "N", "a change of the trace, by the number that "
        "`fragsim info' prints; it keeps its text", FORM_COUNT, NULL},
    [KEY_LIMIT] = {"limit", "SIZE", "the limit of the process from there on",
        FORM_SIZE, NULL},
    [KEY_SET] = {"set", "SETTINGS", "the settings that are passed, in the "
        "grammar of PYTORCH_CUDA_ALLOC_CONF. This key is the last one: the rest "
        "of the edit is its text", FORM_TEXT, NULL},
    [KEY_TO] = {"to", "OWNER:NUMBER", "the pool that takes the requests; it may "
        "be new", FORM_POOL, NULL},
};
/* clang-format on */
