/* setting_changes.h - words for the changes of settings in a trace. */
#ifndef FRAG_TRACES_SETTING_CHANGES_H
#define FRAG_TRACES_SETTING_CHANGES_H

#include "traces/torch_sizes.h"
#include "traces/trace.h"

FRAG_BEGIN_DECLS

/* The words of enum frag_change_origin. */
extern const char *const change_origins[];

/* The changes in mid-run, which are those after the first event of the
 * recording. */
uint64_t changes_count(const struct frag_device_trace *d);

/* The limit that they state at the start; 0: none does. */
frag_size changes_limit(const struct frag_device_trace *d);

/* What decides on segments at a moment: of the settings, and the limit. */
struct changes_now {
    uint64_t next;                /* the next change */
    frag_size limit;              /* that a change set; FRAG_UNLIMITED: none */
    frag_size large_segment;      /* large_segment_size, in bytes */
    struct torch_reserve reserve; /* expandable_segments_reserve */
    bool expandable;              /* expandable_segments */
};

/* At the start, with these settings, which may be NULL. */
struct changes_now changes_begin(const char *settings);
/* Makes the changes before an event, which must not descend from call to call.
 */
void changes_pass(const struct frag_device_trace *d, struct changes_now *now,
                  uint64_t event);

enum { CHANGE_TEXT = 240, CHANGES_WORDS = 64, CHANGES_MEANING = 160 };
/* Writes what holds after a change: the settings, "defaults", or the limit.
 * Returns text. */
const char *change_text(const struct frag_device_trace *d,
                        const struct frag_setting_change *change,
                        char text[CHANGE_TEXT]);
/* Writes "2 changes of settings (recorded)"; "" if there is none. Returns
 * text. */
const char *changes_words(const struct frag_device_trace *d,
                          char text[CHANGES_WORDS]);
/* Writes which settings a run has that follows the changes, or that does not:
 * those of the recording, those of the edited trace, or one setting; "" if
 * there is no change. Returns text. */
const char *changes_meaning(const struct frag_device_trace *d, bool follows,
                            char text[CHANGES_MEANING]);

FRAG_END_DECLS

#endif
