/* command.c - the grammar of the command lines. In a text of the table, |
 * stands between alternatives and @NAME for a text of that name, for a changed
 * file of that format, or for one of the words that expand_special knows. */
#include "tests/night/command.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "traces/gen/generator.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

const struct verb *const night_verbs[] = {
#define VERB(name) &verb_##name,
#include "sim/cli/verbs.h"
#undef VERB
    NULL,
};

/* The arguments of each verb, and how often it is chosen; verbs that are not
 * here start programs or need a GPU. */
static const struct {
    const struct verb *verb;
    unsigned weight;
    const char *args;
} plans[] = {
    {&verb_triage, 2, "@snapshot --capacity=@bytes --output=out/t.html"},
    {&verb_explain, 6, "@snapshot"},
    {&verb_tune, 2, "@trace --jobs=1"},
    {&verb_fit, 2, "@trace --policy=@policy --jobs=1"},
    {&verb_replay, 12, "@trace --policy=@policy --capacity=@size"},
    {&verb_sweep, 3,
     "@trace --policy=@policy --capacity=@size --jobs=1 --output=out/s.h5"},
    {&verb_sweep, 1, "--grid=@grid --list"},
    {&verb_merge, 3, "out/m.h5 @results @results"},
    {&verb_top, 4, "@trace"},
    {&verb_steps, 4, "@trace"},
    {&verb_leaks, 4, "@trace"},
    {&verb_summary, 4, "@trace"},
    {&verb_diff, 2, "@trace @trace"},
    {&verb_diff, 2, "@results @results"},
    {&verb_steps, 2, "@trace @trace"},
    {&verb_top, 2, "@trace @trace"},
    {&verb_policies, 4, "torch:@conf"},
    {&verb_validate, 6, "@snapshot"},
    {&verb_info, 8, "@trace"},
    {&verb_import, 6, "@trace --output=out/i.h5"},
    {&verb_import, 4, "@trace --edit=@edit --output=out/e.h5"},
    {&verb_compare, 1, "--calibrate @timings"},
    {&verb_gen, 1, "@generator --output=out/g.h5"},
    {&verb_export, 6, "@trace --to=@to"},
    {&verb_policies, 1, "@policy"},
    {&verb_plot, 4, "@results @figure --output=out/p.svg"},
    {&verb_plot, 1, "@trace map --output=out/p.html"},
    {&verb_report, 3, "@results --output=out/r.html"},
    {&verb_help, 1, "@topic"},
};

static const struct {
    const char *name, *texts;
} grammar[] = {
    {"trace", "@torch|@torch|@torch|@torch|@torch|@csv|@csv|@static|@rmm|"
              "@kineto|@record|"
              "@record|@trace_file|@trace_file|@trace_file|@stdin"},
    {"snapshot", "@torch|@torch|@torch|@torch|@torch|@trace"},
    {"bytes", "80GiB|1GiB|100MiB|2MiB|20KiB|@nMiB|@odd"},
    {"size", "inf|0.9x|1x|0.5x|1.05x|@bytes|@bytes"},
    {"odd", odd_numbers},
    {"text", odd_texts},
    {"n", "1|2|3|5|17|100|@odd"},
    {"switch", "True|False|@n"},
    {"mb", "21|64|128|200|@n"},
    {"fraction", "0.5|0.8|0.95|0.@n"},
    {"conf", "expandable_segments:True|expandable_segments:@switch|"
             "max_split_size_mb:@mb|max_non_split_rounding_mb:@mb|"
             "roundup_power2_divisions:4|roundup_power2_divisions:@n|"
             "roundup_power2_divisions:[256:@n,>:8]|backend:native|padding:@n|"
             "garbage_collection_threshold:@fraction|large_segment_size_mb:@mb|"
             "per_process_memory_fraction:@fraction|@text:@n|@conf,@conf"},
    {"policy", "torch|torch@recorded|torch:@conf|torch:@conf|@heap|@heap|"
               "@heap|@heap|@heap|@tuned|@tuned"},
    {"edit", "slice:events=@n..@n|slice:steps=@n..@n|slice:seconds=0..@n|"
             "keep:min=@n|drop:stream=@n|scale:factor=@n|scale:factor=0.@n|"
             "free:earlier=@n|free:later=@n|free:at=begin|"
             "empty-cache:every=@n|no-empty-cache|repeat:times=3|"
             "keep:site=train|@edit;@edit|"
             "@text:@n"},
    {"figure", "timeline|compare|pareto|breakdown|heatmap|frontier"},
    {"to", "csv|snapshot|chrome|minimalloc"},
    {"moment", "peak|oom|end|0|@n"},
    {"topic", "torch|replay|results|edits|@text"},
    {"by", "auto|site|function|stack|size|class|age|seconds|events|pool|"
           "stream"},
    {"file", "-|out/f"},
    /* The values of options; one that is not here has a value of its kind. */
    {"--policy", "@policy"},
    {"--capacity", "@bytes"},
    {"--process-limit", "@size"},
    {"--edit", "@edit"},
    {"--device", "0|0|0|0|0|0|1|@n"},
    {"--further-steps", "0|1|3"},
    {"--points", "0|1|100"},
    {"--repeat", "1|2|3"},
    {"--rounds", "1|3"},
    {"--jobs", "1|2"},
    {"--at", "@moment"},
    {"--by", "@by"},
    {"--to", "@to"},
    {"--costs", "h100|@files"},
    {"--stats", "@files"},
    {"--grid", "@grid"},
    {"--fail-over", "2%|@n%"},
    {"--step-mark", "Optimizer.step|ProfilerStep|@text"},
    {"--mark", "@text"},
    {"--filter", "train|@text"},
    {"--torch-version", "2.6|2.@n"},
    {"--without", "expandable_segments|max_split_size_mb"},
    {"--baseline", "torch|@heap"},
    {"--trace", "in0|@text"},
    {"--shard", "1/2|@n/2|1/@n"},
    {"--need", "capacity|limit"},
    {"--json", "@file"},
    {"--csv", "@file"},
    {"--folded", "@file"},
    {"--frontier", "@file"},
    {"--calls", "@file"},
    {"--output", "out/o.svg|out/o.h5"},
    {"--keep", "out/keep"},
    /* These start programs or need a GPU. */
    {"--dry", ""},
    {"--device-number", ""},
    {"--backend", ""},
    {"--test", ""}, /* takes seconds */
    {"--completion", "none|bash"},
};

/* -- seeds ----------------------------------------------------------------- */

bool input_read(struct bytes *b, const char *path)
{
    FILE *file = fopen(path, "rb");

    *b = (struct bytes){malloc(INPUT_MOST), 0};
    if (file && b->at)
        b->size = fread(b->at, 1, INPUT_MOST, file);
    if (file)
        fclose(file);
    return file && b->at;
}

bool input_write(const struct bytes *b, const char *path)
{
    FILE *file = fopen(path, "wb");
    const bool is_whole = file && fwrite(b->at, 1, b->size, file) == b->size;

    return file && fclose(file) == 0 && is_whole;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && !strstr(entry->d_name, ".dict") &&
           !strstr(entry->d_name, ".xz"); /* contain() packs */
}

static bool folder_read(struct folder *f, const char *seeds, const char *name)
{
    char path[4096];
    struct dirent **names;
    int count;

    snprintf(f->name, sizeof(f->name), "%s", name);
    snprintf(path, sizeof(path), "%s/%s", seeds, name);
    count = scandir(path, &names, is_visible, alphasort);
    if (count <= 0)
        return false;
    f->files = calloc((size_t)count, sizeof(*f->files));
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s/%s", seeds, name, names[i]->d_name);
        f->count += f->files && input_read(&f->files[f->count], path);
        free(names[i]);
    }
    free(names);
    return f->count > 0;
}

bool seeds_read(struct seeds *seeds, const char *folder)
{
    struct dirent **names;
    const int count = scandir(folder, &names, is_visible, alphasort);

    seeds->count = 0;
    for (int i = 0; i < count; i++) {
        if (seeds->count < FOLDERS)
            seeds->count += folder_read(&seeds->folders[seeds->count], folder,
                                        names[i]->d_name);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    if (!seeds->count)
        fprintf(stderr, "night: no seeds in %s\n", folder);
    return seeds->count > 0;
}

const struct folder *seeds_find(const struct seeds *seeds, const char *format)
{
    for (size_t i = 0; i < seeds->count; i++)
        if (!strcmp(seeds->folders[i].name, format))
            return &seeds->folders[i];
    return NULL;
}

/* -- expansion ------------------------------------------------------------- */

enum { TEXT_ROOM = 1024 };

struct writer {
    struct command *c;
    struct dice *d;
    const struct seeds *seeds;
    int depth;
};

static void put(struct writer *w, const char *text, size_t size)
{
    struct command *c = w->c;

    if (size > ARGS_ROOM - 1 - c->used)
        size = ARGS_ROOM - 1 - c->used;
    memcpy(c->room + c->used, text, size);
    c->used += size;
}

static const char *find_texts(const char *name)
{
    for (size_t i = 0; i < COUNT(grammar); i++)
        if (!strcmp(grammar[i].name, name))
            return grammar[i].texts;
    return NULL;
}

static const struct bytes *any_file(struct writer *w, const struct folder *f)
{
    return &f->files[roll(w->d, f->count)];
}

void input_name(char name[INPUT_NAME], size_t index)
{
    snprintf(name, INPUT_NAME, "in%zu", index);
}

static void put_input(struct writer *w, const struct folder *f)
{
    struct command *c = w->c;
    char name[INPUT_NAME];

    if (roll(w->d, 50) == 0) /* another format than the command expects */
        f = &w->seeds->folders[roll(w->d, w->seeds->count)];
    if (c->input_count < INPUTS) {
        const bool is_hdf5 =
            !strcmp(f->name, "trace_file") || !strcmp(f->name, "results");

        c->inputs[c->input_count++] = (struct input){
            f,
            any_file(w, f),
            any_file(w, f),
            c->input_count == 1 || roll(w->d, 3) == 0,
            roll(w->d, is_hdf5 ? 50 : 12) == 0,
            {roll(w->d, UINT64_MAX) | 1},
        };
    }
    input_name(name, c->input_count - 1);
    put(w, name, name[0] == 'i' ? strlen(name) : strlen("out/s.h5"));
}

static const struct frag_policy *any_policy(struct writer *w)
{
    size_t count = 0;

    while (frag_policies[count])
        count++;
    return frag_policies[roll(w->d, count)];
}

static const char *any_generator(struct writer *w)
{
    size_t count = 0;

    while (frag_generators[count])
        count++;
    return frag_generators[roll(w->d, count)]->name;
}

static void expand(struct writer *w, const char *text);

static void put_value(struct writer *w, const struct frag_param *p)
{
    if (p->kind == FRAG_PARAM_CHOICE)
        put(w, p->choices, strcspn(p->choices, "|"));
    else if (p->kind == FRAG_PARAM_SWITCH)
        expand(w, "yes");
    else if (p->kind == FRAG_PARAM_RATIO)
        expand(w, "@fraction");
    else
        expand(w, p->kind == FRAG_PARAM_SIZE ? "@bytes" : "@n");
}

/* A policy with one of its parameters. */
static void put_tuned(struct writer *w)
{
    const struct frag_policy *policy = any_policy(w);
    const struct frag_param *p = policy->params;
    size_t count = 0;

    put(w, policy->name, strlen(policy->name));
    while (p && p[count].name)
        count++;
    if (!count)
        return;
    p += roll(w->d, count);
    put(w, ":", 1);
    put(w, p->name, strlen(p->name));
    put(w, policy->configure ? ":" : "=", 1);
    put_value(w, p);
}

/* A word with a meaning of its own. False if the name is none. */
static bool expand_special(struct writer *w, const char *name)
{
    const char *text = NULL;

    if (!strcmp(name, "heap"))
        text = any_policy(w)->name;
    else if (!strcmp(name, "generator"))
        text = any_generator(w);
    else if (!strcmp(name, "tuned")) {
        put_tuned(w);
        text = "";
    } else if (!strcmp(name, "stdin") && !w->c->input_count) {
        put_input(w, seeds_find(w->seeds, "torch"));
        w->c->used -= strlen("in0");
        text = "-";
    }
    if (text)
        put(w, text, strlen(text));
    return text;
}

static void expand_name(struct writer *w, const char *name)
{
    const char *texts = find_texts(name);
    const struct folder *f = seeds_find(w->seeds, name);
    char text[TEXT_ROOM];
    size_t size;

    if (expand_special(w, name))
        return;
    if (f) {
        put_input(w, f);
    } else if (texts && w->depth < 8) {
        texts = any_text(w->d, texts, &size);
        snprintf(text, sizeof(text), "%.*s", (int)size, texts);
        w->depth++;
        expand(w, text);
        w->depth--;
    } else {
        put(w, "1", 1);
    }
}

static void expand(struct writer *w, const char *text)
{
    char name[TEXT_ROOM];
    size_t length;

    while (*text) {
        length = strcspn(text, "@");
        put(w, text, length);
        text += length;
        if (!*text)
            return;
        length = strspn(++text, "abcdefghijklmnopqrstuvwxyz_");
        snprintf(name, sizeof(name), "%.*s", (int)length, text);
        if (!strcmp(name, "recorded")) /* torch@recorded */
            put(w, "@recorded", strlen("@recorded"));
        else
            expand_name(w, name);
        text += length;
    }
}

/* -- arguments ------------------------------------------------------------- */

static void begin_arg(struct writer *w)
{
    if (w->c->count < ARGS)
        w->c->args[w->c->count++] = w->c->room + w->c->used;
}

/* A kept case has one argument a line. */
static void end_arg(struct writer *w)
{
    const char *arg = w->c->args[w->c->count - 1];

    for (size_t i = (size_t)(arg - w->c->room); i < w->c->used; i++)
        if (w->c->room[i] == '\n')
            w->c->room[i] = ' ';
    w->c->room[w->c->used] = '\0';
    if (w->c->used < ARGS_ROOM - 1)
        w->c->used++;
}

static void add_args(struct writer *w, const char *texts)
{
    char text[TEXT_ROOM];

    while (*texts) {
        const size_t length = strcspn(texts, " ");

        snprintf(text, sizeof(text), "%.*s", (int)length, texts);
        begin_arg(w);
        expand(w, text);
        end_arg(w);
        texts += length + (texts[length] == ' ');
    }
}

static const char *texts_of_kind(const struct option_row *row)
{
    switch (row->kind) {
    case OPTION_SIZE:
    case OPTION_TOTAL:
        return "@bytes";
    case OPTION_NUMBER:
        return "@n";
    default:
        return "@text";
    }
}

static bool is_given(const struct command *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (!strncmp(c->args[i], name, strlen(name)))
            return true;
    return false;
}

static void add_option(struct writer *w, const struct option_row *row)
{
    char name[64];
    const char *texts;

    snprintf(name, sizeof(name), "--%s", row->name);
    texts = find_texts(name);
    if ((texts && !*texts) || is_given(w->c, name))
        return;
    begin_arg(w);
    put(w, name, strlen(name));
    if (row->kind != OPTION_SWITCH) {
        put(w, "=", 1);
        if (texts)
            expand_name(w, name);
        else if (row->kind == OPTION_CHOICE)
            put(w, row->choices, strcspn(row->choices, "|"));
        else
            expand(w, texts_of_kind(row));
    }
    end_arg(w);
}

static void add_options(struct writer *w)
{
    static const size_t counts[] = {0, 0, 1, 1, 2, 4};
    const struct option_row *rows = w->c->verb->options;
    size_t count = 0;

    while (rows && rows[count].name)
        count++;
    for (size_t n = count ? counts[roll(w->d, COUNT(counts))] : 0; n; n--)
        add_option(w, &rows[roll(w->d, count)]);
}

/* Puts an unusual text into one argument. */
static void spoil(struct writer *w)
{
    struct command *c = w->c;
    const size_t which = roll(w->d, c->count), at = c->used;
    const char *arg = c->args[which];
    const size_t length = strlen(arg), cut = roll(w->d, length + 1);

    put(w, arg, cut);
    expand(w, "@text");
    put(w, arg + cut, length - cut);
    c->args[which] = c->room + at;
    end_arg(w);
}

void command_make(struct command *c, struct dice *d, const struct seeds *seeds)
{
    struct writer w = {c, d, seeds, 0};
    uint64_t sum = 0;
    size_t plan = 0;

    c->count = c->input_count = c->used = 0;
    for (size_t i = 0; i < COUNT(plans); i++)
        sum += plans[i].weight;
    for (sum = roll(d, sum); sum >= plans[plan].weight; plan++)
        sum -= plans[plan].weight;
    c->verb = plans[plan].verb;
    begin_arg(&w);
    put(&w, c->verb->name, strlen(c->verb->name));
    end_arg(&w);
    add_args(&w, plans[plan].args);
    add_options(&w);
    if (roll(d, 30) == 0)
        spoil(&w);
    c->args[c->count] = NULL;
}

/* -- inputs ---------------------------------------------------------------- */

static void write_input(const struct input *in, size_t index)
{
    struct dice d = in->dice;
    struct bytes b = {malloc(INPUT_MOST), in->seed->size};
    char name[INPUT_NAME];

    if (!b.at)
        return;
    memcpy(b.at, in->seed->at, b.size);
    if (in->is_changed)
        mutate(&d, &b, in->donor, in->folder->name);
    if (in->is_packed)
        contain(&d, &b);
    input_name(name, index);
    input_write(&b, name);
    free(b.at);
}

void command_write(const struct command *c)
{
    for (size_t i = 0; i < c->input_count; i++)
        write_input(&c->inputs[i], i);
}

const char *command_format(const struct command *c)
{
    for (size_t i = 0; i < c->input_count; i++)
        if (c->inputs[i].is_changed || c->inputs[i].is_packed)
            return c->inputs[i].folder->name;
    return "arguments";
}
