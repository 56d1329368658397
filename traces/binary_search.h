/* binary_search.h - the binary search. */
#ifndef FRAG_TRACES_BINARY_SEARCH_H
#define FRAG_TRACES_BINARY_SEARCH_H

/* Sets the variable `at` to the number of the first of `count` sorted rows for
 * which `before`, an expression of the row number `row`, is false; to `count`
 * if there is none. */
#define SEARCH(at, count, row, before)      \
    do {                                    \
        uint64_t end_ = (count), row;       \
        for ((at) = 0; (at) < end_;) {      \
            row = (at) + (end_ - (at)) / 2; \
            if (before)                     \
                (at) = row + 1;             \
            else                            \
                end_ = row;                 \
        }                                   \
    } while (0)

#endif
