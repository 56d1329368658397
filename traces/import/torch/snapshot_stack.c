/* snapshot_stack.c - reads the texts, frames and stacks of a snapshot. The
 * builder stores each of them once. */
#include "traces/import/torch/import_torch.h"

/* Texts */

static bool grow_strings(struct import *in, uint64_t want)
{
    const uint64_t had = in->string_room;

    if (!GROW(in->strings, in->string_room, want))
        return false;
    memset(in->strings + had, 0,
           (in->string_room - had) * sizeof(*in->strings));
    return true;
}

/* The builder's number of a text of the pickle, UINT32_MAX if the host has no
 * memory. */
static uint32_t string_of(struct import *in, uint64_t text)
{
    if (text >= in->string_room && !grow_strings(in, text + 1))
        return UINT32_MAX;
    if (!in->strings[text]) {
        size_t length;
        const char *bytes = pickle_text(in->pickle, text, &length);

        in->strings[text] = frag_build_string(in->build, bytes, length) + 1;
        origin_see_text(&in->origin, bytes, length);
    }
    return in->strings[text] - 1;
}

/* Frames */

enum { F_NAME, F_FILE, F_LINE };

const struct field frame_fields[WORD_COUNT] = {
    [W_name] = {TEXT, F_NAME, 0, true, false},
    [W_filename] = {TEXT, F_FILE, 0, true, false},
    [W_line] = {WHOLE, F_LINE, 0, true, true},
};

static uint32_t frame_hash(const struct frag_frame *f)
{
    const uint64_t n = ((uint64_t)f->file << 32 | f->function) + f->line;

    return (uint32_t)(n * 0x9e3779b97f4a7c15 >> 32) % FRAME_CACHE;
}

static bool same_frame(const struct frag_frame *a, const struct frag_frame *b)
{
    return a->file == b->file && a->function == b->function &&
           a->line == b->line;
}

static enum frag_err frame_seal(void *user, uint8_t kind, uint32_t *result,
                                struct frag_error *e)
{
    struct import *in = user;
    const uint64_t *v = in->objects[K_FRAME].value;
    struct frag_frame f;
    uint32_t *cached;

    (void)kind;
    FRAG_TRY(object_check(in, K_FRAME, e));
    f.file = string_of(in, v[F_FILE]);
    f.function = string_of(in, v[F_NAME]);
    f.line = v[F_LINE] <= UINT32_MAX ? (uint32_t)v[F_LINE] : 0;
    if (f.file == UINT32_MAX || f.function == UINT32_MAX)
        return import_no_memory(in, e);
    in->objects[K_FRAME].number++;
    cached = &in->frame_cache[frame_hash(&f)];
    if (!*cached || !same_frame(&f, &in->frames[*cached - 1])) {
        if (!GROW(in->frames, in->frame_room, in->frame_count + 1))
            return import_no_memory(in, e);
        in->frames[in->frame_count++] = f;
        *cached = (uint32_t)in->frame_count;
    }
    *result = *cached - 1;
    return FRAG_OK;
}

const struct pickle_kind torch_frame = {
    .name = "a frame",
    .shape = PICKLE_IS_DICT,
    .keeps = true,
    .begin = object_begin,
    .add = object_add,
    .seal = frame_seal,
};

/* Stacks */

static enum frag_err stack_begin(void *user, uint8_t kind, struct frag_error *e)
{
    struct import *in = user;

    (void)kind, (void)e;
    in->stack_count = 0;
    return FRAG_OK;
}

static enum frag_err stack_add(void *user, uint8_t kind,
                               const struct pickle_value *items, size_t count,
                               struct frag_error *e)
{
    struct import *in = user;

    (void)kind;
    for (; count--; items++) {
        if (!GROW(in->stack, in->stack_room, in->stack_count + 1))
            return import_no_memory(in, e);
        in->stack[in->stack_count++] = in->frames[items->n];
    }
    return FRAG_OK;
}

static enum frag_err stack_seal(void *user, uint8_t kind, uint32_t *result,
                                struct frag_error *e)
{
    struct import *in = user;

    (void)kind;
    *result = 0;
    if (in->stack_count)
        *result = frag_build_stack(in->build, in->stack, in->stack_count);
    return *result == UINT32_MAX ? import_no_memory(in, e) : FRAG_OK;
}

/* PyTorch before 2.15 adds a line to the metadata of what it does for
 * mallocWithAddress. */
static size_t length_of_metadata(const char *text, size_t length)
{
    static const char added[] = "mallocWithAddress";
    const size_t size = sizeof(added) - 1;

    if (length < size || memcmp(text + length - size, added, size) != 0)
        return length;
    length -= size;
    return length && text[length - 1] == '\n' ? length - 1 : length;
}

uint32_t stack_with_metadata(struct import *in, uint32_t stack, uint64_t text)
{
    size_t length;
    const char *bytes = pickle_text(in->pickle, text, &length);
    struct frag_frame f = {0};

    length = length_of_metadata(bytes, length);
    if (!length)
        return stack;
    f.file = frag_build_string(in->build, FRAG_METADATA_FILE,
                               strlen(FRAG_METADATA_FILE));
    f.function = frag_build_string(in->build, bytes, length);
    if (f.file == UINT32_MAX || f.function == UINT32_MAX)
        return UINT32_MAX;
    return frag_build_outer(in->build, stack, f);
}

const struct pickle_kind torch_frames = {
    .name = "a list of frames",
    .element = K_FRAME,
    .keeps = true,
    .begin = stack_begin,
    .add = stack_add,
    .seal = stack_seal,
};
