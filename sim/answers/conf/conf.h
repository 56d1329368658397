/* conf.h - reads a value of PYTORCH_CUDA_ALLOC_CONF, and says what a version of
 * PyTorch would do with it: what it refuses, what it ignores, what is
 * dangerous, and which settings are then in force.
 *
 * Whether a value is accepted is decided by the torch policy, whose grammar is
 * that of the version; which version knows a setting, by
 * policies/torch/versions.h. tests/recordings/check_keys.py compares both with
 * the parsers of PyTorch's releases.
 */
#ifndef FRAG_SIM_ANSWERS_CONF_CONF_H
#define FRAG_SIM_ANSWERS_CONF_CONF_H

#include "policies/torch/versions.h"
#include "sim/experiments/cell.h"
#include "traces/torch_platforms.h"

/* ---- the settings ---- */

enum conf_kind {
    CONF_PLACEMENT, /* the torch policy follows it */
    CONF_BACKEND,
    CONF_OTHER, /* the torch policy checks the value only */
};

/* One setting. The texts are whole sentences. */
struct conf_key {
    const char *name;
    enum conf_kind kind;
    bool is_general; /* since TORCH_PARSER the parser of all devices reads it */
    bool on_host;    /* a setting of the memory of the host */
    const char *values, *init; /* the accepted values and the default */
    const char *effect;        /* what it does */
    const char *use, *price;   /* when it helps, and what it costs */
};

/* All settings, ended by a NULL name: those of all versions of PyTorch 2, one
 * of PyTorch 1 that is still in use, and those of torch_npu for Ascend. */
extern const struct conf_key conf_keys[];

/* The row of a setting; NULL if there is none. */
const struct conf_key *conf_key_find(const char *name);

/* Whether only torch_npu for Ascend has the setting. */
bool conf_key_is_of_npu(const struct conf_key *key);

/* Writes the versions that know a setting, "PyTorch 2.6 and later". */
enum { CONF_VERSIONS = 64 };
const char *conf_key_versions(const struct conf_key *key,
                              char text[CONF_VERSIONS]);

/* ---- an answer ---- */

/* How serious a finding is; the most serious first. */
#define CONF_LEVELS(X)  \
    X(REFUSED, refused) \
    X(UNKNOWN, unknown) \
    X(IGNORED, ignored) \
    X(DANGER, danger)   \
    X(NOTE, note)

enum conf_level {
#define X(upper, lower) CONF_##upper,
    CONF_LEVELS(X)
#undef X
        CONF_FINE /* no finding */
};
extern const char *const conf_level_names[]; /* "refused", ... */

/* One setting of the text, as the user wrote it but for white space. */
struct conf_item {
    const char *key, *value;    /* value is "" if there is none */
    const struct conf_key *row; /* NULL: an unknown setting */
    bool refused;               /* PyTorch raises an error */
    bool overwritten;           /* the same setting follows */
    bool useless;               /* it has no effect beside the other settings,
                                   or in the variable where it stands */
    const char *in_force;       /* the value that the torch policy uses, in
                                   `used`, up to a comma outside of brackets;
                                   NULL: the default, or no setting of
                                   placement */
};

/* The settings of a text that PyTorch reads: a build for CUDA reads only the
 * general ones in PYTORCH_HIP_ALLOC_CONF, and the others elsewhere. */
enum conf_part { CONF_WHOLE, CONF_GENERAL, CONF_OF_CUDA };

enum { CONF_FINDING = 512 };

struct conf_finding {
    enum conf_level level;
    size_t item;  /* index of its setting; SIZE_MAX: of the whole text */
    size_t place; /* among the findings, in the order of the rules */
    char text[CONF_FINDING]; /* whole sentences */
};

struct conf_answer {
    const char *text; /* as given; borrowed */
    unsigned version;
    enum conf_part part;
    enum torch_platform_id platform;
    struct conf_item *items; /* in the order of the text */
    size_t item_count;
    struct conf_finding *findings; /* in the order of the items */
    size_t finding_count;
    bool native; /* false: backend:cudaMallocAsync, whose settings of placement
                    are ignored */
    struct frag_params *used; /* the torch policy's settings, without those that
                                 are refused */
    char *canonical; /* the shortest text with the same effect, without what is
                        refused; "" if only defaults are left */
    void *words;     /* storage of the items' texts */
};

/* Reads a text for a version of PyTorch 2 (policies/torch/versions.h). A wrong
 * setting is a finding, not an error. NOMEM. The caller closes *out, on error
 * too. */
enum frag_err conf_read(const char *text, unsigned version, enum conf_part part,
                        struct conf_answer *out,
                        struct frag_error *e) FRAG_MUST_CHECK;
void conf_close(struct conf_answer *a);

/* The same for the allocator of a platform. */
enum frag_err conf_read_for(enum torch_platform_id platform, const char *text,
                            unsigned version, enum conf_part part,
                            struct conf_answer *out,
                            struct frag_error *e) FRAG_MUST_CHECK;

/* The level of the most serious finding. */
enum conf_level conf_level(const struct conf_answer *a);

/* Adds a finding that is formatted as by printf. false if the host has no
 * memory. `item` as in struct conf_finding. */
bool conf_say(struct conf_answer *a, enum conf_level level, size_t item,
              const char *format, ...) FRAG_PRINTF(4, 5);

/* ---- the environment ---- */

/* The variables that PyTorch reads. It uses the first that is set, and no
 * other. */
enum { CONF_VARIABLES = 3 };
extern const char *const conf_variables[CONF_VARIABLES];

/* Chooses among the values of these variables, each NULL if it is not set. The
 * index of the one that PyTorch uses; CONF_VARIABLES if it uses none. */
size_t conf_variable_used(const char *const values[CONF_VARIABLES],
                          unsigned version);

/* What PyTorch reads in the variable of that index. */
enum conf_part conf_variable_part(size_t used);

/* Adds the findings about the variables themselves: those that are set and not
 * used. `uncached`: PYTORCH_NO_CUDA_MEMORY_CACHING is set. NOMEM. */
enum frag_err conf_judge_variables(struct conf_answer *a,
                                   const char *const values[CONF_VARIABLES],
                                   bool uncached,
                                   struct frag_error *e) FRAG_MUST_CHECK;

#endif
