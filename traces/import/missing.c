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

/* A name with a byte below a blank could change the terminal. */
static bool is_printable(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name < ' ' || *name == 0x7f)
            return false;
    return true;
}

/* Sets `found` to the nearest name to `name` in an open folder, "" if there is
 * none. */
static void find_near(DIR *dir, const char *name, char found[NAME_MAX + 1])
{
    struct nearest near = nearest_to(name);
    const struct dirent *entry;

    *found = '\0';
    while ((entry = readdir(dir)) != NULL) {
        if (!is_printable(entry->d_name))
            continue;
        nearest_try(&near, entry->d_name);
        if (near.found == entry->d_name) {
            snprintf(found, NAME_MAX + 1, "%s", entry->d_name);
            near.found = found;
        }
    }
}

static enum frag_err not_found(const char *path, struct frag_error *e)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char folder[PATH_MAX], found[NAME_MAX + 1];
    DIR *dir;

    snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
    if (strpbrk(path, "*?"))
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a file, found a pattern that no file "
                         "matches; `ls %s' lists the files that are there",
                         path, *folder ? folder : ".");
    dir = opendir(*folder ? folder : ".");
    if (!dir)
        return frag_fail(e, FRAG_IO, "%s: the folder %s cannot be opened: %s",
                         path, folder, strerror(errno));
    find_near(dir, name, found);
    closedir(dir);
    if (*found)
        return frag_fail(
            e, FRAG_IO, "%s: No such file or directory; did you mean \"%s%s\"?",
            path, folder, found);
    return frag_fail(e, FRAG_IO,
                     "%s: No such file or directory; `ls %s' lists the files "
                     "that are there",
                     path, *folder ? folder : ".");
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
