/* verb_policies.c - the command policies: lists the policies, their parameters,
 * needs and sources, from the policies' own tables, tests whether they keep the
 * contract, or says what each release of PyTorch makes of settings, as its
 * alias conf does. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/cli/answers/text/settings_text.h"
#include "sim/cli/apart.h"
#include "sim/cli/cli.h"
#include "sim/experiments/choices.h"
#include "sim/experiments/contract/contract.h"
#include "sim/replay/place.h"
#include "sim/results/row.h"
#include "traces/bytes/sink.h"
#include "traces/printable.h"

struct policies_values {
    struct common common;
    const char *json;
    bool force, test;
};

static const struct need {
    unsigned flag;
    const char *name, *text;
} needs[] = {
    {FRAG_NEEDS_VMM, "vmm", "virtual memory calls of the device"},
    {FRAG_NEEDS_FUTURE, "future", "knowledge of when a block is freed"},
    {FRAG_NEEDS_MOVES, "moves", "a caller that lets blocks move"},
};

enum { NEEDS = sizeof(needs) / sizeof(*needs) };

/* Indexed by enum frag_param_kind. */
static const char *const kinds[] = {"size", "number", "ratio", "switch",
                                    "choice"};

static bool has_range(const struct frag_param *p)
{
    return p->kind <= FRAG_PARAM_RATIO && p->min < p->max;
}

/* Formats a bound in the way a user writes it. */
static const char *bound(const struct frag_param *p, double x,
                         char text[FRAG_SIZE_TEXT])
{
    if (p->kind == FRAG_PARAM_SIZE)
        return frag_size_format(x < 0x1p64 ? (frag_size)x : FRAG_UNLIMITED,
                                text);
    snprintf(text, FRAG_SIZE_TEXT, "%g", x);
    return text;
}

/* `assigns` is the character between a parameter and its value: PyTorch's
 * grammar has a colon. */
static void print_param(FILE *out, const struct frag_param *p, char assigns)
{
    char low[FRAG_SIZE_TEXT], high[FRAG_SIZE_TEXT];

    if (p->init)
        printable_line(out, "    %s%c%s", p->name, assigns, p->init);
    else
        printable_line(out, "    %s (off unless it is set)", p->name);
    if (p->choices)
        printable_line(out, "        %s (%s)", p->help, p->choices);
    else if (has_range(p))
        printable_line(out, "        %s (%s to %s)", p->help,
                       bound(p, p->min, low), bound(p, p->max, high));
    else
        printable_line(out, "        %s", p->help);
}

static void print_policy(FILE *out, const struct frag_policy *p, bool details)
{
    printable_line(out, "%-12s %s%s", p->name, p->summary,
                   p->needs & (FRAG_NEEDS_FUTURE | FRAG_NEEDS_MOVES)
                       ? " (traces only)"
                       : "");
    if (!details)
        return;
    printable_line(out, "    source: %s", p->source);
    for (size_t i = 0; i < NEEDS; i++)
        if (p->needs & needs[i].flag)
            fprintf(out, "    needs: %s\n", needs[i].text);
    fprintf(out, "    quantum: %" PRIu64 " bytes\n", p->quantum);
    for (const struct frag_param *q = p->params; q && q->name; q++)
        print_param(out, q, p->configure ? ':' : '=');
}

static void json_param(struct frag_json *j, const struct frag_param *p,
                       bool own_grammar)
{
    frag_json_new_object(j, 5, NULL);
    frag_json_text(j, "name", p->name);
    frag_json_text(j, "kind", own_grammar ? NULL : kinds[p->kind]);
    JSON_ROW(j, frag_param, p, TEXT("default", init), TEXT("choices", choices));
    frag_json_real(j, "min", has_range(p) ? p->min : NAN);
    frag_json_real(j, "max", has_range(p) ? p->max : NAN);
    frag_json_text(j, "help", p->help);
    frag_json_end(j);
}

static void json_policy(struct frag_json *j, const struct frag_policy *p)
{
    frag_json_new_object(j, 2, NULL);
    JSON_ROW(j, frag_policy, p, TEXT("name", name), TEXT("summary", summary),
             TEXT("source", source), NUMBER("quantum_bytes", quantum));
    frag_json_array(j, "needs");
    for (size_t i = 0; i < NEEDS; i++)
        if (p->needs & needs[i].flag)
            frag_json_text(j, NULL, needs[i].name);
    frag_json_end(j);
    frag_json_array(j, "params");
    for (const struct frag_param *q = p->params; q && q->name; q++)
        json_param(j, q, p->configure != NULL);
    frag_json_end(j);
    frag_json_end(j);
}

static void json_all(FILE *out, const struct frag_policy *const *list)
{
    struct frag_json j = {.out = out};

    frag_json_object(&j, NULL);
    frag_json_text(&j, "schema_version", FRAG_JSON_SCHEMA);
    frag_json_array(&j, "policies");
    for (; *list; list++)
        json_policy(&j, *list);
    frag_json_line(&j, 1);
    frag_json_end(&j);
    frag_json_end(&j);
    fputc('\n', out);
}

static enum frag_err write_json(const struct policies_values *v,
                                const struct frag_policy *const *list,
                                struct frag_error *e)
{
    struct sink sink;

    FRAG_TRY(sink_open(&sink, v->json, e));
    json_all(sink.out, list);
    return sink_commit(&sink, e);
}

/* -- --test -------------------------------------------------------------- */

/* Prints a line for the property. CONTRACT if the policy lacks it; the reason
 * is then on the line below. */
static enum frag_err print_property(const struct contract_property *p,
                                    const struct contract_subject *s,
                                    struct frag_error *e)
{
    struct frag_error why = {""};
    struct place *place = place_enter(p->name);
    enum frag_err err;

    /* A policy that crashes has its property on the terminal. */
    printf("    %-60s ", p->name);
    if (!contract_applies(p, s->policy)) {
        puts("has none");
        place_leave(place);
        return FRAG_OK;
    }
    fflush(stdout);
    err = contract_test(p, s, &why);
    place_leave(place);
    puts(err == FRAG_OK ? "pass" : "FAIL");
    if (err == FRAG_CONTRACT)
        printf("        %s\n", why.text);
    else if (err != FRAG_OK)
        *e = why;
    fflush(stdout); /* before words on stderr */
    return err;
}

/* CONTRACT if the policy lacks a property. */
static enum frag_err test_policy(const struct contract_subject *s,
                                 const char *text, struct frag_error *e)
{
    size_t lacking = 0;

    puts(text);
    for (const struct contract_property *p = contract_properties; p->name;
         p++) {
        const enum frag_err err = print_property(p, s, e);

        if (err != FRAG_OK && err != FRAG_CONTRACT)
            return err;
        lacking += err == FRAG_CONTRACT;
    }
    if (!s->policy->check && s->policy->unchecked)
        printable_line(stdout, "    no check of its own: %s",
                       s->policy->unchecked);
    return lacking
               ? frag_fail(e, FRAG_CONTRACT, "%s lacks %zu of these properties",
                           text, lacking)
               : FRAG_OK;
}

static enum frag_err test_one(const char *text, struct frag_error *e)
{
    struct policy_choice choice;
    enum frag_err err;

    FRAG_TRY(policy_choice_read(text, &choice, e));
    err = test_policy(
        &(const struct contract_subject){choice.policy, choice.given}, text, e);
    policy_choice_free(&choice);
    return err;
}

static enum frag_err test_all(struct frag_error *e)
{
    for (const struct frag_policy *const *p = frag_policies; *p; p++)
        FRAG_TRY(test_policy(&(const struct contract_subject){*p, NULL},
                             (*p)->name, e));
    return FRAG_OK;
}

static int test(const struct call *call, const struct policies_values *v)
{
    struct frag_error e = {""};

    if (v->json)
        return cli_misuse(call, "--test prints no JSON: leave out --json");
    return cli_fail(call,
                    v->common.args.count ? test_one(v->common.args.items[0], &e)
                                         : test_all(&e),
                    &e);
}

/* -- settings of PyTorch ------------------------------------------------- */

static bool is_conf(const struct call *call)
{
    return !strcmp(call->name, "conf");
}

/* The settings that the command is asked about: all of conf's argument, or what
 * follows "torch:", or "@2.6:" and what follows. NULL: a policy is meant. */
static const char *settings_of(const struct call *call)
{
    const char *text = call->args->count ? call->args->items[0] : "-";

    if (is_conf(call))
        return text;
    if (!strncmp(text, "torch:", 6))
        return text + 6;
    return !strncmp(text, "torch@", 6) && strchr(text, ':') ? text + 5 : NULL;
}

/* -- the command --------------------------------------------------------- */

static int policies_run(const struct call *call, const void *values)
{
    const struct policies_values *v = values;
    const struct frag_policy *one[] = {NULL, NULL};
    const struct frag_policy *const *list = frag_policies;
    struct frag_error e = {""};
    int code;

    if (v->test && is_conf(call))
        return cli_misuse(call, "--test tests a policy, not settings");
    if (v->test)
        return test(call, v);
    code = cli_may_write(call, v->json, v->force);
    if (code != EXIT_DONE)
        return code;
    if (settings_of(call))
        return settings_answer(call, settings_of(call), v->json);
    if (v->common.args.count) {
        enum frag_err err = policy_named(v->common.args.items[0], one, &e);

        if (err != FRAG_OK)
            return cli_fail(call, err, &e);
        list = one;
    }
    if (v->json)
        return cli_fail(call, write_json(v, list, &e), &e);
    for (; *list; list++)
        print_policy(stdout, *list, true);
    return EXIT_DONE;
}

#define AT(field) offsetof(struct policies_values, field)
static const struct option_row options[] = {
    {"json", 0, "FILE", OPTION_TEXT, AT(json), NULL,
     "write the same as JSON; - is stdout"},
    FORCE_OPTION(AT(force)),
    {"test", 0, NULL, OPTION_SWITCH, AT(test), NULL,
     "test whether the policy keeps the contract of policies/policy.h: one "
     "line for each property, and exit code 1 if one is lacking"},
    {0},
};

const struct verb verb_policies = {
    .name = "policies",
    .args = "[NAME|FILE.so][:PARAMS]",
    .summary = "list the policies, their parameters and sources, and what "
               "releases of PyTorch make of settings",
    .about =
        "The option -p of `fragsim replay' and of other commands accepts NAME "
        "or NAME:PARAMS. It also accepts a policy in a shared library of your "
        "own, by the name of the file: ./FILE.so or ./FILE.so:PARAMS. The "
        "installed header policies/policy.h explains how to write one.\n\n"
        "A policy marked \"traces only\" moves blocks or knows when they are "
        "freed, so it cannot serve a program under `fragsim run'.\n\n"
        "Every run of a policy in a shared library is checked as with "
        "--check: a block that is not aligned, lies outside of the memory "
        "that the policy holds, or overlaps a live block ends the command "
        "with exit code 1. The command with such a "
        "policy runs in a process of its own: if the policy crashes, ends the "
        "process, or works on one event for longer than "
        "FRAGSIM_PLUGIN_SECONDS, the "
        "message names the policy, the event and the signal, and the exit "
        "code is 1. `fragsim policies --test ./FILE.so' tests the policy "
        "without a trace: it makes random requests, replays generated traces, "
        "and lets the device refuse calls.\n\n"
        "torch:SETTINGS asks instead what each release of PyTorch makes of "
        "each setting of PYTORCH_CUDA_ALLOC_CONF: it is accepted, ignored (it "
        "has no effect), refused (PyTorch raises an error), or unknown to "
        "fragsim; then which values are in force, and where expandable "
        "segments cannot be used. torch@2.6:SETTINGS names a release "
        "(default: the newest), whose values are then in force; the exit code "
        "is 1 if it refuses, ignores or does not know a setting. torch:- "
        "reads PYTORCH_CUDA_ALLOC_CONF, PYTORCH_HIP_ALLOC_CONF and "
        "PYTORCH_ALLOC_CONF of the environment, and so does `fragsim conf', "
        "which is short for it; `fragsim conf SETTINGS' is short for "
        "torch:SETTINGS.",
    .example = "fragsim policies torch:max_split_size_mb:64",
    .options = options,
    .size = sizeof(struct policies_values),
    .defaults = &(const struct policies_values){.test = false},
    .args_max = 1,
    .run = policies_run,
};
