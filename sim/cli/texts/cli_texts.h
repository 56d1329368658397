/* cli_texts.h - the files of this folder, and some of tests/examples, as
 * strings: CMake makes texts.c of them.
 */
#ifndef FRAG_SIM_CLI_TEXTS_CLI_TEXTS_H
#define FRAG_SIM_CLI_TEXTS_CLI_TEXTS_H

/* The glossary: each word that the tables of the commands print, and its
 * meaning in one sentence without a period. Formulas and units are those of
 * sim/results/columns.c; tests/cli/words.sh checks that the headings of the
 * tables occur in it. */
extern const char text_words_txt[];

/* The style of a page: dark and light colours and one accent. In print each
 * trace begins a page. */
extern const char text_page_css[];

/* The script of a page: a click on a column's heading sorts by the cells'
 * data-v. Before printing, all <details> are opened. */
extern const char text_page_js[];

/* The interactive view of memory (sim/cli/review/view.h): its elements, its
 * style, and the two parts of the function that stands after the data and draws
 * them. */
extern const char text_view_html[], text_view_css[], text_view_map_js[],
    text_view_js[];

/* Shell lines that make a CSV of the files of other tools.
 *
 * nsys, by the schema of Nsight Systems' SQLite exports
 * (docs.nvidia.com/nsight-systems, exporter pages): a free whose block was
 * allocated before the report began is dropped; the row before it, of the same
 * address, is no allocation.
 *
 * xla, by XLA's dumps (--xla_dump_to), buffer assignment and HLO live range:
 * XLA lets an output occupy the place of an operand in the operation that uses
 * the operand last, so a buffer is live in [begin, end).
 *
 * memray, by memray's Python API. */
extern const char text_nsys_sh[], text_xla_sh[], text_memray_sh[];

/* The programs in tests/examples that make a CSV of the files of other tools.
 */
extern const char text_android_to_csv_py[], text_heaptrack_to_csv_py[],
    text_mtrace_to_csv_py[], text_rocprof_to_csv_py[], text_umpire_to_csv_py[];

#endif
