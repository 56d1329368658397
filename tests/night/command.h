/* command.h - the seeds, and random command lines: a verb, its options from its
 * own table, values from the grammar in command.c, and inputs made from seeds.
 */
#ifndef FRAG_TESTS_NIGHT_COMMAND_H
#define FRAG_TESTS_NIGHT_COMMAND_H

#include "sim/cli/cli.h"
#include "tests/night/mutate.h"

enum {
    FOLDERS = 48,
    ARGS = 32,
    INPUTS = 6,
    ARGS_ROOM = 1 << 14,
    INPUT_NAME = 32
};

struct folder {
    char name[32];
    struct bytes *files;
    size_t count;
};

struct seeds {
    struct folder folders[FOLDERS]; /* one a format; sorted by name */
    size_t count;
};

/* Reads FOLDER/FORMAT/ *. False, with a message on stderr, if that fails. */
bool seeds_read(struct seeds *seeds, const char *folder);
const struct folder *seeds_find(const struct seeds *seeds, const char *format);

/* Reads a file; false if there is none. */
bool input_read(struct bytes *b, const char *path);
bool input_write(const struct bytes *b, const char *path);

/* File in<index> of a run. */
struct input {
    const struct folder *folder;
    const struct bytes *seed, *donor;
    bool is_changed, is_packed;
    struct dice dice;
};

struct command {
    const struct verb *verb;
    char *args[ARGS + 1]; /* without the tool's name, ended by NULL; in room */
    size_t count;
    struct input inputs[INPUTS];
    size_t input_count;
    char room[ARGS_ROOM];
    size_t used;
};

extern const struct verb *const night_verbs[]; /* all verbs, ended by NULL */

/* The name of an input. */
void input_name(char name[INPUT_NAME], size_t index);

/* A random command. The command stays valid as long as the seeds. */
void command_make(struct command *c, struct dice *d, const struct seeds *seeds);
/* Writes the inputs into the current folder. */
void command_write(const struct command *c);
/* The format of the first input that is changed, or "arguments". */
const char *command_format(const struct command *c);

#endif
