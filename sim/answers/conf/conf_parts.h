/* conf_parts.h - what the sources of conf share. Private to sim/answers/conf/.
 */
#ifndef FRAG_SIM_ANSWERS_CONF_CONF_PARTS_H
#define FRAG_SIM_ANSWERS_CONF_CONF_PARTS_H

#include "sim/answers/conf/conf.h"

enum { CONF_MOST = 1000 }; /* characters of a text */

/* Says that a setting has no effect, whatever the program does, and marks it
 * so. As conf_say. */
bool conf_say_useless(struct conf_answer *a, size_t item, const char *why);

/* Adds the findings about settings that are accepted by themselves: what has no
 * effect, what is dangerous, what must be known. Sets a->native. NOMEM. */
enum frag_err conf_judge(struct conf_answer *a,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
