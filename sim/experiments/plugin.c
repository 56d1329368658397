/* plugin.c - loads a policy from a shared library and checks that it is
 * sound and has the right version. */
#include "sim/experiments/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sim/replay/place.h"

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
    struct frag_error why;

    if (plugin->abi != FRAG_POLICY_ABI)
        return frag_fail(e, FRAG_INVALID,
                         "%s was built for version %u of the policy "
                         "interface, but this fragsim has version %u: build "
                         "the plugin again",
                         path, (unsigned)plugin->abi,
                         (unsigned)FRAG_POLICY_ABI);
    if (!plugin->policy)
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a policy in %s, found NULL: name it in "
                         "FRAG_POLICY_PLUGIN",
                         path, symbol);
    if (frag_policy_check(plugin->policy, &why) == FRAG_OK)
        return FRAG_OK;
    return frag_fail(e, FRAG_INVALID, "%.200s: %.300s", path, why.text);
}

/* A global: it precedes the first library of the process, whichever command
 * names it. */
static struct guard {
    enum frag_err (*begin)(const void *user, struct frag_error *e);
    const void *user;
} guard;

void plugin_guard(enum frag_err (*begin)(const void *user,
                                         struct frag_error *e),
                  const void *user)
{
    guard = (struct guard){begin, user};
}

static enum frag_err begin_guard(struct frag_error *e)
{
    const struct guard once = guard;

    guard.begin = NULL;
    return once.begin ? once.begin(once.user, e) : FRAG_OK;
}

static enum frag_err load(const char *path, const struct frag_policy **out,
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

enum frag_err plugin_load(const char *path, const struct frag_policy **out,
                          struct frag_error *e)
{
    struct place *place;
    enum frag_err err;

    FRAG_TRY(begin_guard(e));
    place = place_enter(path);
    place_part(place, "while it was loaded");
    err = load(path, out, e);
    place_leave(place);
    if (err == FRAG_OK)
        place_watch(*out, path);
    return err;
}

bool plugin_made(const struct frag_policy *policy)
{
    return frag_policy_find(policy->name) != policy;
}
