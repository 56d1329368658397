/* moved.h - which sites of two moments are the same, although a change moved
 * their lines. Private to sim/answers/held. */
#ifndef FRAG_SIM_ANSWERS_HELD_MOVED_H
#define FRAG_SIM_ANSWERS_HELD_MOVED_H

#include "sim/answers/held/difference.h"

/* A hash of the names of the functions that are inside of the site of a stack:
 * what the line calls. */
uint64_t moved_calls(const struct frag_trace *t, uint32_t stack);

/* Joins the rows of the sites of before and of after, each of which has one
 * row. The sites of a function keep their order, and are paired so that the
 * bytes of before and after differ least; of equal pairings, the one with most
 * sites on their lines. Two that call different functions are a pair on one
 * line only. A site that is left is the one with the same bytes and blocks in
 * another function or file, if there is one. A row that became part of another
 * has no blocks afterwards. NOMEM. */
enum frag_err moved_join(struct difference *d,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
