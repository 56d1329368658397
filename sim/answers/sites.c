/* sites.c - tells the user's frames from those of libraries. */
#include "sim/answers/sites.h"

#include <inttypes.h>
#include <string.h>

static const char *const libraries[] = {
    "torch/",      "site-packages/", "dist-packages/", "lib/python",
    "<frozen",     "<string>",       "torchvision/",   "transformers/",
    "torch_npu/",  "triton/",        "deepspeed/",     "accelerate/",
    "lightning/",  "importlib",      "threading.py",   "contextlib.py",
    "functools.py"};

/* Functions that record the stack or allocate for the program: they are the
 * innermost frames of every stack with C++ frames. */
static const char *const recorders[] = {
    "torch::unwind::", "torch::CapturedTraceback",
    "c10::", "torch::cuda::(anonymous namespace)::"};

static const char *string_of(const struct frag_trace *t, uint32_t index)
{
    return t->strings[index];
}

static bool is_python(const char *file)
{
    const size_t length = strlen(file);

    return length >= 3 && !strcmp(file + length - 3, ".py");
}

/* Whether the frame belongs to a library and not to the user. */
static bool is_library(const struct frag_trace *t, const struct frag_frame *f)
{
    const char *file = string_of(t, f->file);

    for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
        if (strstr(file, libraries[i]))
            return true;
    return !is_python(file) && !strstr(file, "ipython") && *file != '<';
}

static bool is_recorder(const struct frag_trace *t, const struct frag_frame *f)
{
    const char *name = string_of(t, f->function);

    for (size_t i = 0; i < sizeof(recorders) / sizeof(*recorders); i++)
        if (!strncmp(name, recorders[i], strlen(recorders[i])))
            return true;
    return false;
}

const struct frag_frame *site_innermost(const struct frag_trace *t,
                                        uint32_t stack)
{
    const uint64_t first = stack < t->stack_count ? t->stack_first[stack] : 0;
    const uint64_t end = stack < t->stack_count ? t->stack_first[stack + 1] : 0;

    for (uint64_t i = first; i < end; i++)
        if (!is_recorder(t, &t->frames[i]))
            return &t->frames[i];
    return first < end ? &t->frames[first] : NULL;
}

const struct frag_frame *site_of(const struct frag_trace *t, uint32_t stack)
{
    const uint64_t first = stack < t->stack_count ? t->stack_first[stack] : 0;
    const uint64_t end = stack < t->stack_count ? t->stack_first[stack + 1] : 0;

    for (uint64_t i = first; i < end; i++)
        if (!is_library(t, &t->frames[i]))
            return &t->frames[i];
    return site_innermost(t, stack);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* A frame of a library that was built without debug information has none. */
static bool has_file(const struct frag_trace *t, const struct frag_frame *f)
{
    const char *file = string_of(t, f->file);

    return *file && strcmp(file, "??") != 0;
}

const char *site_frame_text(const struct frag_trace *t,
                            const struct frag_frame *f, char text[SITE_TEXT])
{
    if (!has_file(t, f))
        snprintf(text, SITE_TEXT, "%.120s", string_of(t, f->function));
    else
        snprintf(text, SITE_TEXT, "%.120s (%.100s:%" PRIu32 ")",
                 string_of(t, f->function), last_part(string_of(t, f->file)),
                 f->line);
    return text;
}

const char *site_text(const struct frag_trace *t, uint32_t stack,
                      char text[SITE_TEXT])
{
    const struct frag_frame *f = site_of(t, stack);

    if (f)
        return site_frame_text(t, f, text);
    snprintf(text, SITE_TEXT, "unknown");
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
        put_word(last_part(string_of(t, f->file)), out);
        fprintf(out, ":%" PRIu32 ")%s", f->line, i > first ? ";" : "");
    }
}
