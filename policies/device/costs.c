/* costs.c - the costs of driver calls: those of the devices that were
 * measured, and the reader of a file with those of another device. See costs.h.
 */
#include "policies/device/costs.h"

#include <errno.h>
#include <string.h>

#include "traces/bytes/input.h"

#define HEADER "call,fixed_ns,ns_per_mib"

const char *const frag_driver_call_names[FRAG_DRIVER_CALL_COUNT] = {
#define X(upper, text) text,
    FRAG_DRIVER_CALLS(X)
#undef X
};

const struct frag_costs frag_costs_h200 = {
    .call =
        {
            /* clang-format off */
            [FRAG_DRIVER_VA_RESERVE] = {1828.4, 0.001},
            [FRAG_DRIVER_VA_FREE] = {1666.3, 0.003},
            [FRAG_DRIVER_PHYS_CREATE] = {11233.3, 9.429},
            [FRAG_DRIVER_PHYS_RELEASE] = {10388.1, 267.113},
            [FRAG_DRIVER_MAP] = {26408.4, 30.995},
            [FRAG_DRIVER_UNMAP] = {17292.6, 9.484},
            [FRAG_DRIVER_SEGMENT_ALLOC] = {45378.8, 51.804},
            [FRAG_DRIVER_SEGMENT_FREE] = {32514.1, 295.689},
            [FRAG_DRIVER_SMALL_ALLOC] = {1603.3, 6302.146},
            [FRAG_DRIVER_SMALL_FREE] = {1572.2, 6943.389},
            [FRAG_DRIVER_COPY] = {10163.0, 555.119},
            [FRAG_DRIVER_SYNCHRONIZE] = {598.3, 0.076},
            /* clang-format on */
        },
};

static const struct frag_costs costs_h100 = {
    .call =
        {
            /* clang-format off */
            [FRAG_DRIVER_VA_RESERVE] = {2238.1, 0.001},
            [FRAG_DRIVER_VA_FREE] = {2084.0, 0.003},
            [FRAG_DRIVER_PHYS_CREATE] = {11554.4, 24.546},
            [FRAG_DRIVER_PHYS_RELEASE] = {12649.1, 415.454},
            [FRAG_DRIVER_MAP] = {31145.2, 39.823},
            [FRAG_DRIVER_UNMAP] = {20587.8, 11.329},
            [FRAG_DRIVER_SEGMENT_ALLOC] = {63790.0, 93.263},
            [FRAG_DRIVER_SEGMENT_FREE] = {49312.4, 737.871},
            [FRAG_DRIVER_SMALL_ALLOC] = {2590.7, 10063.638},
            [FRAG_DRIVER_SMALL_FREE] = {2589.2, 11005.854},
            [FRAG_DRIVER_COPY] = {11246.2, 773.868},
            [FRAG_DRIVER_SYNCHRONIZE] = {775.5, 0.203},
            /* clang-format on */
        },
};

const struct frag_measured_costs frag_measured_costs[] = {
    {"h200", "NVIDIA H200", &frag_costs_h200},
    {"h100", "NVIDIA H100 80GB HBM3", &costs_h100},
    {NULL, NULL, NULL},
};

const struct frag_measured_costs *frag_costs_named(const char *name)
{
    for (const struct frag_measured_costs *m = frag_measured_costs; m->name;
         m++)
        if (!strcmp(m->name, name))
            return m;
    return NULL;
}

const struct frag_measured_costs *frag_costs_of_device(const char *device)
{
    for (const struct frag_measured_costs *m = frag_measured_costs; m->name;
         m++) {
        const size_t length = strlen(m->device);

        if (!strncmp(m->device, device, length) &&
            (device[length] == ',' || !device[length]))
            return m;
    }
    return NULL;
}

static int find_call(const char *name)
{
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        if (!strcmp(frag_driver_call_names[i], name))
            return i;
    return -1;
}

struct costs_reader {
    const char *path;
    unsigned line;
    bool seen[FRAG_DRIVER_CALL_COUNT];
    struct frag_costs costs;
};

static bool ends_field(const char *at)
{
    return *at == ',' || !*at;
}

static enum frag_err read_row(struct costs_reader *r, const char *text,
                              struct frag_error *e)
{
    struct frag_cost cost;
    char name[32];
    int call, length = 0;

    if (sscanf(text, "%31[^,],%lf,%lf%n", name, &cost.fixed_ns,
               &cost.ns_per_mib, &length) != 3 ||
        !ends_field(text + length))
        return frag_fail(
            e, FRAG_CORRUPT,
            "%s:%u: expected call,fixed_ns,ns_per_mib, found \"%.40s\"",
            r->path, r->line, text);
    call = find_call(name);
    if (call < 0)
        return frag_fail(
            e, FRAG_CORRUPT,
            "%s:%u: expected the name of a driver call, found \"%s\"", r->path,
            r->line, name);
    if (r->seen[call])
        return frag_fail(
            e, FRAG_CORRUPT,
            "%s:%u: expected one row for each call, found a second row for %s",
            r->path, r->line, name);
    if (!(cost.fixed_ns >= 0 && cost.fixed_ns < 1e12 && cost.ns_per_mib >= 0 &&
          cost.ns_per_mib < 1e12))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s:%u: expected costs from 0 to 1e12 ns", r->path,
                         r->line);
    r->seen[call] = true;
    r->costs.call[call] = cost;
    return FRAG_OK;
}

static bool is_header(const char *text)
{
    const size_t length = strlen(HEADER);

    return !strncmp(text, HEADER, length) && ends_field(text + length);
}

static enum frag_err read_rows(struct costs_reader *r, FILE *in,
                               struct frag_error *e)
{
    char text[256];
    bool has_header = false;

    while (fgets(text, sizeof(text), in)) {
        const bool is_whole = strchr(text, '\n') || feof(in);

        r->line++;
        text[strcspn(text, "\r\n")] = '\0';
        if (!is_whole)
            return frag_fail(e, FRAG_CORRUPT,
                             "%s:%u: expected a line of at most %d bytes",
                             r->path, r->line, (int)sizeof(text) - 2);
        if (*text == '#' || !*text)
            continue;
        if (!has_header && !is_header(text))
            return frag_fail(e, FRAG_CORRUPT, "%s:%u: expected the header %s",
                             r->path, r->line, HEADER);
        if (has_header)
            FRAG_TRY(read_row(r, text, e));
        has_header = true;
    }
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        if (!r->seen[i])
            return frag_fail(
                e, FRAG_CORRUPT,
                "%s: expected a row for every call, found no row for %s",
                r->path, frag_driver_call_names[i]);
    return FRAG_OK;
}

enum frag_err frag_costs_read(const char *path, struct frag_costs *costs,
                              struct frag_error *e)
{
    struct costs_reader r = {.path = path};
    enum frag_err err;
    FILE *in;

    FRAG_TRY(input_file(path, &in, e));
    err = read_rows(&r, in, e);
    if (err == FRAG_OK && ferror(in))
        err = frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    fclose(in);
    if (err == FRAG_OK)
        *costs = r.costs;
    return err;
}
