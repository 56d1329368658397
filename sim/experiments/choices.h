/* choices.h - what `-p` and `-c` mean. */
#ifndef FRAG_SIM_EXPERIMENTS_CHOICES_H
#define FRAG_SIM_EXPERIMENTS_CHOICES_H

#include "policies/policy.h"
#include "sim/experiments/texts.h"
#include "traces/trace.h"

/* "NAME", "NAME:PARAMS", or with the settings that the trace carries
 * "torch@recorded", "torch@recorded:MORE". A NAME that plugin_is_meant by is a
 * file's. A name of two words may have a colon between them, its parameters
 * then behind a comma: "plan:online,rest=best_fit" is plan_online. */
struct policy_choice {
    const char *text;  /* as given */
    const char *given; /* after the colon, "" if none; into text */
    const struct frag_policy *policy;
    struct frag_params *params; /* `given`, read */
    bool recorded;
    char digest[65]; /* SHA-256 of a plugin's file; "" for a policy of ours */
};

/* The policy of a name, registered or in a file. INVALID, with the nearest name
 * where there is one. */
enum frag_err policy_named(const char *name, const struct frag_policy **out,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* INVALID, with the nearest name where there is one. The parameters are read,
 * but for recorded ones. On error *out is untouched. */
enum frag_err policy_choice_read(const char *text, struct policy_choice *out,
                                 struct frag_error *e) FRAG_MUST_CHECK;

void policy_choice_free(struct policy_choice *p); /* zeroed is fine */

/* The parameters on a trace with these settings (NULL: it carries none); to be
 * freed. INVALID if settings are needed and are not there or are wrong, with
 * the path of the trace; NOMEM. */
enum frag_err policy_choice_params(const struct policy_choice *p,
                                   const char *settings, const char *path,
                                   struct frag_params **out,
                                   struct frag_error *e) FRAG_MUST_CHECK;

/* "24GiB", "inf", or "0.9x": that share of the trace's peak requested. */
struct capacity_choice {
    frag_size bytes;
    double share; /* > 0: bytes is not used */
};

/* The policies of -p, torch where none is given; the list is to be freed, on
 * error too. INVALID, NOMEM. */
enum frag_err policy_choices_read(const struct texts *given,
                                  struct policy_choice **list, size_t *count,
                                  struct frag_error *e) FRAG_MUST_CHECK;

void policy_choices_free(struct policy_choice *list, size_t count);

/* The capacities of -c, each text a list as "24GiB,0.9x,inf"; inf where none is
 * given. *list is NULL before, and to be freed, on error too. INVALID, NOMEM.
 */
enum frag_err capacity_choices_read(const struct texts *given,
                                    struct capacity_choice **list,
                                    size_t *count,
                                    struct frag_error *e) FRAG_MUST_CHECK;

frag_size capacity_choice_bytes(const struct capacity_choice *c,
                                frag_size peak_requested);

#endif
