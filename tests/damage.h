/* damage.h - proves that a check sees what is broken: a field gets a wrong
 * value, the check is asked, and the field gets its value back.
 *
 * Include after cmocka.h.
 */
#ifndef FRAG_TESTS_DAMAGE_H
#define FRAG_TESTS_DAMAGE_H

/* The check finds just that. */
static inline void expect_text(const char *found, const char *words)
{
    assert_string_equal(found ? found : "nothing", words);
}

/* With the value in the field the call answers the words; without it nothing
 * is broken, before and after. */
#define DAMAGE(field, value, call, words) \
    do {                                  \
        __typeof__(field) was_ = (field); \
        const char *found_;               \
                                          \
        assert_null(call);                \
        (field) = (value);                \
        found_ = (call);                  \
        (field) = was_;                   \
        expect_text(found_, (words));     \
        assert_null(call);                \
    } while (0)

#endif
