/* shrink.c - removes arguments and parts of inputs while the fault stays. */
#include "tests/night/shrink.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { PATH = 4096, TRIALS = 600, SECONDS = 120 };

/* -- cases on disk --------------------------------------------------------- */

static void add_input(struct kept *k, const char *name, const char *path)
{
    const size_t i = k->input_count;

    if (i == INPUTS || !input_read(&k->inputs[i], path))
        return;
    snprintf(k->names[i], INPUT_NAME, "%s", name);
    k->input_count++;
}

static bool read_args(struct kept *k, const char *folder)
{
    char path[PATH];
    struct bytes b;

    snprintf(path, sizeof(path), "%s/args", folder);
    if (!input_read(&b, path))
        return false;
    for (size_t at = 0; at < b.size && k->count < ARGS;) {
        const char *line = (const char *)b.at + at;
        const char *end = memchr(line, '\n', b.size - at);
        const size_t size = end ? (size_t)(end - line) : b.size - at;

        k->args[k->count++] = strndup(line, size);
        at += size + 1;
    }
    free(b.at);
    return k->count > 0;
}

/* An input outside of the folder of the runs has _ for / in its name here. */
static void stored_name(char out[INPUT_NAME], const char *name, char from,
                        char to)
{
    snprintf(out, INPUT_NAME, "%.*s", INPUT_NAME - 1, name);
    for (; *out; out++)
        if (*out == from)
            *out = to;
}

bool kept_read(struct kept *k, const char *folder)
{
    char path[PATH], name[INPUT_NAME];
    DIR *at = opendir(folder);
    const struct dirent *entry;

    memset(k, 0, sizeof(*k));
    while (at && (entry = readdir(at))) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        stored_name(name, entry->d_name, '_', '/');
        if (!strncmp(name, "in", 2) || !strncmp(name, "out/", 4))
            add_input(k, name, path);
    }
    if (at)
        closedir(at);
    return read_args(k, folder);
}

void kept_free(struct kept *k)
{
    for (size_t i = 0; i < k->count; i++)
        free(k->args[i]);
    for (size_t i = 0; i < k->input_count; i++)
        free(k->inputs[i].at);
}

static void kept_write(const struct kept *k, const char *folder,
                       const struct outcome *o, const char *note)
{
    char path[PATH], name[INPUT_NAME];
    FILE *file;

    for (size_t i = 0; i < k->input_count; i++) {
        stored_name(name, k->names[i], '/', '_');
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        input_write(&k->inputs[i], path);
    }
    snprintf(path, sizeof(path), "%s/args", folder);
    file = fopen(path, "w");
    for (size_t i = 0; file && i < k->count; i++)
        fprintf(file, "%s\n", k->args[i]);
    if (file)
        fclose(file);
    snprintf(path, sizeof(path), "%s/report", folder);
    file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "%s\n%s\nexit code %d, %.3f s, %ld MiB\n%s\n", o->key, note,
            o->code, o->processor, o->memory, o->report);
    fclose(file);
}

static void write_inputs(const void *kept)
{
    const struct kept *k = kept;

    for (size_t i = 0; i < k->input_count; i++)
        input_write(&k->inputs[i], k->names[i]);
}

void kept_run(const struct kept *k, const struct limits *limits,
              struct outcome *out)
{
    child_run_command(k->args, k->count, write_inputs, k, limits, out);
}

/* -- smaller --------------------------------------------------------------- */

struct search {
    struct kept *k;
    const struct limits *limits;
    const char *key;
    struct outcome o;
    int trials; /* left */
    time_t end;
};

static bool still_fails(struct search *s)
{
    if (s->trials-- <= 0 || time(NULL) > s->end)
        return false;
    kept_run(s->k, s->limits, &s->o);
    return !strcmp(s->o.key, s->key);
}

static void fewer_args(struct search *s)
{
    struct kept *k = s->k;

    for (size_t i = k->count - 1; i > 0; i--) {
        char *const arg = k->args[i];

        memmove(k->args + i, k->args + i + 1,
                (k->count - i) * sizeof(*k->args));
        k->count--;
        if (still_fails(s)) {
            free(arg);
            continue;
        }
        memmove(k->args + i + 1, k->args + i,
                (k->count - i) * sizeof(*k->args));
        k->args[i] = arg;
        k->args[++k->count] = NULL;
    }
}

/* Removes units `from` to `to` if the fault stays. */
static bool cut(struct search *s, struct bytes *b, const struct units *u,
                size_t from, size_t to)
{
    const struct unit *last = &u->unit[to - 1];
    struct bytes before = *b;

    if (to <= from)
        return false;
    b->at = malloc(before.size + 1);
    if (b->at)
        memcpy(b->at, before.at, before.size);
    if (b->at &&
        bytes_splice(b, u->unit[from].at, last->at + last->size, NULL, 0) &&
        still_fails(s)) {
        free(before.at);
        return true;
    }
    free(b->at);
    *b = before;
    return false;
}

/* Removes whole trees, the largest first within each level. */
static void fewer_trees(struct search *s, struct bytes *b, const char *format)
{
    struct units u = units_split(b, format);

    for (size_t i = 0; i < u.count && s->trials > 0;) {
        if (u.unit[i].end > i + 1 && cut(s, b, &u, i, u.unit[i].end)) {
            free(u.unit);
            u = units_split(b, format);
        } else {
            i++;
        }
    }
    free(u.unit);
}

static void fewer_units(struct search *s, struct bytes *b, const char *format)
{
    struct units u = units_split(b, format);

    for (size_t part = u.count / 2; part && s->trials > 0; part /= 2)
        for (size_t i = 0; i < u.count && s->trials > 0;) {
            const size_t to = i + part < u.count ? i + part : u.count;

            if (cut(s, b, &u, i, to)) {
                free(u.unit);
                u = units_split(b, format);
            } else {
                i += part;
            }
        }
    free(u.unit);
}

static void fewer_bytes(struct search *s)
{
    for (size_t i = 0; i < s->k->input_count; i++)
        if (s->k->formats[i]) {
            fewer_units(s, &s->k->inputs[i], s->k->formats[i]);
            fewer_trees(s, &s->k->inputs[i], s->k->formats[i]);
        }
}

/* -- found ----------------------------------------------------------------- */

void found_path(char path[PATH], const char *out, const char *key)
{
    uint32_t sum = 2166136261u;
    char name[61] = "";
    size_t at = 0;

    for (const char *c = key; *c; c++) {
        sum = (sum ^ (unsigned char)*c) * 16777619u;
        if (at < 60 && isalnum((unsigned char)*c))
            name[at++] = *c;
        else if (at < 60 && at && name[at - 1] != '_')
            name[at++] = '_';
    }
    snprintf(path, PATH, "%s/found/%s_%08x", out, name, sum);
}

static void take(struct kept *k, const struct command *c)
{
    memset(k, 0, sizeof(*k));
    for (size_t i = 0; i < c->count; i++)
        k->args[k->count++] = strdup(c->args[i]);
    for (size_t i = 0; i < c->input_count; i++) {
        const struct input *in = &c->inputs[i];
        const bool is_hdf5 = !strcmp(in->folder->name, "trace_file") ||
                             !strcmp(in->folder->name, "results");
        char name[INPUT_NAME];

        input_name(name, i);
        add_input(k, name, name);
        if (k->input_count)
            k->formats[k->input_count - 1] = is_hdf5         ? NULL
                                             : in->is_packed ? "packed"
                                                             : in->folder->name;
    }
}

void shrink_and_keep(const char *path, uint64_t run, const struct command *c,
                     const struct outcome *o, const struct limits *limits)
{
    char note[240];
    struct search *s = malloc(sizeof(*s));
    struct kept k;

    if (!s || mkdir(path, 0777) < 0) {
        free(s);
        return; /* known */
    }
    take(&k, c);
    snprintf(note, sizeof(note), "run %llu", (unsigned long long)run);
    kept_write(&k, path, o, note);
    *s = (struct search){.k = &k,
                         .limits = limits,
                         .key = o->key,
                         .trials = TRIALS,
                         .end = time(NULL) + SECONDS};
    if (still_fails(s)) {
        fewer_args(s);
        fewer_bytes(s);
        fewer_args(s);
        s->trials = 1;
        s->end += SECONDS;
        if (still_fails(s))
            kept_write(&k, path, &s->o, note);
    } else {
        snprintf(note, sizeof(note), "run %llu; not with the wide limits: %s",
                 (unsigned long long)run, s->o.key);
        kept_write(&k, path, o, note);
    }
    kept_free(&k);
    free(s);
}
