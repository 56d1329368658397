/* choices.h - reads the texts of the options -p (policies), -c (capacities) and
 * --process-limit. */
#ifndef FRAG_SIM_EXPERIMENTS_CHOICES_H
#define FRAG_SIM_EXPERIMENTS_CHOICES_H

#include "policies/policy.h"
#include "sim/experiments/texts.h"
#include "traces/base.h"
#include "traces/trace.h"

/* A policy with its parameters. The text is one of these:
 *   "NAME" or "NAME:PARAMS";
 *   "torch@recorded" or "torch@recorded:MORE": the settings that the trace
 *   contains, followed by MORE;
 *   "torch@2.6" or "torch@2.6:MORE": the rules and settings of that release of
 *   PyTorch; it means "torch:torch_version:2.6,MORE".
 * If plugin_is_meant(NAME), NAME is the file of a shared library. A name that
 * has two words may be written with a colon between them; a comma then precedes
 * its parameters: "plan:online,rest=best_fit" is plan_online. */
struct policy_choice {
    const char *text;    /* the whole text; borrowed */
    const char *given;   /* the parameters, "" if there are none; a pointer into
                            text or owned */
    const char *version; /* in text, after an @: a release of PyTorch; NULL */
    char *owned;         /* the parameters of a text with a release; or NULL */
    const struct frag_policy *policy;
    struct frag_params *params; /* read from `given` */
    bool recorded;              /* the text contains "@recorded" */
    char digest[65]; /* SHA-256 of the shared library; "" for a policy of this
                        tree */
};

/* Finds a policy by its name, registered or in a shared library. INVALID; the
 * message suggests the nearest name if there is one. */
enum frag_err policy_named(const char *name, const struct frag_policy **out,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* Reads a policy and its parameters. Settings of a trace are not read yet.
 * INVALID; the message suggests the nearest name if there is one. On error *out
 * is untouched. */
enum frag_err policy_choice_read(const char *text, struct policy_choice *out,
                                 struct frag_error *e) FRAG_MUST_CHECK;

void policy_choice_free(struct policy_choice *p); /* zeroed is fine */

/* The settings that a choice means for a trace with these settings, which may
 * be NULL: "@recorded" are those, and what is given follows. The caller frees
 * the text; NULL if the host has no memory. */
char *policy_choice_settings(const struct policy_choice *p,
                             const char *settings);

/* The policy's parameters for a device of a trace with these settings (NULL:
 * the trace has no settings) and releases; the caller frees *out. For
 * FRAG_HOST_DEVICE, the policy torch is torch_host, which has the same grammar.
 * The policy torch has the padding of the settings (traces/torch_sizes.h) and
 * the rules of the release that wrote the trace (policies/torch/platform.h)
 * unless the choice sets others. INVALID, with the path of the trace, if the
 * choice needs settings and they are missing or wrong; NOMEM. */
enum frag_err policy_choice_params(const struct policy_choice *p,
                                   const char *settings, const char *releases,
                                   const char *path, uint32_t device,
                                   struct frag_params **out,
                                   struct frag_error *e) FRAG_MUST_CHECK;
/* The same for a device of a trace. */
enum frag_err policy_choice_params_of(const struct policy_choice *p,
                                      const struct frag_trace *t,
                                      const struct frag_device_trace *d,
                                      struct frag_params **out,
                                      struct frag_error *e) FRAG_MUST_CHECK;

/* Reads the size that an option of the command line holds, by
 * frag_size_parse. INVALID, with the name of the option, if the text is no
 * size, if the size is 0, or if it is a number below 1 MiB without a unit: the
 * message then names what may have been meant, with may_be_share also a share
 * of peak requested. On error *out is untouched. */
enum frag_err size_choice_read(const char *option, const char *text,
                               bool may_be_share, frag_size *out,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* A bound: "24GiB", "inf", or "0.9x" (a share of the trace's peak requested),
 * of -c, a capacity, or of --process-limit; or "recorded", that of the recorded
 * allocator. Without either option it is `recorded' for a policy with the
 * recorded settings, and none for others. */
enum bound_choice_kind {
    BOUND_FIXED,
    BOUND_SHARE,
    BOUND_RECORDED,
    BOUND_DEFAULT,
};

enum { BOUND_TEXT = 64 }; /* bytes */

struct bound_choice {
    enum bound_choice_kind kind;
    char text[BOUND_TEXT];   /* as the user wrote it; "" for BOUND_DEFAULT */
    struct frag_bound fixed; /* BOUND_SHARE: of that kind, any bytes */
    double share;            /* BOUND_SHARE */
};

/* The facts of a trace on which a choice depends. */
struct bound_facts {
    frag_size peak_requested;
    struct frag_bound recorded; /* recording_bound */
};

/* Reads all policies of -p; without any, the policy is torch. The caller frees
 * *list with policy_choices_free, on error too. INVALID, NOMEM. */
enum frag_err policy_choices_read(const struct texts *given,
                                  struct policy_choice **list, size_t *count,
                                  struct frag_error *e) FRAG_MUST_CHECK;

/* The quantum in which the policies are compared: the smallest of theirs. */
frag_size policy_choices_quantum(const struct policy_choice *list,
                                 size_t count);

void policy_choices_free(struct policy_choice *list, size_t count);

/* Reads all capacities of -c, then all limits of --process-limit; each text is
 * a list such as "24GiB,0.9x,inf". Without any, *list is one BOUND_DEFAULT.
 * *list is NULL before the call; the caller frees it, on error too. INVALID,
 * NOMEM. */
enum frag_err bound_choices_read(const struct texts given[FRAG_BOUND_KINDS],
                                 struct bound_choice **list, size_t *count,
                                 struct frag_error *e) FRAG_MUST_CHECK;

/* Whether a run repeats the recorded allocator (frag_run_identity.repeats): the
 * policy is torch@recorded, without more, under the recorded bound. */
bool bound_repeats(const struct policy_choice *policy, struct frag_bound bound,
                   struct frag_bound recorded);

/* The text of a capacity, borrowed from *c; "" for a limit of the process. */
const char *bound_choice_capacity(const struct bound_choice *c);

/* The bound for a policy on a trace with these facts. */
struct frag_bound bound_choice_of(const struct bound_choice *c,
                                  const struct policy_choice *policy,
                                  const struct bound_facts *facts);

#endif
