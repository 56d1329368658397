/* nccl_said.c - messages between the ranks of a communicator (nccl_said.h). */
#define _GNU_SOURCE
#include "real/dry/libraries/nccl_said.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "real/dry/dry_shadow.h"

enum { PATH = 4096, LONGEST_WAIT = 60 /* s */, PAUSE = 1000 /* us */ };

struct message {
    int to;
    unsigned number;
    size_t size; /* of the bytes that follow; 0: they are not known */
};

static void file_of(char path[PATH], const char *communicator, int rank)
{
    const char *folder = getenv("FRAGSIM_DRY_FOLDER");

    snprintf(path, PATH, "%s/%s.%d.said", folder ? folder : ".", communicator,
             rank);
}

void said(const char *communicator, int rank, int to, unsigned number,
          uint64_t at, size_t size, bool is_whole)
{
    struct {
        struct message head;
        unsigned char bytes[FRAG_DRY_SHADOW_MOST];
    } m = {.head = {to, number, 0}};
    char path[PATH];
    int file;

    if (size > FRAG_DRY_SHADOW_MOST)
        return;
    if (is_whole ? frag_dry_sends(m.bytes, at, size)
                 : frag_dry_known(m.bytes, at, size))
        m.head.size = size;
    file_of(path, communicator, rank);
    file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    size = sizeof(m.head) + m.head.size;
    if (write(file, &m, size) != (ssize_t)size)
        fprintf(stderr, "fragsim dry: %s: a message was not written\n", path);
    close(file);
}

/* Whether the file has the message; its bytes are then written, if they are
 * known and of that size. */
static bool look(FILE *file, const struct message *wanted, void *to,
                 bool *known)
{
    struct message m;

    while (fread(&m, sizeof(m), 1, file) == 1) {
        if (m.to == wanted->to && m.number == wanted->number) {
            *known = m.size == wanted->size && fread(to, m.size, 1, file) == 1;
            return true;
        }
        if (fseek(file, (long)m.size, SEEK_CUR))
            break;
    }
    return false;
}

static bool fetch(void *to, size_t size, const char *from)
{
    const time_t end = time(NULL) + LONGEST_WAIT;
    struct message wanted = {.size = size};
    bool known = false, found = false;
    int length = 0;

    if (sscanf(from, "%d %u %n", &wanted.to, &wanted.number, &length) != 2)
        return false;
    while (!found && time(NULL) < end) {
        FILE *file = fopen(from + length, "rb");

        if (file) {
            found = look(file, &wanted, to, &known);
            fclose(file);
        }
        if (!found)
            usleep(PAUSE);
    }
    return known;
}

void said_to(const char *communicator, int from, int to, unsigned number,
             uint64_t at, size_t size)
{
    char path[PATH], text[PATH + 32];

    file_of(path, communicator, from);
    snprintf(text, sizeof(text), "%d %u %s", to, number, path);
    frag_dry_awaits(at, size, fetch, text);
}
