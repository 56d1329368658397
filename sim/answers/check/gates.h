/* gates.h - rules that a trace must keep, for a job that runs every night.
 *
 * A file of rules has one rule a line; # begins a comment, and a line may be
 * empty:
 *
 *     policy torch:expandable_segments:True   # at most once
 *     capacity 80GiB                          # at most once
 *     peak_reserved <= 20GiB
 *     fragmentation <= 25%
 *
 * A rule is a measure, <= or >=, and a limit: a size with a unit (0 needs
 * none), a share such as 25% or 0.25, or a number. gate_measures lists the
 * measures. A file without a rule about deaths has the rule `deaths <= 0', so
 * that no job that died passes unless `deaths <= 1' allows it.
 */
#ifndef FRAG_SIM_ANSWERS_CHECK_GATES_H
#define FRAG_SIM_ANSWERS_CHECK_GATES_H

#include "sim/answers/replayed.h"
#include "sim/answers/subject.h"

enum gate_unit { GATE_BYTES, GATE_SHARE, GATE_COUNT };

/* The quantities that the rules judge. NAN: not known. */
struct gate_facts {
    double peak_requested, peak_allocated, peak_reserved, end_reserved;
    double fragmentation, growth, steps, events, deaths, ooms, retries, calls;
};

struct gate_measure {
    const char *name;
    enum gate_unit unit;
    size_t offset; /* of a double in struct gate_facts */
    const char *meaning;
};

extern const struct gate_measure gate_measures[]; /* ended by a NULL name */

struct gate {
    const struct gate_measure *measure;
    bool at_least; /* >=; otherwise <= */
    double limit;
    size_t line; /* 0: not in the file */
};

struct gates {
    char *path; /* owned */
    struct gate *items;
    size_t count, room;
    char *policy;       /* owned; NULL: not in the file */
    frag_size capacity; /* 0: not in the file */
};

/* Reads a file of rules. INVALID with the file and the line; IO; NOMEM. The
 * caller frees *out, on error too. */
enum frag_err gates_read(const char *path, struct gates *out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void gates_free(struct gates *g); /* zeroed is fine */

enum { GATE_TEXT = 64 };

/* Writes a rule such as "peak_reserved <= 20 GiB"; a value of its measure, or
 * "unknown". Return text. */
const char *gate_text(const struct gate *g, char text[GATE_TEXT]);
const char *gate_value_text(const struct gate_measure *m, double value,
                            char text[GATE_TEXT]);

/* Measures a device at the capacity. If the capacity is unlimited, the device
 * refuses nothing, and `ooms` and `retries` are those of the recording, if it
 * has more than the replay: its reports, and its allocations during which
 * segments were returned to the device. Errors of replayed_run and
 * replayed_steps. */
enum frag_err gates_measure(const struct replay_settings *s,
                            const struct input *in, frag_size capacity,
                            struct gate_facts *out,
                            struct frag_error *e) FRAG_MUST_CHECK;

/* The value of the measure. */
double gate_found(const struct gate_measure *m, const struct gate_facts *f);

/* Whether the rule holds. A value that is not known keeps no rule. */
bool gate_holds(const struct gate *g, const struct gate_facts *f);

/* Writes what the rule demands and what was found as members of the object that
 * is open. */
void gate_json(struct frag_json *j, const struct gate *g,
               const struct gate_facts *f);

#endif
