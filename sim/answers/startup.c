/* startup.c - the lines of servers, by a table. */
#include "sim/answers/startup.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/results/row.h"

enum { LINE = 4096 };

static const char vllm[] = "vLLM", sglang[] = "SGLang";

/* A number of a line. */
struct rule {
    const char *server;
    const char *line;  /* text that only these lines have */
    const char *where; /* behind it: the text directly before the number */
    const char *also;  /* before a second number, which is added; or NULL */
    size_t field;
    double unit; /* bytes; 1: a count */
    bool least;  /* of all ranks */
};

#define AT(field) offsetof(struct startup, field)
static const struct rule rules[] = {
    {vllm, "Model loading took ", "", NULL, AT(weights), FRAG_GIB, false},
    {vllm, "Memory profiling takes", "torch peak memory increase: ", NULL,
     AT(activation), FRAG_GIB, false},
    {vllm, "Memory profiling takes",
     "non-torch forward increase memory: ", NULL, AT(outside), FRAG_GIB, false},
    {vllm, "GiB for non-torch memory", "<", NULL, AT(outside), FRAG_GIB, false},
    {vllm, "Available KV cache memory: ", "", NULL, AT(cache), FRAG_GIB, true},
    {vllm, "GPU KV cache size: ", "", NULL, AT(tokens), 1, true},
    {vllm, "Graph capturing finished in ", "took ", NULL, AT(graphs), FRAG_GIB,
     false},
    {vllm, "Free memory on device ", "(", NULL, AT(left), FRAG_GIB, true},
    {vllm, "Free memory on device ", "/", NULL, AT(total), FRAG_GIB, true},
    {vllm, "Desired GPU memory utilization is (", ", ", NULL, AT(budget),
     FRAG_GIB, true},
    {vllm, "desired GPU memory utilization (", ", ", NULL, AT(budget), FRAG_GIB,
     true},
    {vllm, "GiB for peak activation", "<", NULL, AT(activation), FRAG_GIB,
     false},
    {vllm, "or `--kv-cache-memory=", "", NULL, AT(cache_most), 1, true},
    {sglang, "Load weight end", "mem usage=", NULL, AT(weights), FRAG_GIB,
     false},
    {sglang, "KV Cache is allocated", "#tokens: ", NULL, AT(tokens), 1, true},
    {sglang, "KV Cache is allocated", "K size: ", "V size: ", AT(cache),
     FRAG_GIB, true},
    {sglang, "Capture cuda graph end", "mem usage=", NULL, AT(graphs), FRAG_GIB,
     false},
};

/* Words that a server writes when it serves. */
static const struct {
    const char *server, *phrase;
} ups[] = {{vllm, "init engine ("},
           {vllm, "Application startup complete"},
           {sglang, "The server is fired up"}};

#define LOWER                                                         \
    "lower the share of memory (--gpu-memory-utilization, of SGLang " \
    "--mem-fraction-static), so that more stays free beside the cache"
/* The first phrase of a line that holds tells; the general one is the last. */
static const struct startup_failure failures[] = {
    {vllm, "No available memory for the cache blocks",
     "left no memory for the cache after the weights and the profile run",
     "raise --gpu-memory-utilization, lower --max-num-batched-tokens, or take "
     "a "
     "GPU with more memory or more of them (--tensor-parallel-size)",
     LOWER},
    {vllm, "KV cache is needed, which is larger than",
     "got a cache that is too small for one request of the longest length",
     "raise --gpu-memory-utilization or lower --max-model-len", LOWER},
    {vllm, "is less than desired GPU memory utilization",
     "found less memory free than its share of the GPU",
     "lower --gpu-memory-utilization, or end what else holds memory there",
     LOWER},
    {vllm, "Failed to load model - not enough GPU memory",
     "had no room for the weights",
     "take a GPU with more memory, more of them (--tensor-parallel-size), or "
     "weights of fewer bits",
     LOWER},
    {sglang, "Please try to increase --mem-fraction-static",
     "left no memory for the cache after the weights",
     "raise --mem-fraction-static, or take a GPU with more memory", LOWER},
    {vllm, "when warming up sampler",
     "ran out of memory when it warmed up the sampler",
     "lower --max-num-seqs or --gpu-memory-utilization", LOWER},
    {sglang, "Capture cuda graph failed",
     "ran out of memory when it captured CUDA graphs",
     LOWER "; or capture fewer graphs", LOWER},
    {NULL, "CUDA out of memory", "ran out of memory", LOWER, LOWER},
};

/* The number at the start of the text, with commas between its digits. */
static bool read_number(const char *text, double *out)
{
    char digits[40];
    size_t n = 0;

    for (; n + 1 < sizeof(digits) &&
           (isdigit((unsigned char)*text) || *text == '.' || *text == ',');
         text++)
        if (*text != ',')
            digits[n++] = *text;
    digits[n] = '\0';
    if (!n || !isdigit((unsigned char)digits[0]))
        return false;
    *out = strtod(digits, NULL);
    return true;
}

/* The number before the text at `end`, which begins with a space before it. */
static bool read_before(const char *line, const char *end, double *out)
{
    while (end > line && end[-1] == ' ')
        end--;
    while (end > line && (isdigit((unsigned char)end[-1]) || end[-1] == '.'))
        end--;
    return read_number(end, out);
}

static bool read_rule(const struct rule *r, const char *line, double *out)
{
    const char *at = strstr(line, r->line);
    double more = 0;

    if (!at)
        return false;
    if (*r->where == '<')
        return read_before(line, at, out);
    at = strstr(at + strlen(r->line), r->where);
    if (!at || !read_number(at + strlen(r->where), out))
        return false;
    if (r->also && (!(at = strstr(at, r->also)) ||
                    !read_number(at + strlen(r->also), &more)))
        return false;
    *out += more;
    return true;
}

static void take(struct startup *s, const struct rule *r, double number)
{
    uint64_t *field = (uint64_t *)(void *)((char *)s + r->field);
    const uint64_t value = (uint64_t)(number * r->unit + 0.5);

    s->server = r->server;
    if (*field == FRAG_UNLIMITED ||
        (r->least ? value < *field : value > *field))
        *field = value;
}

static void read_line(struct startup *s, const char *line, uint64_t number)
{
    double value;

    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
        if (read_rule(&rules[i], line, &value))
            take(s, &rules[i], value);
    for (size_t i = 0; i < sizeof(ups) / sizeof(*ups); i++)
        if (strstr(line, ups[i].phrase)) {
            s->server = ups[i].server;
            s->is_up = true;
        }
    for (size_t i = 0; !s->failure && i < sizeof(failures) / sizeof(*failures);
         i++)
        if (strstr(line, failures[i].phrase)) {
            s->failure = &failures[i];
            s->server = failures[i].server ? failures[i].server : s->server;
            s->failed_later = s->is_up;
            s->line = number;
        }
}

void startup_read(FILE *in, struct startup *out)
{
    char line[LINE];
    uint64_t number = 1;

    *out = (struct startup){.total = FRAG_UNLIMITED,
                            .left = FRAG_UNLIMITED,
                            .budget = FRAG_UNLIMITED,
                            .weights = FRAG_UNLIMITED,
                            .activation = FRAG_UNLIMITED,
                            .outside = FRAG_UNLIMITED,
                            .cache = FRAG_UNLIMITED,
                            .tokens = FRAG_UNLIMITED,
                            .graphs = FRAG_UNLIMITED,
                            .cache_most = FRAG_UNLIMITED};
    while (fgets(line, sizeof(line), in)) {
        read_line(out, line, number);
        number += strchr(line, '\n') != NULL;
    }
}

/* ---- the outputs ---- */

/* Names of the sizes, in the order of a start. */
static const struct {
    size_t field;
    const char *name;
} sizes[] = {{AT(left), "free before the start"},
             {AT(budget), "that the server may use"},
             {AT(weights), "weights"},
             {AT(activation), "activations, most at once"},
             {AT(outside), "outside of PyTorch"},
             {AT(cache), "cache"},
             {AT(graphs), "CUDA graphs"},
             {AT(cache_most), "cache that would fill the GPU"}};

/* What the budget has beside the parts that are told, such as memory outside of
 * PyTorch; UNLIMITED if one is not told. */
static frag_size rest_of(const struct startup *s)
{
    const frag_size parts[] = {s->weights, s->activation, s->cache};
    frag_size rest = s->budget;

    for (size_t i = 0; i < 3; i++) {
        if (rest == FRAG_UNLIMITED || parts[i] > rest)
            return FRAG_UNLIMITED;
        rest -= parts[i];
    }
    return rest;
}

static void put_size(const char *name, frag_size size, FILE *out)
{
    fprintf(out, "  %-30s %s", name,
            size == FRAG_UNLIMITED ? "not told" : FRAG_SHOW_SIZE(size));
}

static void put_failure(const struct startup *s, FILE *out)
{
    const struct startup_failure *f = s->failure;

    if (!f)
        fprintf(out, "%s %s\n", s->server,
                s->is_up ? "started and serves"
                         : "started; the log does not say that it serves");
    else if (s->failed_later)
        fprintf(out, "%s served, and then %s (line %" PRIu64 "): %s\n",
                s->server, f->what, s->line, f->advice_later);
    else
        fprintf(out, "%s did not start: it %s (line %" PRIu64 "): %s\n",
                s->server, f->what, s->line, f->advice);
}

void startup_put(const struct startup *s, FILE *out)
{
    put_failure(s, out);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        put_size(sizes[i].name,
                 *(const frag_size *)(const void *)((const char *)s +
                                                    sizes[i].field),
                 out);
        if (sizes[i].field == AT(cache) && s->tokens != FRAG_UNLIMITED)
            fprintf(out, ", %" PRIu64 " tokens", s->tokens);
        fputc('\n', out);
    }
    put_size("the rest of what it may use", rest_of(s), out);
    fputc('\n', out);
}

void startup_json(const struct startup *s, struct frag_json *j)
{
    JSON_ROW(j, startup, s, TEXT("server", server),
             NUMBER("memory_bytes", total), NUMBER("free_bytes", left),
             NUMBER("budget_bytes", budget), NUMBER("weights_bytes", weights),
             NUMBER("activation_bytes", activation),
             NUMBER("outside_bytes", outside), NUMBER("cache_bytes", cache),
             NUMBER("cache_tokens", tokens), NUMBER("graphs_bytes", graphs),
             NUMBER("cache_most_bytes", cache_most), NUMBER("serves", is_up));
    frag_json_text(j, "failure", s->failure ? s->failure->what : NULL);
    frag_json_text(j, "advice",
                   !s->failure       ? NULL
                   : s->failed_later ? s->failure->advice_later
                                     : s->failure->advice);
}
