/* records.c - matches the paths of a JSON text with those of a schema while
 * yajl reads the tokens. Each open object and array has a set of the paths that
 * begin with its own path, so a part of the text without fields costs nothing
 * but its tokens. */
#include "traces/json/records.h"

#include <inttypes.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "traces/bytes/lines.h"
#include "traces/grow.h"

enum {
    MAX_DEPTH = 64,
    MAX_KEYS = 4,         /* of a path */
    MAX_TOKEN = 16 << 20, /* bytes without the end of a token */
    RECORD = 0,           /* the path number of the records; the path of field i
                             has the number i + 1 */
    PATHS = JSON_FIELDS + 1,
};

struct path {
    struct {
        const char *text;
        size_t length;
    } keys[MAX_KEYS];
    size_t count;
};

/* A set of paths; bit i is path number i. */
typedef uint64_t path_set;

/* An open object or array. */
struct level {
    path_set begins; /* the paths that begin with the path of this value */
    path_set items;  /* of an array: the paths of its items; 0 else */
};

struct json {
    const struct json_schema *schema;
    const char *name;
    void *user;
    yajl_handle tokens;
    struct path paths[PATHS];
    struct level levels[MAX_DEPTH + 1];
    size_t depth;  /* open objects and arrays */
    path_set next; /* the paths that begin with the path of the next value */
    path_set all;

    struct json_value values[JSON_FIELDS]; /* text is set for `each` only */
    size_t at[JSON_FIELDS];                /* offsets in text */
    char *text;
    size_t used, room;
    path_set set;     /* values that are present */
    size_t record;    /* depth of the open record, 0 if none is open */
    path_set kept;    /* the values from before the record */
    size_t kept_used; /* and their text */

    uint64_t base, where; /* position of the fed text and of the record */
    uint64_t token_count;
    size_t unended; /* bytes since the last end of a token */
    enum frag_err err;
    struct frag_error *e;
};

/* ---- paths ---- */

static void split_path(const char *text, struct path *path)
{
    path->count = 0;
    while (*text && path->count < MAX_KEYS) {
        const size_t length = strcspn(text, "/");

        path->keys[path->count].text = text;
        path->keys[path->count++].length = length;
        text += length + (text[length] == '/');
    }
}

/* Returns the paths of `from` whose key number `index` is the given one. */
static path_set with_key(const struct json *j, path_set from, size_t index,
                         const char *key, size_t length)
{
    path_set found = 0;

    for (; from; from &= from - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(from);
        const struct path *p = &j->paths[i];

        if (index < p->count && p->keys[index].length == length &&
            !memcmp(p->keys[index].text, key, length))
            found |= (path_set)1 << i;
    }
    return found;
}

static bool is_record(const struct json *j)
{
    return (j->next & 1) && j->paths[RECORD].count == j->depth;
}

/* ---- values ---- */

static int stop(struct json *j, enum frag_err err)
{
    j->err = err;
    return 0;
}

static uint64_t position(const struct json *j)
{
    return j->base + yajl_get_bytes_consumed(j->tokens);
}

static int expected(struct json *j, const char *what, const char *found)
{
    return stop(j, frag_fail(j->e, FRAG_CORRUPT,
                             "%s:%" PRIu64 ": expected %s, found %s", j->name,
                             position(j), what, found));
}

static bool keep(struct json *j, unsigned field, enum json_kind kind,
                 const char *text, size_t length)
{
    if (!GROW(j->text, j->room, j->used + length + 1))
        return false;
    j->at[field] = j->used;
    if (length)
        memcpy(j->text + j->used, text, length);
    j->used += length;
    j->text[j->used++] = '\0';
    j->values[field] = (struct json_value){.kind = kind, .length = length};
    j->set |= (path_set)1 << field;
    return true;
}

/* After a value of an object, a key sets `next`; the items of an array have the
 * same path. */
static void end_value(struct json *j)
{
    j->next = j->depth ? j->levels[j->depth].items : j->all;
}

static int scalar(struct json *j, enum json_kind kind, const char *text,
                  size_t length)
{
    j->token_count++;
    if (is_record(j))
        return expected(j, "an object", "another value");
    for (path_set left = j->next & ~(path_set)1; left; left &= left - 1) {
        const unsigned field = (unsigned)__builtin_ctzll(left) - 1;

        if (field < j->schema->field_count &&
            j->paths[field + 1].count == j->depth && !(j->set >> field & 1) &&
            !keep(j, field, kind, text, length))
            return stop(j, FRAG_NOMEM);
    }
    end_value(j);
    return 1;
}

static int open_value(struct json *j, bool is_array)
{
    j->token_count++;
    if (is_record(j)) {
        if (is_array)
            return expected(j, "an object", "an array");
        j->record = j->depth + 1;
        j->kept = j->set;
        j->kept_used = j->used;
        j->where = position(j) - 1;
    }
    if (j->depth == MAX_DEPTH)
        return expected(j, "JSON nested at most 64 deep", "deeper nesting");
    j->levels[++j->depth] = (struct level){.begins = j->next};
    if (is_array)
        j->levels[j->depth].items = with_key(j, j->next, j->depth - 1, "[]", 2);
    end_value(j);
    return 1;
}

static enum frag_err end_record(struct json *j)
{
    enum frag_err err;

    for (size_t i = 0; i < j->schema->field_count; i++) {
        if (!(j->set >> i & 1))
            j->values[i] = (struct json_value){.text = ""};
        else
            j->values[i].text = j->text + j->at[i];
    }
    err = j->schema->each(j->user, j->values, j->where);
    j->record = 0;
    j->set = j->kept;
    j->used = j->kept_used;
    return err;
}

static int close_value(struct json *j)
{
    enum frag_err err = FRAG_OK;

    j->token_count++;
    if (j->record == j->depth)
        err = end_record(j);
    j->depth--;
    end_value(j);
    return err == FRAG_OK ? 1 : stop(j, err);
}

/* ---- the tokens of yajl ---- */

static int on_null(void *user)
{
    return scalar(user, JSON_NULL, "null", 4);
}

static int on_boolean(void *user, int value)
{
    const char *text = value ? "true" : "false";

    return scalar(user, JSON_BOOLEAN, text, strlen(text));
}

static int on_number(void *user, const char *text, size_t length)
{
    return scalar(user, JSON_NUMBER, text, length);
}

static int on_string(void *user, const unsigned char *text, size_t length)
{
    return scalar(user, JSON_STRING, (const char *)text, length);
}

static int on_open_map(void *user)
{
    return open_value(user, false);
}

static int on_open_array(void *user)
{
    return open_value(user, true);
}

static int on_close(void *user)
{
    return close_value(user);
}

static int on_key(void *user, const unsigned char *text, size_t length)
{
    struct json *j = user;

    j->token_count++;
    j->next = with_key(j, j->levels[j->depth].begins, j->depth - 1,
                       (const char *)text, length);
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_open_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_close,
    .yajl_start_array = on_open_array,
    .yajl_end_array = on_close,
};

/* ---- the reader ---- */

struct json *json_open(const struct json_schema *schema, const char *name,
                       void *user)
{
    struct json *j = calloc(1, sizeof(*j));

    if (!j)
        return NULL;
    j->schema = schema;
    j->name = name;
    j->user = user;
    j->tokens = yajl_alloc(&callbacks, NULL, j);
    if (!j->tokens) {
        free(j);
        return NULL;
    }
    yajl_config(j->tokens, yajl_dont_validate_strings, 1);
    split_path(schema->record, &j->paths[RECORD]);
    for (size_t i = 0; i < schema->field_count; i++)
        split_path(schema->fields[i], &j->paths[i + 1]);
    j->all = ((path_set)2 << schema->field_count) - 1;
    end_value(j);
    return j;
}

void json_close(struct json *j)
{
    if (!j)
        return;
    yajl_free(j->tokens);
    free(j->text);
    free(j);
}

/* Reports the error of yajl, such as "parse error: premature EOF". */
static enum frag_err not_json(struct json *j)
{
    unsigned char *words = yajl_get_error(j->tokens, 0, NULL, 0);

    if (!words)
        return FRAG_NOMEM;
    words[strcspn((char *)words, "\n")] = '\0';
    expected(j, "JSON", (const char *)words);
    yajl_free_error(j->tokens, words);
    return j->err;
}

enum frag_err json_feed(struct json *j, const char *text, size_t length,
                        uint64_t where, struct frag_error *e)
{
    const uint64_t before = j->token_count;
    yajl_status status;

    j->base = where;
    j->e = e;
    status = yajl_parse(j->tokens, (const unsigned char *)text, length);
    if (status == yajl_status_client_canceled)
        return j->err;
    if (status != yajl_status_ok)
        return not_json(j);
    j->unended = j->token_count == before ? j->unended + length : 0;
    if (j->unended > MAX_TOKEN)
        expected(j, "a value of at most 16 MiB", "a longer one");
    return j->err;
}

/* Ends the text. yajl reports a text that is not complete. */
static enum frag_err json_end(struct json *j, uint64_t where,
                              struct frag_error *e)
{
    j->base = where;
    j->e = e;
    if (yajl_complete_parse(j->tokens) == yajl_status_ok)
        return FRAG_OK;
    if (j->err != FRAG_OK)
        return j->err;
    return frag_fail(e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected the rest of the JSON, found the "
                     "end; the file is incomplete: copy it again, or see why "
                     "the program that should write it did not",
                     j->name, where);
}

static enum frag_err read_windows(struct json *j, struct frag_source *source,
                                  const struct frag_read_options *opts,
                                  struct frag_error *e)
{
    for (;;) {
        const unsigned char *bytes;
        enum frag_err err = FRAG_OK;
        const size_t count =
            frag_source_peek(source, FRAG_SOURCE_WINDOW, &bytes, &err, e);

        FRAG_TRY(err);
        if (!count)
            return json_end(j, frag_source_offset(source), e);
        FRAG_TRY(json_feed(j, (const char *)bytes, count,
                           frag_source_offset(source), e));
        frag_source_skip(source, count);
        FRAG_TRY(lines_tick(source, opts, e));
    }
}

enum frag_err json_read(struct frag_source *source,
                        const struct json_schema *schema,
                        const struct frag_read_options *opts, void *user,
                        struct frag_error *e)
{
    struct json *j = json_open(schema, frag_source_name(source), user);
    enum frag_err err = j ? read_windows(j, source, opts, e) : FRAG_NOMEM;

    json_close(j);
    return err;
}
