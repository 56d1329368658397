/* snapshot_conf.c - reads and writes the conf string of a snapshot. Only the
 * keys that a snapshot repeats as values are read; all other keys are copied
 * unread. */
#include "traces/import/torch/snapshot_conf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/text.h"
#include "traces/torch_sizes.h"

struct torch_settings torch_settings_default(void)
{
    return (struct torch_settings){
        .max_split = UINT64_MAX,
        .pinned_round = UINT64_MAX,
        .pinned_cached = UINT64_MAX,
    };
}

/* Reading the string */

static uint64_t read_size(const char *value)
{
    const uint64_t most = UINT64_MAX / FRAG_MIB;
    const uint64_t mib = strtoull(value, NULL, 10);

    return (mib < most ? mib : most) * FRAG_MIB;
}

static void read_split(struct torch_settings *s, const char *value)
{
    s->max_split = read_size(value);
}

static void read_round(struct torch_settings *s, const char *value)
{
    s->pinned_round = read_size(value);
}

static void read_cached(struct torch_settings *s, const char *value)
{
    s->pinned_cached = read_size(value);
}

static void read_threshold(struct torch_settings *s, const char *value)
{
    s->gc_threshold = strtod(value, NULL);
}

static void read_expandable(struct torch_settings *s, const char *value)
{
    s->expandable = !strcmp(value, "True");
}

static void read_reuse(struct torch_settings *s, const char *value)
{
    s->capture_reuse = !strcmp(value, "True");
}

/* The index in `divisions` of a size in MiB. */
static size_t octave(uint64_t mib)
{
    size_t k = 0;

    while (mib > 1 && k + 1 < TORCH_DIVISIONS) {
        mib >>= 1;
        k++;
    }
    return k;
}

/* Reads a list [K:D,...,>:D]. The first pair also sets all octaves below it,
 * and '>' sets all octaves above the last pair. Octaves between two pairs stay
 * 0 (allocator rules, 22.4). */
static void read_division_list(struct torch_settings *s, const char *value)
{
    size_t last = 0;
    bool first = true;

    while (*value) {
        const bool rest = *value == '>';
        char *end;
        const size_t k = octave(strtoull(value + rest, &end, 10));
        const uint64_t d = *end == ':' ? strtoull(end + 1, &end, 10) : 0;

        for (size_t i = last + 1; rest && i < TORCH_DIVISIONS; i++)
            s->divisions[i] = d;
        for (size_t i = 0; !rest && first && i < k; i++)
            s->divisions[i] = d;
        if (!rest)
            s->divisions[last = k] = d;
        first = false;
        value = end + strcspn(end, ",");
        value += *value == ',';
    }
}

static void read_divisions(struct torch_settings *s, const char *value)
{
    memset(s->divisions, 0, sizeof(s->divisions));
    if (*value == '[') {
        read_division_list(s, value + 1);
        return;
    }
    for (size_t i = 0; i < TORCH_DIVISIONS; i++)
        s->divisions[i] = strtoull(value, NULL, 10);
}

static const struct key {
    const char *name;
    void (*read)(struct torch_settings *s, const char *value);
} keys[] = {
    {"max_split_size_mb", read_split},
    {"garbage_collection_threshold", read_threshold},
    {"expandable_segments", read_expandable},
    {"graph_capture_record_stream_reuse", read_reuse},
    {"roundup_power2_divisions", read_divisions},
    {"pinned_max_round_threshold_mb", read_round},
    {"pinned_max_cached_size_mb", read_cached},
};

static const struct key *find_key(const char *item, size_t length)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (strlen(keys[i].name) == length &&
            !memcmp(keys[i].name, item, length))
            return &keys[i];
    return NULL;
}

static void drop_white_space(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++)
        if (!strchr(" \t\n\r\v\f", *from))
            *to++ = *from;
    *to = '\0';
}

/* Reads the items of `text` into *s and writes the items with other keys to
 * `rest`, each with a comma. Cuts `text` into items. */
static void read_items(struct torch_settings *s, char *text, char *rest)
{
    while (*text) {
        const size_t length = torch_item_length(text);
        const bool more = text[length] == ',';
        const struct key *key;

        text[length] = '\0';
        key = find_key(text, strcspn(text, ":"));
        if (key) {
            const char *value = text + strlen(key->name);

            key->read(s, value + (*value == ':'));
        } else if (length) {
            rest += sprintf(rest, "%s,", text);
        }
        text += length + more;
    }
    *rest = '\0';
}

/* Writing the string */

static bool same(const struct torch_settings *a, const struct torch_settings *b)
{
    return a->max_split == b->max_split &&
           !(a->gc_threshold < b->gc_threshold) &&
           !(a->gc_threshold > b->gc_threshold) &&
           a->expandable == b->expandable &&
           a->pinned_round == b->pinned_round &&
           a->pinned_cached == b->pinned_cached &&
           a->capture_reuse == b->capture_reuse &&
           !memcmp(a->divisions, b->divisions, sizeof(a->divisions));
}

static void write_divisions(const struct torch_settings *s, FILE *to)
{
    bool any = false;

    for (size_t i = 0; i < TORCH_DIVISIONS; i++)
        any |= s->divisions[i] != 0;
    if (!any)
        return;
    fputs("roundup_power2_divisions:[", to);
    for (size_t i = 0; i < TORCH_DIVISIONS; i++)
        fprintf(to, "%s%d:%" PRIu64, i ? "," : "", 1 << i, s->divisions[i]);
    fputs("],", to);
}

static void write_size(FILE *to, const char *key, uint64_t size)
{
    if (size != UINT64_MAX)
        fprintf(to, "%s:%" PRIu64 ",", key, size / FRAG_MIB);
}

static void write_settings(const struct torch_settings *s, FILE *to)
{
    char number[FRAG_NUMBER_TEXT];

    if (s->expandable)
        fputs("expandable_segments:True,", to);
    write_size(to, "max_split_size_mb", s->max_split);
    if (s->gc_threshold > 0)
        fprintf(to, "garbage_collection_threshold:%s,",
                frag_number_format(s->gc_threshold, number));
    if (s->capture_reuse)
        fputs("graph_capture_record_stream_reuse:True,", to);
    write_divisions(s, to);
    write_size(to, "pinned_max_round_threshold_mb", s->pinned_round);
    write_size(to, "pinned_max_cached_size_mb", s->pinned_cached);
}

/* The items `rest` and the values of s as one string. The caller frees it. NULL
 * if the host has no memory. */
static char *join(const char *rest, const struct torch_settings *s)
{
    char *conf = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&conf, &size);

    if (!to)
        return NULL;
    fputs(rest, to);
    write_settings(s, to);
    if (fclose(to)) {
        free(conf);
        return NULL;
    }
    if (size)
        conf[size - 1] = '\0'; /* the last comma */
    return conf;
}

/* Reads `conf` into *s, and the items with other keys into *rest, which the
 * caller frees. False if the host has no memory. */
static bool read_conf(const char *conf, struct torch_settings *s, char **rest)
{
    char *text = strdup(conf);

    *rest = malloc(strlen(conf) + 2);
    if (text && *rest) {
        drop_white_space(text);
        if (torch_value_of(text, "large_segment_size_mb"))
            s->large_segment = torch_large_segment_of(text);
        read_items(s, text, *rest);
        free(text);
        return true;
    }
    free(text);
    free(*rest);
    return false;
}

bool torch_settings_read(const char *conf, struct torch_settings *out)
{
    char *rest;

    *out = torch_settings_default();
    if (!read_conf(conf, out, &rest))
        return false;
    free(rest);
    return true;
}

bool torch_settings_change(const char *conf, struct torch_settings *s)
{
    char *rest;

    s->max_split = UINT64_MAX;
    s->gc_threshold = 0;
    memset(s->divisions, 0, sizeof(s->divisions));
    if (!read_conf(conf, s, &rest))
        return false;
    free(rest);
    return true;
}

char *torch_settings_conf(const struct torch_settings *s, const char *conf,
                          bool *rebuilt)
{
    const char *conf_text = conf ? conf : "";
    struct torch_settings from_conf = torch_settings_default();
    char *rest, *out;

    if (!read_conf(conf_text, &from_conf, &rest))
        return NULL;
    *rebuilt = !same(&from_conf, s);
    out = *rebuilt ? join(rest, s) : strdup(conf_text);
    free(rest);
    return out;
}
