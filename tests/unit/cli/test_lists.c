/* test_lists.c - judges the rows of all lists: each has the texts that the help
 * prints, and a name that no other row of its list has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "policies/policies.h"
#include "sim/cli/cli.h"
#include "sim/cli/figures/figure.h"
#include "sim/export/formats.h"
#include "traces/edit/edit_parts.h"
#include "traces/gen/generator.h"
#include "traces/import/importers.h"

static const struct verb *const verbs[] = {
#define VERB(name) &verb_##name,
#include "sim/cli/verbs.h"
#undef VERB
};

enum { MOST = 256 };
static const char *lists[MOST], *names[MOST]; /* of the rows so far */
static size_t count;

static void judge(const char *list, const char *name, const char *text,
                  const char *more)
{
    const char *const texts[] = {name, text, more};

    for (size_t i = 0; i < 3; i++)
        if (!texts[i] || !*texts[i])
            fail_msg("%s %s: text %zu is missing", list, name ? name : "?", i);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(lists[i], list) && !strcmp(names[i], name))
            fail_msg("%s %s is there twice", list, name);
    assert_true(count < MOST);
    lists[count] = list;
    names[count++] = name;
}

#define JUDGE_ALL(list, rows, more)    \
    for (size_t i = 0; (rows)[i]; i++) \
    judge(list, (rows)[i]->name, (rows)[i]->summary, (rows)[i]->more)

static void every_row_has_texts_and_a_name_of_its_own(void **state)
{
    (void)state;
    JUDGE_ALL("importer", frag_importers, made);
    JUDGE_ALL("policy", frag_policies, name);
    JUDGE_ALL("generator", frag_generators, params->help);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        judge("command", verbs[i]->name, verbs[i]->summary, verbs[i]->about);
    for (const struct alias *a = aliases; a->name; a++)
        judge("command", a->name, a->summary, a->verb);
    for (const struct edit_kind *k = edit_kinds; k->name; k++)
        judge("edit", k->name, k->summary, k->example);
    for (size_t i = 0; i < EXPORT_FORMATS; i++)
        judge("format", export_formats[i].name, export_formats[i].about,
              export_formats[i].name);
    for (size_t i = 0; figures[i]; i++)
        judge("figure", figures[i]->name, figures[i]->name, figures[i]->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_texts_and_a_name_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
