#include "sim/stats_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <yajl/yajl_tree.h>

enum { MAX_BYTES = 1 << 22 };

struct frag_stats_file {
    yajl_val root;
    yajl_val stats;
};

static enum frag_err read_all(const char *path, char **text,
                              struct frag_error *e)
{
    FILE *in = fopen(path, "rb");
    size_t length;

    if (!in)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    *text = malloc(MAX_BYTES + 1);
    if (!*text) {
        fclose(in);
        return FRAG_NOMEM;
    }
    length = fread(*text, 1, MAX_BYTES, in);
    (*text)[length] = '\0';
    if (ferror(in) || length == MAX_BYTES) {
        enum frag_err err =
            frag_fail(e, FRAG_IO, "%s: %s", path,
                      ferror(in) ? strerror(errno) : "more than 4 MiB of JSON");

        fclose(in);
        free(*text);
        return err;
    }
    fclose(in);
    return FRAG_OK;
}

static yajl_val member(yajl_val object, const char *name)
{
    const char *path[] = {name, NULL};

    return yajl_tree_get(object, path, yajl_t_any);
}

enum frag_err frag_stats_file_open(const char *path,
                                   struct frag_stats_file **out,
                                   struct frag_error *e)
{
    struct frag_stats_file *file = calloc(1, sizeof(*file));
    char words[256] = "";
    char *text = NULL;
    enum frag_err err;

    if (!file)
        return FRAG_NOMEM;
    err = read_all(path, &text, e);
    if (err != FRAG_OK) {
        free(file);
        return err;
    }
    file->root = yajl_tree_parse(text, words, sizeof(words));
    free(text);
    file->stats = file->root ? member(file->root, "stats") : NULL;
    if (!YAJL_IS_OBJECT(file->stats)) {
        words[strcspn(words, "\n")] = '\0';
        frag_stats_file_close(file);
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: expected a JSON object with \"stats\" "
                         "(torch.cuda.memory_stats()), found %s",
                         path, words[0] ? words : "none");
    }
    *out = file;
    return FRAG_OK;
}

void frag_stats_file_close(struct frag_stats_file *file)
{
    if (!file)
        return;
    yajl_tree_free(file->root);
    free(file);
}

static uint64_t number_of(yajl_val v)
{
    return YAJL_IS_INTEGER(v) ? (uint64_t)YAJL_GET_INTEGER(v) : 0;
}

frag_size frag_stats_file_cap(const struct frag_stats_file *file)
{
    return number_of(member(file->root, "cap"));
}

frag_size frag_stats_file_total(const struct frag_stats_file *file)
{
    return number_of(member(file->root, "total_memory"));
}

bool frag_stats_file_get(const struct frag_stats_file *file, uint32_t device,
                         const char *name, uint64_t *value)
{
    char number[16];
    yajl_val v;

    snprintf(number, sizeof(number), "%u", device);
    v = member(file->stats, number);
    v = member(YAJL_IS_OBJECT(v) ? v : file->stats, name);
    if (!YAJL_IS_INTEGER(v))
        return false;
    *value = number_of(v);
    return true;
}

bool frag_stats_file_beside(const char *snapshot, char *path, size_t room)
{
    static const char *const suffixes[] = {".pickle", ".cpp.pickle", ".pkl",
                                           ".pt"};
    const char *slash = strrchr(snapshot, '/');
    const char *name = slash ? slash + 1 : snapshot;

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        const char *end = strstr(name, suffixes[i]);

        if (!end)
            continue;
        snprintf(path, room, "%.*s.json", (int)(end - snapshot), snapshot);
        if (!access(path, R_OK))
            return true;
    }
    return false;
}
