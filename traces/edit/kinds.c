/* kinds.c - the table of edits, and its description. The reader, the manual and
 * the notes of an edited trace are made from this table and that of
 * edit_keys.c. */
#include "traces/edit/edit_parts.h"
#include "traces/text.h"

#define HAS EDIT_HAS

/* clang-format off */
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
    {"pool", "move requests from their pools to one pool: 0:0 is as if they had "
     "no pool of their own, a new one sets them apart",
     "pool:to=0:0", "requests moved",
     "a captured graph keeps its addresses for as long as it lives, so what a "
     "trace without its pool needs is a bound and no advice",
     EDIT_SELECT, HAS(KEY_TO), 0, run_pool},
    {"free", "free blocks earlier or later, as a `del x' at another line would",
     "free:earlier=10,min=1MiB", "frees moved", NULL,
     EDIT_SELECT | HAS(KEY_MARK), 0,
     HAS(KEY_EARLIER) | HAS(KEY_LATER) | HAS(KEY_AT), run_free},
    {"empty-cache", "add empty_cache calls to those that the trace has",
     "empty-cache:every=100", "calls added, beside the events", NULL,
     HAS(KEY_MARK), 0, HAS(KEY_EVERY) | HAS(KEY_EVERY_STEPS), run_empty_cache},
    {"no-empty-cache", "leave out all empty_cache calls", "no-empty-cache",
     "calls left out of the events", NULL, 0, 0, 0, run_no_empty_cache},
    {"settings",
     "add a change of settings, or move one that the trace has; torch@recorded "
     "follows it", "settings:from=1000,set=expandable_segments:True",
     "changes added or moved, beside the events", NULL, HAS(KEY_DEVICE),
     HAS(KEY_FROM), HAS(KEY_SET) | HAS(KEY_LIMIT) | HAS(KEY_CHANGE),
     run_settings},
    {"no-settings", "leave out the changes of settings, or one of them",
     "no-settings:change=2", "changes left out, beside the events", NULL,
     HAS(KEY_DEVICE) | HAS(KEY_CHANGE), 0, 0, run_no_settings},
    {"repeat",
     "repeat all events; blocks that are live at the end of one repetition are "
     "freed before the next",
     "repeat:times=3", "events appended to those of the input", NULL, 0,
     HAS(KEY_TIMES), 0, run_repeat},
    {0},
};
/* clang-format on */

static void describe_keys(FILE *out, const char *title, uint32_t keys)
{
    for (unsigned k = 0; k < KEY_COUNT; k++)
        if (keys & HAS(k)) {
            fprintf(out, "    %s%s=%s\n", title, edit_keys[k].name,
                    edit_keys[k].value);
            text_paragraph(out, 8, edit_keys[k].meaning);
        }
}

static void describe(FILE *out, const struct edit_kind *kind)
{
    fprintf(out, "  %s\n", kind->name);
    text_paragraph(out, 4, kind->summary);
    describe_keys(out, "", kind->needs);
    describe_keys(out, "one of: ", kind->choice);
    describe_keys(out, "optional: ", kind->keys & ~EDIT_SELECT);
    if (kind->keys & EDIT_SELECT)
        fputs("    optional: the keys that select requests\n", out);
    if (kind->limit)
        text_paragraph(out, 4, kind->limit);
    fprintf(out, "    example: %s\n\n", kind->example);
}

void frag_edits_describe(FILE *out)
{
    fputs(
        "An edit is NAME or NAME:KEY=VALUE,KEY=VALUE. Edits are applied in "
        "their order;\nseveral in one text are separated by semicolons. "
        "They follow -e of the commands\nimport and sweep. Sizes are like 512, "
        "20MiB or 1.5GiB.\n\n",
        out);
    for (const struct edit_kind *k = edit_kinds; k->name; k++)
        describe(out, k);
    fputs("  The keys that select requests; a request must match all of an "
          "edit:\n",
          out);
    describe_keys(out, "", EDIT_SELECT);
}
