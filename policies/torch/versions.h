/* versions.h - which version of PyTorch 2 knows which setting of its allocator,
 * and which rules of placement changed from version to version.
 *
 * A version is the second number of PyTorch's: 6 is PyTorch 2.6. A PyTorch that
 * does not know a setting raises an error when it reads the text; some versions
 * also refuse a value that later versions accept.
 */
#ifndef FRAG_POLICIES_TORCH_VERSIONS_H
#define FRAG_POLICIES_TORCH_VERSIONS_H

#include "traces/base.h"

enum {
    TORCH_OLDEST = 0,  /* versions of PyTorch 2 that the table covers */
    TORCH_NEWEST = 15, /* the newest release when the table was made */
    TORCH_LATER,       /* any later release; it is read as the newest one */
    TORCH_MODEL = 15,  /* the version whose placement the torch policy models
                          unless the setting torch_version names another */
    TORCH_MODEL_OLDEST = 1,  /* the oldest version whose placement it models */
    TORCH_MODEL_NEWEST = 15, /* the newest one */
    TORCH_LIST_ZERO =
        4,             /* the first version whose lists may have 0 divisions */
    TORCH_PARSER = 10, /* the first version with the parser of c10/core, which
                          is common to all devices */
    TORCH_THREADS = 128, /* most pinned_num_register_threads */
    TORCH_NEVER = 999,   /* `since` of a setting that PyTorch 2 does not know */
};

/* A setting of PYTORCH_CUDA_ALLOC_CONF. */
struct torch_setting {
    const char *name;
    unsigned since;     /* first version that knows it */
    unsigned least_mib; /* least value, in MiB, that versions before `relaxed`
                           accept; 0: they accept what 2.11 accepts */
    unsigned relaxed;
    bool is_general; /* since TORCH_PARSER the parser of all devices reads it */
    bool on_host;    /* of the memory of the host */
};

/* The rules of placement that changed from TORCH_MODEL_OLDEST to
 * TORCH_MODEL_NEWEST. No other difference between these versions changes a
 * placement that the policy models; versions.c has the evidence. */
enum torch_rule {
    TORCH_ONE_DIVISION,   /* one division switches rounding off altogether */
    TORCH_POOL_SEGMENTS,  /* private pools do not use expandable segments */
    TORCH_OVERSIZE_FAILS, /* an expandable block of max_split_size or more
                             stops the process when memory runs out */
    TORCH_FILL_AT_LAST,   /* ">" in a list also sets the last interval named */
    TORCH_TIE_ADDRESS,   /* of free blocks of equal size the one with the lowest
                            address is taken */
    TORCH_TIE_RECORD,    /* the one whose record is the oldest (2.12 only);
                            later the lowest address of the oldest segment */
    TORCH_POOL_RELEASES, /* no request of a private pool returns the cache to
                            the device; later no request of a capture does */
    TORCH_FRACTION_CUT,  /* the limit of per_process_memory_fraction is cut to
                            whole bytes; later it is rounded to the nearest */
    TORCH_RULES
};

struct torch_change {
    unsigned since;      /* first version with the later rule */
    const char *concern; /* the settings that it concerns, for a message */
    const char *before;  /* the earlier rule, one sentence */
};

extern const struct torch_change torch_changes[TORCH_RULES];

/* Whether a version has the earlier rule. */
static inline bool torch_has_earlier(unsigned version, enum torch_rule rule)
{
    return version < torch_changes[rule].since;
}

/* The rules that make two modelled versions place the same requests otherwise,
 * under settings in the grammar of torch_conf.h: sum of 1 << enum torch_rule.
 * has_pools: requests come from private pools too. Settings that one of the two
 * versions refuses count as no difference. */
unsigned torch_differences(const char *settings, bool has_pools, unsigned a,
                           unsigned b);

/* The version that such settings name; TORCH_MODEL if they name none. */
unsigned torch_version_of(const char *settings);

/* All settings, also those without an effect on placement; ended by a NULL
 * name. */
extern const struct torch_setting torch_known_settings[];

/* Whose setting the torch policy reads under a name. */
enum torch_owner {
    TORCH_OF_NOBODY, /* no setting is known by it */
    TORCH_OF_PYTORCH,
    TORCH_OF_NPU,     /* torch_npu for Ascend only */
    TORCH_OF_FRAGSIM, /* PyTorch refuses it */
};
enum torch_owner torch_owner_of(const char *name);

/* The row of a setting; NULL if the table has none. */
const struct torch_setting *torch_setting_find(const char *name);

/* INVALID if a name in settings that a user wrote is a known one with a slip:
 * one or two letters differ. Settings of a recording have no slips, as PyTorch
 * accepted them: there such a name is a setting that is not known. */
enum frag_err torch_check_names(const char *settings,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* Lists the settings of a text that the torch policy passes over: those that
 * the table does not know, and those that it does not model. */
enum { TORCH_LEFT_OUT = 300 };
void torch_left_out(const char *settings, char unknown[TORCH_LEFT_OUT],
                    char others[TORCH_LEFT_OUT]);

/* The least value in MiB that a version accepts; 0: that of 2.11. */
unsigned torch_setting_least(const struct torch_setting *setting,
                             unsigned version);

/* The version whose placement the torch policy models for this one. */
static inline unsigned torch_modelled_as(unsigned version)
{
    return version < TORCH_MODEL_OLDEST   ? TORCH_MODEL_OLDEST
           : version > TORCH_MODEL_NEWEST ? TORCH_MODEL_NEWEST
                                          : version;
}

/* Reads "2.6", "2.6.1" or "2.6.0+cu124", as torch.__version__ has it; a release
 * after TORCH_NEWEST is TORCH_LATER. INVALID for other texts and for versions
 * before 2.0; then *version is unchanged. */
enum frag_err torch_version_read(const char *text, unsigned *version,
                                 struct frag_error *e) FRAG_MUST_CHECK;

#endif
