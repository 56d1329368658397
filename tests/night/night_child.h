/* night_child.h - one run of the tool's own main in a forked child, with
 * limits, and the judgement of its end.
 */
#ifndef FRAG_TESTS_NIGHT_NIGHT_CHILD_H
#define FRAG_TESTS_NIGHT_NIGHT_CHILD_H

#include <stdbool.h>
#include <stddef.h>

enum { KEY_ROOM = 160, REPORT_ROOM = 1 << 14 };

struct limits {
    double processor; /* seconds */
    double wall;      /* seconds */
    long memory;      /* MiB resident */
    bool leaks;       /* whether leaks are searched for */
};

struct outcome {
    char key[KEY_ROOM]; /* what failed, the same for the same fault; "": the
                           run did what the manual says */
    int code;           /* exit code; 128 + N after signal N */
    double processor;   /* seconds */
    long memory;        /* MiB */
    char report[REPORT_ROOM]; /* the beginning of stderr */
};

/* Prepares the folder of the runs, which becomes the current one. */
bool child_enter(const char *folder);
void child_leave(const char *folder);

/* Empties the folder of the runs and runs the command in a child that first
 * calls `prepare`, which writes the inputs. If an input was not changed by
 * prepare, the child's end there is no fault. */
void child_run_command(char *const *args, size_t count,
                       void (*prepare)(const void *), const void *user,
                       const struct limits *limits, struct outcome *out);

/* Exits the process with the code of the tool. */
int child_main(int argc, char **argv);

#endif
