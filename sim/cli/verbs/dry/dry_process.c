/* dry_process.c - reads the notes of a process. */
#include "sim/cli/verbs/dry/dry_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"
#include "traces/text.h"

enum { LINE = 4096 };

static enum frag_err add_note(struct dry_process *p, char *line,
                              struct frag_error *e)
{
    struct dry_note *n;
    int at = 0;

    line[strcspn(line, "\n")] = '\0';
    if (!GROW(p->notes, p->room, p->count + 1))
        return frag_no_memory(e, "the notes");
    n = &p->notes[p->count];
    if (sscanf(line, "%15[^\t]\t%llu\t%n", n->kind, &(unsigned long long){0},
               &at) != 2)
        return frag_fail(e, FRAG_CORRUPT,
                         "notes of process %s: expected kind, number and name, "
                         "found \"%s\"",
                         p->number, line);
    n->number = strtoull(line + strlen(n->kind) + 1, NULL, 10);
    n->name = strdup(at ? line + at : "");
    if (!n->name)
        return frag_no_memory(e, "the notes");
    p->count++;
    if (!strcmp(n->kind, "rank"))
        p->rank = (long)n->number;
    return FRAG_OK;
}

enum frag_err dry_notes_read(const char *path, struct dry_process *out,
                             struct frag_error *e)
{
    FILE *file = fopen(path, "r");
    enum frag_err err = FRAG_OK;
    char line[LINE];

    if (!file)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    while (err == FRAG_OK && fgets(line, sizeof(line), file))
        err = add_note(out, line, e);
    fclose(file);
    return err;
}

void dry_process_free(struct dry_process *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->notes[i].name);
    free(p->notes);
    free(p->trace);
    *p = (struct dry_process){.rank = -1};
}

uint64_t dry_note_of_device(const struct dry_process *p, const char *kind,
                            uint32_t device)
{
    for (size_t i = 0; i < p->count; i++)
        if (!strcmp(p->notes[i].kind, kind) &&
            strtoul(p->notes[i].name, NULL, 10) == device)
            return p->notes[i].number;
    return 0;
}

bool dry_death(const struct dry_process *p, int status, char *text, size_t room)
{
    const char *lacked = "", *where = "";
    frag_size used = 0;
    int number = status > 128 ? status - 128 : 0;

    for (size_t i = 0; i < p->count; i++) {
        const struct dry_note *n = &p->notes[i];

        if (!strcmp(n->kind, "ended"))
            return false;
        if (!strcmp(n->kind, "lacked"))
            lacked = n->name;
        else if (!strcmp(n->kind, "used") && n->number > used)
            used = n->number;
        else if (!strcmp(n->kind, "fault"))
            where = n->name, number = (int)n->number;
    }
    *text = '\0';
    text_add(text, room, "", "process %s died", p->number);
    if (number)
        text_add(text, room, " ", "of signal %d", number);
    if (*where)
        text_add(text, room, " ", "in %.*s", (int)strcspn(where, " "), where);
    if (*lacked)
        text_add(text, room, " ", "after %.*s, which the stand-in lacks",
                 (int)strcspn(lacked, " "), lacked);
    if (used)
        text_add(text, room, "; ",
                 "it had %s of the GPU by then, the CUDA context included",
                 FRAG_SHOW_SIZE(used));
    return true;
}

const char *dry_note_name(const struct dry_process *p, const char *kind)
{
    for (size_t i = 0; i < p->count; i++)
        if (!strcmp(p->notes[i].kind, kind))
            return p->notes[i].name;
    return NULL;
}
