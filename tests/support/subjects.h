/* subjects.h - makes one test of each pair of a property and a registered
 * policy.
 *
 * Include after cmocka.h.
 */
#ifndef FRAG_TESTS_SUPPORT_SUBJECTS_H
#define FRAG_TESTS_SUPPORT_SUBJECTS_H

#include "policies/policy.h"

#include <stdio.h>

enum { MAX_SUBJECTS = 80, MAX_PROPERTIES = 16 };

/* A policy with parameters (NULL: its defaults), the state of a test. */
struct subject {
    const struct frag_policy *policy;
    const char *params;
};

/* Parameters to be tested in addition to each policy's defaults. */
struct setting {
    const char *policy, *params;
};

struct property {
    const char *name;
    CMUnitTestFunction test;
};

#define PROPERTY(test) \
    {                  \
#test, test    \
    }

static inline const char *subject_text(const struct subject *s, char text[128])
{
    snprintf(text, 128, "%s%s%s", s->policy->name, s->params ? ":" : "",
             s->params ? s->params : "");
    return text;
}

/* Lists every registered policy with its defaults, then the settings, whose
 * table ends with a NULL. Returns the number of subjects. */
static inline size_t list_subjects(const struct setting *settings,
                                   struct subject subjects[MAX_SUBJECTS])
{
    size_t count = 0;

    for (size_t i = 0; frag_policies[i]; i++) {
        assert_true(count < MAX_SUBJECTS);
        subjects[count++] = (struct subject){frag_policies[i], NULL};
    }
    for (; settings->policy; settings++) {
        assert_true(count < MAX_SUBJECTS);
        subjects[count++] = (struct subject){frag_policy_find(settings->policy),
                                             settings->params};
    }
    return count;
}

/* Both tables end with a NULL. */
static inline int run_properties(const char *group,
                                 const struct setting *settings,
                                 const struct property *properties)
{
    static struct subject subjects[MAX_SUBJECTS];
    static char names[MAX_SUBJECTS * MAX_PROPERTIES][256];
    static struct CMUnitTest tests[MAX_SUBJECTS * MAX_PROPERTIES];
    const size_t count = list_subjects(settings, subjects);
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        for (const struct property *p = properties; p->name; p++, n++) {
            char text[128];

            assert_true(n < MAX_SUBJECTS * MAX_PROPERTIES);
            snprintf(names[n], sizeof(names[n]), "%s: %s",
                     subject_text(&subjects[i], text), p->name);
            tests[n] = (struct CMUnitTest){.name = names[n],
                                           .test_func = p->test,
                                           .initial_state = &subjects[i]};
        }
    return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}

#endif
