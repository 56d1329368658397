/* temporary.h - files and folders that exist only while a command works.
 *
 * Their names cannot be guessed, and a link that lies under such a name is not
 * followed. A table holds the names of this process, so that a signal handler
 * can remove all of them. traces/bytes/atomic_file.h makes outputs of them.
 */
#ifndef FRAG_TRACES_BYTES_TEMPORARY_H
#define FRAG_TRACES_BYTES_TEMPORARY_H

#include <stdbool.h>
#include <sys/types.h>

#include "traces/base.h"

/* Creates an empty file named HEAD, eight random characters and TAIL, with the
 * permissions of the umask, or a folder for this user only. If the name is too
 * long for a file, the end of HEAD is left out. The caller passes the name to
 * one of the two functions below. NULL with errno set. */
char *temporary_file(const char *head, const char *tail);
char *temporary_folder(const char *head, const char *tail);

/* Removes the file, or the folder and all that is in it, and frees the name.
 * NULL is allowed. */
void temporary_remove(char *name);
/* Frees the name of a file that was renamed. */
void temporary_keep(char *name);

/* Removes all files and folders that this process made and did not pass to the
 * functions above; no further one can be made. A signal handler may call it. */
void temporary_remove_all(void);

/* From now on, processes that are forked list their names in memory that this
 * process shares, so that it can remove what one of them left when it crashed.
 * To be called once, before any thread. False if the host has no memory. */
bool temporary_share(void);
/* Removes what the process, which has ended, made and did not remove. */
void temporary_remove_of(pid_t process);

/* Removes the files that temporary_file(head, tail) made in processes that no
 * longer run; the caller knows that none runs. A HEAD that was too long is
 * skipped, because other files may begin with its first part. */
void temporary_remove_dead(const char *head, const char *tail);

#endif
