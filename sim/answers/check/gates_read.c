/* gates_read.c - reads a file of rules. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/answers/check/gates.h"
#include "sim/experiments/choices.h"
#include "traces/bytes/input.h"
#include "traces/grow.h"
#include "traces/nearest.h"

/* A place in the file. */
struct gate_place {
    const char *path;
    size_t line;
};

enum { MOST_LINE = 4096 };

/* -- values -------------------------------------------------------------- */

static bool read_bytes(const char *text, double *out)
{
    char *end;
    const double number = strtod(text, &end);
    frag_size size;

    if (frag_size_parse(text, &size) != FRAG_OK || size == FRAG_UNLIMITED ||
        (number != 0 && !end[strspn(end, " ")]))
        return false;
    *out = (double)size;
    return true;
}

static bool read_share(const char *text, double *out)
{
    char *end;
    const double number = strtod(text, &end);
    const bool percent = end[strspn(end, " ")] == '%';

    if (end == text || !(number >= 0) || isinf(number))
        return false;
    if (percent)
        end += strspn(end, " ") + 1;
    *out = percent ? number / 100 : number;
    return !*end && *out <= 1;
}

static bool read_count(const char *text, double *out)
{
    const size_t digits = strspn(text, "0123456789");

    *out = strtod(text, NULL);
    return digits && !text[digits];
}

static const struct {
    bool (*read)(const char *text, double *out);
    const char *expected;
} readers[] = {
    [GATE_BYTES] = {read_bytes,
                    "a size with its unit, such as 20GiB or 512KiB, or 0"},
    [GATE_SHARE] = {read_share, "a share such as 25% or 0.25, at most 100%"},
    [GATE_COUNT] = {read_count, "a number such as 500"},
};

/* -- lines --------------------------------------------------------------- */

/* Removes the comment, which begins at the start of the line or after a blank,
 * and the blanks at both ends. */
static char *trimmed(char *line)
{
    size_t length;

    line += strspn(line, " \t\r\n");
    for (char *at = line; (at = strchr(at, '#')); at++)
        if (at == line || at[-1] == ' ' || at[-1] == '\t') {
            *at = '\0';
            break;
        }
    length = strlen(line);
    while (length && strchr(" \t\r\n", line[length - 1]))
        line[--length] = '\0';
    return line;
}

static enum frag_err read_policy(struct gates *g, const struct gate_place *at,
                                 const char *text, struct frag_error *e)
{
    struct policy_choice policy;
    struct frag_error why = {""};
    enum frag_err err;

    if (g->policy)
        return frag_fail(e, FRAG_INVALID,
                         "%s:%zu: expected one policy, found another one: "
                         "\"%.60s\" after \"%.60s\"",
                         at->path, at->line, text, g->policy);
    err = policy_choice_read(text, &policy, &why);
    if (err != FRAG_OK)
        return frag_fail(e, err, "%s:%zu: %.300s", at->path, at->line,
                         why.text);
    policy_choice_free(&policy);
    g->policy = strdup(text);
    return g->policy ? FRAG_OK : frag_no_memory(e, "the rules");
}

static enum frag_err read_capacity(struct gates *g, const struct gate_place *at,
                                   const char *text, struct frag_error *e)
{
    double bytes;

    if (g->capacity)
        return frag_fail(e, FRAG_INVALID,
                         "%s:%zu: expected one capacity, found another one: "
                         "\"%.60s\"",
                         at->path, at->line, text);
    if (!read_bytes(text, &bytes) || !(bytes > 0))
        return frag_fail(e, FRAG_INVALID,
                         "%s:%zu: capacity: expected a size with its unit, "
                         "such as 80GiB, found \"%.60s\"",
                         at->path, at->line, text);
    g->capacity = (frag_size)bytes;
    return FRAG_OK;
}

static const struct {
    const char *word;
    enum frag_err (*read)(struct gates *g, const struct gate_place *at,
                          const char *text, struct frag_error *e);
} headers[] = {{"policy", read_policy}, {"capacity", read_capacity}};

static enum frag_err no_measure(const struct gate_place *at, const char *name,
                                struct frag_error *e)
{
    struct nearest near = nearest_to(name);
    char names[NEAREST_NAMES];

    for (const struct gate_measure *m = gate_measures; m->name; m++)
        nearest_try(&near, m->name);
    return frag_fail(e, FRAG_INVALID, "%s:%zu: there is no measure \"%.40s\"%s",
                     at->path, at->line, name,
                     nearest_names(&near, "measures", names));
}

static enum frag_err add_gate(struct gates *g, const struct gate *gate,
                              struct frag_error *e)
{
    if (!GROW(g->items, g->room, g->count + 1))
        return frag_no_memory(e, "the rules");
    g->items[g->count++] = *gate;
    return FRAG_OK;
}

static enum frag_err read_limit(struct gates *g, const struct gate_place *at,
                                struct gate *gate, const char *text,
                                struct frag_error *e)
{
    const enum gate_unit unit = gate->measure->unit;

    if (!readers[unit].read(text, &gate->limit))
        return frag_fail(e, FRAG_INVALID,
                         "%s:%zu: %s: expected %s, found \"%.60s\"", at->path,
                         at->line, gate->measure->name, readers[unit].expected,
                         text);
    return add_gate(g, gate, e);
}

static const struct gate_measure *find_measure(const char *name)
{
    const struct gate_measure *m = gate_measures;

    while (m->name && strcmp(m->name, name) != 0)
        m++;
    return m->name ? m : NULL;
}

/* Reads a rule. `name` is cut off at its end. */
static enum frag_err read_rule(struct gates *g, const struct gate_place *at,
                               char *name, char *rest, struct frag_error *e)
{
    struct gate gate = {.line = at->line, .at_least = *rest == '>'};

    if ((*rest != '<' && *rest != '>') || rest[1] != '=')
        return frag_fail(e, FRAG_INVALID,
                         "%s:%zu: expected \"MEASURE <= LIMIT\", \"MEASURE >= "
                         "LIMIT\", \"policy TEXT\" or \"capacity SIZE\", found "
                         "\"%.40s%s%.40s\"",
                         at->path, at->line, name, *rest ? " " : "", rest);
    gate.measure = find_measure(name);
    if (!gate.measure)
        return no_measure(at, name, e);
    return read_limit(g, at, &gate, rest + 2 + strspn(rest + 2, " \t"), e);
}

static enum frag_err read_line(struct gates *g, const struct gate_place *at,
                               const char *line, struct frag_error *e)
{
    const size_t length = strcspn(line, " \t<>=");
    const char *rest = line + length + strspn(line + length, " \t");
    char name[64], text[MOST_LINE];

    snprintf(name, sizeof(name), "%.*s", (int)(length < 63 ? length : 63),
             line);
    snprintf(text, sizeof(text), "%s", rest);
    for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
        if (!strcmp(headers[i].word, name) && *rest)
            return headers[i].read(g, at, text, e);
    return read_rule(g, at, name, text, e);
}

static enum frag_err read_lines(struct gates *g, FILE *in, struct frag_error *e)
{
    struct gate_place at = {g->path, 0};
    enum frag_err err = FRAG_OK;
    char line[MOST_LINE];

    while (err == FRAG_OK && fgets(line, sizeof(line), in)) {
        const char *text;

        at.line++;
        if (!strchr(line, '\n') && !feof(in))
            return frag_fail(e, FRAG_INVALID,
                             "%s:%zu: expected a line of fewer than %d bytes",
                             at.path, at.line, MOST_LINE);
        text = trimmed(line);
        if (*text)
            err = read_line(g, &at, text, e);
    }
    if (err == FRAG_OK && ferror(in))
        return frag_fail(e, FRAG_IO, "%s: %s", at.path, strerror(errno));
    if (err == FRAG_OK && !g->count)
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected a rule such as \"peak_reserved <= "
                         "20GiB\", found none",
                         at.path);
    return err;
}

/* Adds `deaths <= 0', unless the file has a rule about deaths. */
static enum frag_err forbid_deaths(struct gates *g, struct frag_error *e)
{
    const struct gate gate = {.measure = find_measure("deaths")};

    for (size_t i = 0; i < g->count; i++)
        if (g->items[i].measure == gate.measure)
            return FRAG_OK;
    return add_gate(g, &gate, e);
}

enum frag_err gates_read(const char *path, struct gates *out,
                         struct frag_error *e)
{
    enum frag_err err;
    FILE *in;

    *out = (struct gates){.path = strdup(path)};
    if (!out->path)
        return frag_no_memory(e, "the rules");
    FRAG_TRY(input_file(path, &in, e));
    err = read_lines(out, in, e);
    fclose(in);
    return err == FRAG_OK ? forbid_deaths(out, e) : err;
}

void gates_free(struct gates *g)
{
    free(g->path);
    free(g->policy);
    free(g->items);
    *g = (struct gates){.path = NULL};
}
