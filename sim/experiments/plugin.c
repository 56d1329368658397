/* plugin.c - loads a policy from a shared library and checks that it is
 * complete and has the right version. */
#include "sim/experiments/plugin.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char symbol[] = "frag_policy_plugin";

bool plugin_is_meant(const char *name)
{
    const size_t length = strlen(name);

    return strchr(name, '/') ||
           (length > 3 && !strcmp(name + length - 3, ".so"));
}

static enum frag_err judge(const char *path, const struct frag_plugin *plugin,
                           struct frag_error *e)
{
    const struct frag_policy *p;

    if (plugin->abi != FRAG_POLICY_ABI)
        return frag_fail(e, FRAG_INVALID,
                         "%s was built for version %u of the policy "
                         "interface, but this fragsim has version %u: build "
                         "the plugin again",
                         path, (unsigned)plugin->abi,
                         (unsigned)FRAG_POLICY_ABI);
    p = plugin->policy;
    if (!p || !p->name || !p->summary || !p->source || !p->alloc || !p->free)
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a policy with a name, summary, source, "
                         "alloc and free; at least one of them is missing",
                         path);
    if (!frag_quantum_is_valid(p->quantum))
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a policy whose `quantum' is a power of "
                         "two up to %d bytes, the unit to which it rounds "
                         "requests, found %" PRIu64,
                         path, FRAG_QUANTUM, p->quantum);
    return FRAG_OK;
}

enum frag_err plugin_load(const char *path, const struct frag_policy **out,
                          struct frag_error *e)
{
    const struct frag_plugin *plugin;
    char file[PATH_MAX];
    void *library;

    /* Without a slash, dlopen searches the system's folders. */
    snprintf(file, sizeof(file), "%s%s", strchr(path, '/') ? "" : "./", path);
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return frag_fail(e, FRAG_INVALID, "the policy cannot be loaded: %s",
                         dlerror());
    plugin = dlsym(library, symbol);
    if (!plugin)
        return frag_fail(e, FRAG_INVALID,
                         "%s is not a policy: expected the symbol %s, found "
                         "none",
                         path, symbol);
    FRAG_TRY(judge(path, plugin, e));
    *out = plugin->policy;
    return FRAG_OK;
}

bool plugin_made(const struct frag_policy *policy)
{
    return frag_policy_find(policy->name) != policy;
}
