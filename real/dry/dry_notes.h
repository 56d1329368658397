/* dry_notes.h - what the stand-ins could not answer truly, and how often they
 * were asked. Every library of real/dry/ reports here; libcuda.so.1 has the
 * list.
 *
 * The process writes the list to the file FRAGSIM_DRY_NOTES when it ends, one
 * line each: kind, count and name with a tab between them. A function that
 * fails because the stand-in lacks it also says so on stderr at its first call.
 */
#ifndef FRAG_REAL_DRY_DRY_NOTES_H
#define FRAG_REAL_DRY_DRY_NOTES_H

/* The kinds of notes, by the word in the file. */
#define DRY_NOTES(X)                                                        \
    X(LACKS, "lacks") /* a function that the stand-in lacks: it failed */   \
    X(SIZE, "size")   /* a size that the real library would have decided */ \
    X(GUESS, "guess") /* a fixed answer where a GPU's would be computed */  \
    X(READ, "read")   /* values that the program read from the device */    \
    X(LATE, "late")   /* work of which it is not known whether it had ended */

enum dry_note {
#define X(name, word) DRY_##name,
    DRY_NOTES(X)
#undef X
        DRY_NOTE_KINDS
};

#pragma GCC visibility push(default)

/* Counts one more note of that kind about `name`, which is copied. */
void frag_dry_note(enum dry_note kind, const char *name);

/* The program asks how much memory of a device is free: `on_room` says where.
 */
void frag_dry_room_read(void);
void frag_dry_on_room(void (*on_room)(void));

/* Writes all notes to the file as above; 0, or -1 with errno. The process does
 * this itself at its end. */
int frag_dry_notes_write(const char *path);

#pragma GCC visibility pop

#endif
