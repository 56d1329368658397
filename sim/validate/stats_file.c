/* stats_file.c - reads a file of counters into a JSON tree. A first pass over
 * the text rejects a file that is nested too deep. */
#include "sim/validate/stats_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <yajl/yajl_parse.h>
#include <yajl/yajl_tree.h>

#include "traces/bytes/input.h"
#include "traces/name.h"

enum { MAX_BYTES = 1 << 22, MAX_DEPTH = 32 };

struct frag_stats_file {
    yajl_val root;
    yajl_val stats;
};

static enum frag_err read_all(const char *path, char **text,
                              struct frag_error *e)
{
    enum frag_err err = FRAG_OK;
    size_t length;
    FILE *in;

    FRAG_TRY(input_file(path, &in, e));
    *text = malloc(MAX_BYTES + 1);
    if (!*text) {
        fclose(in);
        return frag_no_memory(e, "%s", path);
    }
    length = fread(*text, 1, MAX_BYTES, in);
    (*text)[length] = '\0';
    if (ferror(in))
        err = frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    else if (length == MAX_BYTES || strlen(*text) < length)
        err = frag_fail(e, FRAG_CORRUPT,
                        "%s: expected less than 4 MiB of text, found %s", path,
                        length == MAX_BYTES ? "more" : "a zero byte");
    fclose(in);
    return err;
}

/* ---- how deep a text is nested ---- */

static int goes_in(void *user)
{
    int *depth = user;

    return ++*depth <= MAX_DEPTH;
}

static int comes_out(void *user)
{
    int *depth = user;

    return (*depth)--;
}

/* Rejects a text that is nested too deep: the JSON library frees a tree by
 * recursion, so a file of brackets alone would overflow the stack. Text that is
 * not JSON passes; the parser rejects it later. */
static enum frag_err check_depth(const char *path, const char *text,
                                 struct frag_error *e)
{
    static const yajl_callbacks callbacks = {
        .yajl_start_map = goes_in,
        .yajl_end_map = comes_out,
        .yajl_start_array = goes_in,
        .yajl_end_array = comes_out,
    };
    int depth = 0;
    yajl_handle parser = yajl_alloc(&callbacks, NULL, &depth);

    if (!parser)
        return frag_no_memory(e, "%s", path);
    yajl_config(parser, yajl_allow_comments, 1); /* as yajl_tree_parse */
    yajl_parse(parser, (const unsigned char *)text, strlen(text));
    yajl_free(parser);
    return depth <= MAX_DEPTH
               ? FRAG_OK
               : frag_fail(e, FRAG_CORRUPT,
                           "%s: expected JSON nested at most %d deep, found "
                           "deeper nesting",
                           path, MAX_DEPTH);
}

/* ---- open ---- */

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
        return frag_no_memory(e, "%s", path);
    err = read_all(path, &text, e);
    if (err == FRAG_OK)
        err = check_depth(path, text, e);
    if (err != FRAG_OK) {
        free(text);
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

static bool is_count(yajl_val v)
{
    return YAJL_IS_INTEGER(v) && YAJL_GET_INTEGER(v) >= 0;
}

static uint64_t number_of(yajl_val v)
{
    return is_count(v) ? (uint64_t)YAJL_GET_INTEGER(v) : 0;
}

frag_size frag_stats_file_cap(const struct frag_stats_file *file)
{
    return number_of(member(file->root, "cap"));
}

frag_size frag_stats_file_total(const struct frag_stats_file *file)
{
    return number_of(member(file->root, "total_memory"));
}

frag_size frag_stats_file_limit(const struct frag_stats_file *file)
{
    const frag_size cap = frag_stats_file_cap(file);

    return cap ? cap : FRAG_UNLIMITED;
}

bool frag_stats_file_get(const struct frag_stats_file *file, uint32_t device,
                         const char *name, uint64_t *value)
{
    char number[16];
    yajl_val v;

    snprintf(number, sizeof(number), "%u", device);
    v = member(file->stats, number);
    v = member(YAJL_IS_OBJECT(v) ? v : file->stats, name);
    if (!is_count(v))
        return false;
    *value = number_of(v);
    return true;
}

bool frag_stats_file_beside(const char *snapshot, char *path, size_t room)
{
    static const char *const suffixes[] = {".pickle", ".cpp.pickle", ".pkl",
                                           ".pt"};
    const char *name = frag_file_name(snapshot);

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

enum frag_err frag_stats_file_find(const char *snapshot,
                                   struct frag_stats_file **out,
                                   struct frag_error *note,
                                   struct frag_error *e)
{
    char beside[PATH_MAX];
    struct frag_error own = {""};
    enum frag_err err;

    *out = NULL;
    *note = (struct frag_error){""};
    if (!frag_stats_file_beside(snapshot, beside, sizeof(beside)))
        return FRAG_OK;
    err = frag_stats_file_open(beside, out, &own);
    if (err == FRAG_NOMEM)
        return frag_no_memory(e, "%s", beside);
    if (err != FRAG_OK)
        frag_fail(note, err,
                  "the file with the name of the snapshot's counters is "
                  "ignored: %s",
                  own.text);
    return FRAG_OK;
}

enum frag_err frag_stats_file_of(const char *given, const char *snapshot,
                                 struct frag_stats_file **out,
                                 struct frag_error *e)
{
    struct frag_error note;

    *out = NULL;
    if (given)
        return strcmp(given, "none") ? frag_stats_file_open(given, out, e)
                                     : FRAG_OK;
    return frag_stats_file_find(snapshot, out, &note, e);
}
