/* sites.c - tells the user's frames from those of libraries. */
#include "sim/answers/sites.h"

#include <inttypes.h>
#include <string.h>

#include "traces/name.h"

/* What starts, wraps or imports the code of others, and libraries: the folder
 * or file at the start of a path or after a slash. */
static const char *const starters[] = {
    "<frozen",  "<string>",     "fragsim_values.py", "importlib",   "runpy.py",
    "IPython/", "threading.py", "contextlib.py",     "functools.py"};
static const char *const libraries[] = {
    "torch/",       "site-packages/", "dist-packages/", "lib/python",
    "torchvision/", "transformers/",  "torch_npu/",     "triton/",
    "deepspeed/",   "accelerate/",    "lightning/",     "einops/",
    "diffusers/",   "peft/"};

/* What of the libraries allocates for all others. */
static const char *const allocators[] = {"torch/", "triton/", "torch_npu/"};

/* Functions that record the stack or allocate for the program: they are the
 * innermost frames of every stack with C++ frames. */
static const char *const recorders[] = {
    "torch::unwind::", "torch::CapturedTraceback",
    "c10::", "torch::cuda::(anonymous namespace)::"};

enum {
    STARTERS = sizeof(starters) / sizeof(*starters),
    LIBRARIES = sizeof(libraries) / sizeof(*libraries),
    ALLOCATORS = sizeof(allocators) / sizeof(*allocators),
    RECORDERS = sizeof(recorders) / sizeof(*recorders)
};

static const char *string_of(const struct frag_trace *t, uint32_t index)
{
    return t->strings[index];
}

static bool lies_in(const struct frag_trace *t, const struct frag_frame *f,
                    const char *const *parts, size_t count)
{
    const char *file = string_of(t, f->file);

    for (size_t i = 0; i < count; i++)
        for (const char *at = file; (at = strstr(at, parts[i])); at++)
            if (at == file || at[-1] == '/')
                return true;
    return false;
}

static bool is_python(const struct frag_trace *t, const struct frag_frame *f)
{
    const char *file = string_of(t, f->file);
    const size_t length = strlen(file);

    return *file == '<' || strstr(file, "ipython") ||
           (length >= 3 && !strcmp(file + length - 3, ".py"));
}

static bool is_python_code(const struct frag_trace *t,
                           const struct frag_frame *f)
{
    return is_python(t, f) && !lies_in(t, f, starters, STARTERS);
}

bool site_is_place(const struct frag_trace *t, const struct frag_frame *f)
{
    return is_python_code(t, f) && !lies_in(t, f, libraries, LIBRARIES);
}

static bool is_caller(const struct frag_trace *t, const struct frag_frame *f)
{
    return is_python_code(t, f) && !lies_in(t, f, allocators, ALLOCATORS);
}

static bool is_code(const struct frag_trace *t, const struct frag_frame *f)
{
    const char *name = string_of(t, f->function);

    for (size_t i = 0; i < RECORDERS; i++)
        if (!strncmp(name, recorders[i], strlen(recorders[i])))
            return false;
    return true;
}

static bool is_of_optimizer(const struct frag_trace *t,
                            const struct frag_frame *f)
{
    return lies_in(t, f, &(const char *const){"optim/"}, 1);
}

static bool is_any(const struct frag_trace *t, const struct frag_frame *f)
{
    (void)t;
    (void)f;
    return true;
}

typedef bool is_kind(const struct frag_trace *t, const struct frag_frame *f);

/* The innermost frame of that kind; NULL: the stack has none. */
static const struct frag_frame *innermost(const struct frag_trace *t,
                                          uint32_t stack, is_kind *is)
{
    const bool known = stack < t->stack_count;
    const uint64_t end = known ? t->stack_first[stack + 1] : 0;

    for (uint64_t i = known ? t->stack_first[stack] : 0; i < end; i++)
        if (is(t, &t->frames[i]))
            return &t->frames[i];
    return NULL;
}

/* That of the first kind which the stack has. */
static const struct frag_frame *first_of(const struct frag_trace *t,
                                         uint32_t stack, is_kind *const *kinds)
{
    const struct frag_frame *f = NULL;

    while (!f && *kinds)
        f = innermost(t, stack, *kinds++);
    return f;
}

const struct frag_frame *site_innermost(const struct frag_trace *t,
                                        uint32_t stack)
{
    return first_of(t, stack, (is_kind *const[]){is_code, is_any, NULL});
}

const struct frag_frame *site_of(const struct frag_trace *t, uint32_t stack)
{
    return first_of(t, stack,
                    (is_kind *const[]){site_is_place, is_python_code, is_code,
                                       is_any, NULL});
}

const struct frag_frame *site_place(const struct frag_trace *t, uint32_t stack)
{
    return innermost(t, stack, site_is_place);
}

bool site_is_optimizer(const struct frag_trace *t, uint32_t stack)
{
    return innermost(t, stack, is_of_optimizer) != NULL;
}

/* ---- the frames of Python ---- */

struct site_walk site_walk(const struct frag_trace *t, uint32_t stack)
{
    if (stack >= t->stack_count)
        return (struct site_walk){t, NULL, NULL};
    return (struct site_walk){t, t->frames + t->stack_first[stack],
                              t->frames + t->stack_first[stack + 1]};
}

const struct frag_frame *site_step_in(struct site_walk *w)
{
    while (w->next > w->first)
        if (is_python(w->trace, --w->next))
            return w->next;
    return NULL;
}

bool site_same(const struct frag_frame *a, const struct frag_frame *b)
{
    return a && b && !memcmp(a, b, sizeof(*a));
}

/* ---- texts ---- */

/* A frame of a library that was built without debug information has no file. */
static void put_frame(const struct frag_trace *t, const struct frag_frame *f,
                      const char *line, char text[SITE_TEXT])
{
    const char *name = string_of(t, f->function), *file = string_of(t, f->file);

    if (!*file || !strcmp(file, "??"))
        snprintf(text, SITE_TEXT, "%.120s", name);
    else if (!strcmp(name, "<module>"))
        snprintf(text, SITE_TEXT, "%.100s%s", frag_file_name(file), line);
    else
        snprintf(text, SITE_TEXT, "%.120s (%.100s%s)", name,
                 frag_file_name(file), line);
}

const char *site_frame_text(const struct frag_trace *t,
                            const struct frag_frame *f, char text[SITE_TEXT])
{
    char line[16];

    snprintf(line, sizeof(line), ":%" PRIu32, f->line);
    put_frame(t, f, line, text);
    return text;
}

const char *site_text(const struct frag_trace *t, uint32_t stack,
                      char text[SITE_TEXT])
{
    const struct frag_frame *f = site_of(t, stack);

    snprintf(text, SITE_TEXT, "unknown");
    return f ? site_frame_text(t, f, text) : text;
}

const char *site_place_text(const struct frag_trace *t, uint32_t stack,
                            const char *before, char text[SITE_TEXT])
{
    const struct frag_frame *f = site_place(t, stack);
    char frame[SITE_TEXT];

    snprintf(text, SITE_TEXT, "%s%.220s", f ? before : "",
             f ? site_frame_text(t, f, frame) : "");
    return text;
}

void site_function_text(const struct frag_trace *t, uint32_t stack,
                        char text[SITE_TEXT])
{
    const struct frag_frame *f = site_of(t, stack);

    snprintf(text, SITE_TEXT, "unknown");
    if (f)
        put_frame(t, f, "", text);
}

const struct frag_frame *site_caller(const struct frag_trace *t, uint32_t stack)
{
    return first_of(t, stack, (is_kind *const[]){is_caller, is_any, NULL});
}

const char *site_caller_text(const struct frag_trace *t, uint32_t stack,
                             char text[SITE_TEXT])
{
    static const char packages[] = "-packages/";
    const struct frag_frame *f = site_caller(t, stack);
    const char *file = f ? strstr(string_of(t, f->file), packages) : NULL;

    if (!file)
        return f ? site_frame_text(t, f, text) : strcpy(text, "unknown");
    snprintf(text, SITE_TEXT, "%.100s (%.120s:%" PRIu32 ")",
             string_of(t, f->function), file + strlen(packages), f->line);
    return text;
}

static void put_word(const char *text, FILE *out)
{
    for (; *text; text++)
        fputc((unsigned char)*text <= ' ' || *text == ';' || *text == 0x7f
                  ? '_'
                  : *text,
              out);
}

void site_put_folded(const struct frag_trace *t, uint32_t stack, FILE *out)
{
    const uint64_t first = stack < t->stack_count ? t->stack_first[stack] : 0;
    uint64_t i = stack < t->stack_count ? t->stack_first[stack + 1] : 0;

    if (i == first)
        fputs("unknown", out);
    while (i-- > first) {
        const struct frag_frame *f = &t->frames[i];

        put_word(string_of(t, f->function), out);
        fputs("_(", out);
        put_word(frag_file_name(string_of(t, f->file)), out);
        fprintf(out, ":%" PRIu32 ")%s", f->line, i > first ? ";" : "");
    }
}
