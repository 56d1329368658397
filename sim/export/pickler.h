/* pickler.h - writes a Python pickle of protocol 4 value by value, with the
 * opcodes that PyTorch's memory_viz reads and no others.
 *
 * The writer keeps no document in memory. The caller closes each dictionary and
 * list that it has opened. A value of a dictionary follows its key. Errors of
 * the stream are left to ferror(out).
 *
 * Source: Python's pickletools; torch/utils/viz/MemoryViz.js, unpickle().
 */
#ifndef FRAG_SIM_EXPORT_PICKLER_H
#define FRAG_SIM_EXPORT_PICKLER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A writer. Initialize it as {.out = FILE}; memo_count is the number of values
 * in the memo so far, and the other members are private. */
struct pickler {
    FILE *out;
    uint32_t memo_count;
    uint64_t items; /* of the innermost list so far */
};

void pickler_begin(struct pickler *p);
void pickler_end(struct pickler *p);

void pickler_dict_begin(struct pickler *p); /* then keys and values */
void pickler_dict_end(struct pickler *p);

/* A list is written in batches of 1000 items, because the viewer adds a batch
 * by one call with that many arguments. pickler_item comes before each item.
 * pickler_list_begin returns the number of items that the list around this one
 * has so far, which pickler_list_end takes back. */
uint64_t pickler_list_begin(struct pickler *p);
void pickler_item(struct pickler *p);
void pickler_list_end(struct pickler *p, uint64_t outer);

/* A number from 2^63 on is written as the negative number of the same 64 bits,
 * as PyTorch writes the handles of some streams. */
void pickler_number(struct pickler *p, uint64_t n);
void pickler_real(struct pickler *p, double x);
void pickler_bool(struct pickler *p, bool is_true);
/* Bytes that are not UTF-8 are written as U+FFFD. */
void pickler_text(struct pickler *p, const char *text);
/* A tuple of two numbers. */
void pickler_pair(struct pickler *p, uint64_t a, uint64_t b);

/* Stores the value that was written last in the memo, and returns 1 + its
 * number. pickler_recall writes that value again. */
uint32_t pickler_memoize(struct pickler *p);
void pickler_recall(struct pickler *p, uint32_t memo);

/* Writes a text that may occur often: the first time in full, with its memo
 * number in *memo, which is 0 before. */
void pickler_word(struct pickler *p, const char *text, uint32_t *memo);

#endif
