/* options.c - translates rows of options for glibc's argp, which parses them
 * and prints the help, and stores the values. */
#include "sim/cli/options.h"

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/arena/arena.h"
#include "sim/cli/cli.h"
#include "sim/experiments/choices.h"
#include "traces/bytes/source.h"
#include "traces/printable.h"

enum {
    LONG_ONLY = 256, /* first argp key of options without a short option */
    ROWS_MAX = 40,
    NAME_MAX_ = 64,
};

#define AT(field) offsetof(struct common, field)
const struct option_row common_options[] = {
    {"quiet", 'q', NULL, OPTION_SWITCH, AT(quiet), NULL, "print errors only"},
    {"color", 0, "WHEN", OPTION_CHOICE, AT(color), "auto|always|never",
     "colour the text: auto, always or never (auto: on a terminal, unless "
     "NO_COLOR is set)"},
    {SOURCE_MOST_OPTION, 0, "SIZE", OPTION_SIZE, AT(most_unpacked), NULL,
     "bytes that a packed input may unpack to (default: 1000 times its size, "
     "but 256 MiB to 256 GiB)"},
    {0},
};

/* The argp parser of one verb, and the struct that receives the values. */
struct parser {
    const struct verb *verb;
    void *values;
    const struct option_row *rows[ROWS_MAX];
    struct argp_option options[ROWS_MAX];
    char name[NAME_MAX_], doc[4096];
    struct argp argp;
    char **given;     /* the arguments */
    char **printable; /* their printable forms, which argp reads */
    int count;
};

static void add_rows(struct parser *p, size_t *count,
                     const struct option_row *rows)
{
    for (; rows && rows->name; rows++) {
        size_t i = (*count)++;

        if (i + 1 >= ROWS_MAX)
            abort();
        p->rows[i] = rows;
        p->options[i] = (struct argp_option){
            rows->name,  rows->key ? rows->key : LONG_ONLY + (int)i,
            rows->value, 0,
            rows->help,  0};
    }
}

static void *place(const struct parser *p, const struct option_row *row)
{
    return (char *)p->values + row->offset;
}

static void append(struct texts *list, const char *text,
                   struct argp_state *state)
{
    if (!texts_append(list, text))
        argp_failure(state, EXIT_FILES, 0, "%s", frag_err_text(FRAG_NOMEM));
}

/* The index of `word` in "a|b|c"; -1 if it is not one of the choices. */
static int choice(const char *choices, const char *word)
{
    size_t n = strlen(word);

    for (int i = 0; n; i++) {
        size_t length = strcspn(choices, "|");

        if (length == n && !strncmp(choices, word, n))
            return i;
        if (!choices[length])
            break;
        choices += length + 1;
    }
    return -1;
}

static bool read_number(const char *text, uint64_t *out)
{
    unsigned long long n;
    char *end;

    errno = 0;
    n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n > INT64_MAX)
        return false;
    *out = n;
    return true;
}

/* The given text at a place in the printable forms. Before the place is the
 * name of an option or nothing, which is the same in both. */
static char *given_text(const struct parser *p, char *form)
{
    for (int i = 0; i < p->count; i++)
        if (form >= p->printable[i] &&
            form <= p->printable[i] + strlen(p->printable[i]))
            return p->given[i] + (form - p->printable[i]);
    return form;
}

static void store_size(frag_size *at, const char *name, const char *text,
                       struct argp_state *state)
{
    struct frag_error e;

    if (size_choice_read(name, text, false, at, &e) != FRAG_OK)
        argp_error(state, "%s", e.text);
}

/* Stores one value, whose printable form is `text`. Returns NULL, or a
 * description of the expected text if `text` is not valid. */
static const char *store(const struct parser *p, const struct option_row *row,
                         char *text, struct argp_state *state)
{
    void *at = place(p, row);
    int index;

    switch (row->kind) {
    case OPTION_SWITCH:
        *(bool *)at = true;
        return NULL;
    case OPTION_TEXT:
        *(const char **)at = given_text(p, text);
        return NULL;
    case OPTION_LIST:
        append(at, given_text(p, text), state);
        return NULL;
    case OPTION_SIZE:
        store_size(at, row->name, text, state);
        return NULL;
    case OPTION_TOTAL:
        store_size(at, row->name, text, state);
        return *(frag_size *)at <= FRAG_TOTAL_MOST
                   ? NULL
                   : "the memory of one device, at most 4TiB";
    case OPTION_NUMBER:
        return read_number(text, at) ? NULL : "a number";
    case OPTION_DEVICE:
        *(uint64_t *)at = FRAG_HOST_DEVICE;
        return !strcmp(text, "host") || read_number(text, at)
                   ? NULL
                   : "a number, or host for pinned host memory";
    case OPTION_CHOICE:
        index = choice(row->choices, text);
        *(unsigned *)at = (unsigned)index;
        return index >= 0 ? NULL : row->choices;
    }
    return NULL;
}

static void set(const struct parser *p, const struct option_row *row,
                char *text, struct argp_state *state)
{
    const char *expected;

    if (row->value && !*text)
        argp_error(state, "--%s: expected %s, found an empty text", row->name,
                   row->value);
    expected = store(p, row, text, state);
    if (expected)
        argp_error(state, "--%s: expected %s, found \"%s\"", row->name,
                   expected, text);
}

static void check_args(const struct parser *p, struct argp_state *state)
{
    const struct common *common = p->values;
    const struct verb *v = p->verb;

    if (common->args.count < v->args_min)
        argp_error(state, "expected %s", v->args);
}

static error_t on_key(int key, char *text, struct argp_state *state)
{
    const struct parser *p = state->input;
    struct common *common = p->values;

    if (key == ARGP_KEY_ARG) {
        if (common->args.count == p->verb->args_max)
            argp_error(state, "\"%s\" is one argument too many; expected %s%s",
                       text, *p->verb->args ? "only " : "none", p->verb->args);
        append(&common->args, given_text(p, text), state);
        return 0;
    }
    if (key == ARGP_KEY_END)
        check_args(p, state);
    for (size_t i = 0; p->rows[i]; i++)
        if (p->options[i].key == key) {
            set(p, p->rows[i], text, state);
            return 0;
        }
    return ARGP_ERR_UNKNOWN;
}

static void add_doc(struct parser *p, const char *format, ...)
    FRAG_PRINTF(2, 3);

static void add_doc(struct parser *p, const char *format, ...)
{
    const size_t n = strlen(p->doc);
    va_list args;

    va_start(args, format);
    vsnprintf(p->doc + n, sizeof(p->doc) - n, format, args);
    va_end(args);
}

static void prepare(struct parser *p, const struct verb *verb, void *values)
{
    size_t count = 0;

    *p = (struct parser){.verb = verb, .values = values};
    add_rows(p, &count, verb->options);
    add_rows(p, &count, common_options);
    snprintf(p->name, sizeof(p->name), "fragsim %s", verb->name);
    snprintf(p->doc, sizeof(p->doc), "%s.\v%s", verb->summary, verb->about);
    for (const struct exit_case *c = exit_cases; c->verb; c++)
        if (!strcmp(c->verb, verb->name))
            add_doc(p, "\n\nExit code %d: %s", (int)c->code, c->text);
    if (verb->example)
        add_doc(p, "\n\nExample: %s", verb->example);
    p->argp = (struct argp){.options = p->options,
                            .parser = on_key,
                            .args_doc = verb->args,
                            .doc = p->doc};
}

/* Copies the arguments: argp and getopt print parts of them in messages, and
 * reorder their array. false if the host has no memory. */
static bool copy_arguments(struct parser *p, int argc, char **argv, char **read)
{
    p->given = argv;
    p->count = argc;
    p->printable = read + argc + 1;
    for (int i = 0; i < argc; i++) {
        read[i] = p->printable[i] = printable_copy(argv[i]);
        if (!read[i])
            return false;
    }
    return true;
}

void options_parse(const struct verb *verb, int argc, char **argv, void *values)
{
    const size_t room = 2 * ((size_t)argc + 1);
    char **read = calloc(room, sizeof(*read));
    struct parser p;

    prepare(&p, verb, values);
    argp_err_exit_status = EXIT_USE;
    argv[0] = p.name;
    if (!read || !copy_arguments(&p, argc, argv, read)) {
        printable_line(stderr, "%s: %s", p.name, frag_err_text(FRAG_NOMEM));
        exit(EXIT_FILES);
    }
    argp_parse(&p.argp, argc, read, 0, NULL, &p);
    for (int i = 0; i < argc; i++)
        free(p.printable[i]);
    free(read);
}

void options_help(const struct verb *verb)
{
    char name[] = "", help[] = "--help", *argv[] = {name, help, NULL};

    options_parse(verb, 2, argv, NULL);
}

void options_free(const struct verb *verb, void *values)
{
    const struct option_row *row = verb->options;
    struct common *common = values;

    free(common->args.items);
    for (; row && row->name; row++) {
        struct texts *list = (void *)((char *)values + row->offset);

        if (row->kind == OPTION_LIST)
            free(list->items);
    }
}
