/* missing.c - finds out what is wrong with the name of a trace: a pattern that
 * no file matches, a folder, or a misspelt name. It opens no file. */
#include "traces/import/missing.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "traces/nearest.h"

bool missing_exists(const char *path)
{
    struct stat st;

    return !strcmp(path, "-") || stat(path, &st) == 0;
}

/* Sets `found` to the nearest name to `name` in a folder, "" if there is none.
 */
static void find_near(const char *folder, const char *name,
                      char found[NAME_MAX + 1])
{
    DIR *dir = opendir(*folder ? folder : ".");
    struct nearest near = nearest_to(name);
    const struct dirent *entry;

    *found = '\0';
    while (dir && (entry = readdir(dir)) != NULL) {
        nearest_try(&near, entry->d_name);
        if (near.found == entry->d_name)
            near.found = strcpy(found, entry->d_name);
    }
    if (dir)
        closedir(dir);
}

static enum frag_err not_found(const char *path, struct frag_error *e)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char folder[PATH_MAX], found[NAME_MAX + 1];

    if (strpbrk(path, "*?"))
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a file, found a pattern that no file "
                         "matches",
                         path);
    snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
    find_near(folder, name, found);
    return *found
               ? frag_fail(e, FRAG_IO,
                           "%s: No such file or directory; did you mean "
                           "\"%s%s\"?",
                           path, folder, found)
               : frag_fail(e, FRAG_IO, "%s: No such file or directory", path);
}

enum frag_err missing_check(const char *path, struct frag_error *e)
{
    struct stat st;

    if (!strcmp(path, "-"))
        return FRAG_OK;
    if (stat(path, &st) != 0 && errno == ENOENT)
        return not_found(path, e);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return frag_fail(e, FRAG_IO,
                         "%s: expected a trace, found a folder; name the files "
                         "in it, for example %s/*.pickle",
                         path, path);
    return FRAG_OK;
}
