/* python.c - programs of Python that load modules of fragsim (python.h). */
#include "sim/cli/verbs/python.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/program.h"
#include "traces/bytes/input.h"

enum { LINE = 512 }; /* bytes of the first line of a script */

/* ---- the program ---- */

/* The option of a command of Python that makes it ignore PYTHONPATH or
 * sitecustomize; 0: none. `next` returns the words after the interpreter. */
static char ignoring_option(const char *const *words)
{
    for (; *words && **words == '-' && (*words)[1] != '-'; words++) {
        const char *at = *words + 1 + strcspn(*words + 1, "IESWXQcm");

        if (*at && strchr("IES", *at))
            return *at;
        if (!*at)
            continue;
        if (*at == 'c' || *at == 'm')
            return 0;
        if (!at[1] && !*++words)
            return 0;
    }
    return 0;
}

static bool is_python(const char *word)
{
    const char *slash = strrchr(word, '/');

    word = slash ? slash + 1 : word;
    return !strncmp(word, "python", 6) || !strncmp(word, "pypy", 4);
}

/* Opens a program, which is searched for on the PATH as execvp does; NULL if it
 * cannot be read. */
static FILE *open_program(const char *name)
{
    const char *at = getenv("PATH");
    char path[2 * PATH_MAX];
    FILE *file = NULL;

    if (strchr(name, '/'))
        return input_file(name, &file, NULL) == FRAG_OK ? file : NULL;
    while (at && *at && !file) {
        const int length = (int)strcspn(at, ":");

        snprintf(path, sizeof(path), "%.*s%s%s", length, at, length ? "/" : "",
                 name);
        file =
            access(path, X_OK) == 0 && input_file(path, &file, NULL) == FRAG_OK
                ? file
                : NULL;
        at += length + (at[length] == ':');
    }
    return file;
}

/* The same for a script whose first line names the interpreter and options. */
static char ignoring_script(const char *program)
{
    FILE *file = open_program(program);
    char line[LINE] = "", *rest = NULL;
    const char *words[LINE / 2 + 1], **first = words;
    size_t count = 0;

    if (file && fgets(line, sizeof(line), file) && !strncmp(line, "#!", 2))
        for (char *word = strtok_r(line + 2, " \t\n", &rest); word;
             word = strtok_r(NULL, " \t\n", &rest))
            words[count++] = word;
    words[count] = NULL;
    if (file)
        fclose(file);
    while (*first && !is_python(*first))
        first++;
    return *first ? ignoring_option(first + 1) : 0;
}

enum frag_err python_check(const struct texts *command, const char *what,
                           struct frag_error *e)
{
    const char *name = command->items[0];
    const char **words = calloc(command->count + 1, sizeof(*words));
    char option;

    if (!words)
        return FRAG_NOMEM;
    memcpy(words, command->items, command->count * sizeof(*words));
    option =
        is_python(name) ? ignoring_option(words + 1) : ignoring_script(name);
    free(words);
    if (!option)
        return FRAG_OK;
    return frag_fail(e, FRAG_INVALID,
                     "%s -%c: expected Python without this option, because "
                     "with it Python ignores %s, through which %s is loaded",
                     name, option,
                     option == 'S' ? "sitecustomize" : "PYTHONPATH", what);
}

/* ---- the environment ---- */

enum frag_err python_output(const char *out, char name[2 * PATH_MAX],
                            struct frag_error *e)
{
    char folder[PATH_MAX] = "", copy[2 * PATH_MAX];

    if (*out != '/' && !getcwd(folder, sizeof(folder)))
        return frag_fail(e, FRAG_IO, "the current folder: %s", strerror(errno));
    if (snprintf(name, 2 * PATH_MAX, "%s%s%s", folder, *folder ? "/" : "",
                 out) >= PATH_MAX)
        return frag_fail(e, FRAG_IO, "%s: %s", out, strerror(ENAMETOOLONG));
    snprintf(copy, sizeof(copy), "%s", name);
    strcat(dirname(copy), "/."); /* the name of the file made room */
    if (!strstr(copy, "%p") && access(copy, W_OK) < 0)
        return frag_fail(e, FRAG_IO, "%s: %s", out, strerror(errno));
    return FRAG_OK;
}

enum frag_err python_start(char **path, struct frag_error *e)
{
    static const char *const places[] = {
        "../share/fragsim/start", "../start", /* the second: Python package */
        FRAG_START_SOURCE, FRAG_START_INSTALLED, NULL};
    const char *before = getenv("PYTHONPATH");
    char file[PATH_MAX];
    const char *folder;
    size_t room;

    if (!program_find("sitecustomize.py", places, file))
        return frag_fail(e, FRAG_IO,
                         "expected the folder start with sitecustomize.py in "
                         "%s, found none: install fragsim again",
                         FRAG_START_INSTALLED);
    folder = dirname(file);
    if (strchr(folder, ':'))
        return frag_fail(e, FRAG_IO,
                         "%s: expected a path without colons, because "
                         "PYTHONPATH accepts no others",
                         folder);
    room = strlen(folder) + (before ? strlen(before) : 0) + 2;
    *path = malloc(room);
    if (!*path)
        return FRAG_NOMEM;
    snprintf(*path, room, "%s%s%s", folder, before && *before ? ":" : "",
             before ? before : "");
    return FRAG_OK;
}
