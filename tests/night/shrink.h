/* shrink.h - kept cases: a folder with the arguments, one a line, in `args`,
 * and the inputs; and the search for a smaller case with the same fault.
 */
#ifndef FRAG_TESTS_NIGHT_SHRINK_H
#define FRAG_TESTS_NIGHT_SHRINK_H

#include "tests/night/command.h"
#include "tests/night/night_child.h"

struct kept {
    char *args[ARGS + 1]; /* ended by NULL */
    size_t count;
    struct bytes inputs[INPUTS];
    char names[INPUTS][INPUT_NAME];
    const char *formats[INPUTS]; /* NULL: its bytes are not made fewer */
    size_t input_count;
};

/* Reads a case from its folder; to be freed. */
bool kept_read(struct kept *k, const char *folder);
void kept_free(struct kept *k);
void kept_run(const struct kept *k, const struct limits *limits,
              struct outcome *out);

/* The folder of the case with this key, in OUT/found. */
void found_path(char path[4096], const char *out, const char *key);

/* If there is no such folder yet: runs the case again with these limits, makes
 * it smaller as long as its key stays the same, and keeps it there, with the
 * report. */
void shrink_and_keep(const char *path, uint64_t run, const struct command *c,
                     const struct outcome *o, const struct limits *limits);

#endif
