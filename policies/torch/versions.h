/* versions.h - which version of PyTorch 2 knows which setting of its allocator.
 *
 * A version is the second number of PyTorch's: 6 is PyTorch 2.6. A PyTorch that
 * does not know a setting raises an error when it reads the text; some versions
 * also refuse a value that later versions accept. The placement that this
 * project models is that of 2.11 for every version.
 */
#ifndef FRAG_POLICIES_TORCH_VERSIONS_H
#define FRAG_POLICIES_TORCH_VERSIONS_H

#include "traces/base.h"

enum {
    TORCH_OLDEST = 0,  /* versions of PyTorch 2 that the table covers */
    TORCH_NEWEST = 15, /* the newest release when the table was made */
    TORCH_MODEL = 11,  /* the version whose placement the torch policy models */
    TORCH_NEVER = 999, /* `since` of a setting that PyTorch 2 does not know */
};

/* A setting of PYTORCH_CUDA_ALLOC_CONF. */
struct torch_setting {
    const char *name;
    unsigned since;     /* first version that knows it */
    unsigned least_mib; /* least value, in MiB, that versions before `relaxed`
                           accept; 0: they accept what 2.11 accepts */
    unsigned relaxed;
    const char *off; /* the value that stands for "off" in fragsim's texts;
                        PyTorch refuses it. NULL: every value is PyTorch's */
};

/* All settings, also those without an effect on placement; ended by a NULL
 * name. */
extern const struct torch_setting torch_known_settings[];

/* The row of a setting; NULL if the table has none. */
const struct torch_setting *torch_setting_find(const char *name);

/* Whether the value stands for "off", the default of the setting, in fragsim's
 * texts and is none of PyTorch's. */
bool torch_setting_is_off(const char *name, const char *value);

/* The least value in MiB that a version accepts; 0: that of 2.11. */
unsigned torch_setting_least(const struct torch_setting *setting,
                             unsigned version);

/* Reads "2.6", "2.6.1" or "2.6.0+cu124", as torch.__version__ has it. INVALID
 * for other texts and for versions that the table does not cover; then *version
 * is unchanged. */
enum frag_err torch_version_read(const char *text, unsigned *version,
                                 struct frag_error *e) FRAG_MUST_CHECK;

#endif
