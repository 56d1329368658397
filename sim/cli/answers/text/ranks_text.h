/* ranks_text.h - a table of the traces of a command, of which each is a rank of
 * a distributed job: who needs most, and how unequal they are.
 */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_RANKS_TEXT_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_RANKS_TEXT_H

#include <stdio.h>

#include "sim/experiments/devices.h"
#include "sim/results/json.h"

enum { RANK_SIZES = 2 };

/* A device of a trace. */
struct rank {
    char *trace; /* name without folders and suffixes; owned */
    uint32_t device;
    frag_size sizes[RANK_SIZES];
    char word[96]; /* of the last column */
};

/* Ranks are numbered from 0 in the order in which they are added. */
struct ranks {
    const char *names[RANK_SIZES]; /* of the sizes: "peak requested"; NULL:
                                      there is none */
    const char *keys[RANK_SIZES];  /* the same in JSON */
    const char *heading;           /* of the last column */
    struct rank *items;
    size_t count;
    uint64_t room;
};

/* Adds a rank of that name, with all but its own name. NOMEM. */
enum frag_err ranks_add(struct ranks *r, const char *trace,
                        const struct rank *rank,
                        struct frag_error *e) FRAG_MUST_CHECK;
void ranks_free(struct ranks *r);

/* Prints a row for each rank, and the imbalance of each size: its largest value
 * divided by its mean. NOMEM. */
enum frag_err ranks_print(const struct ranks *r, FILE *out,
                          bool color) FRAG_MUST_CHECK;
/* Writes the member `imbalance` of the object that is open. */
void ranks_json(const struct ranks *r, struct frag_json *j);

#endif
