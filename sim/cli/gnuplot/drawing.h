/* drawing.h - where a figure is drawn and how it looks: the options of the
 * commands that draw. */
#ifndef FRAG_SIM_CLI_GNUPLOT_DRAWING_H
#define FRAG_SIM_CLI_GNUPLOT_DRAWING_H

#include <stdio.h>

#include "sim/cli/cli.h"

/* The texts are as the user wrote them; NULL: the figure's own. */
struct drawing {
    const char *out;   /* file, in the format of its suffix: .svg, .png, .pdf */
    const char *keep;  /* folder for script and data; NULL: they are not kept */
    const char *title; /* replaces the title */
    unsigned theme;    /* index in DRAWING_THEMES */
};

#define DRAWING_THEMES "light|dark|print"

/* Rows for the table of options of a verb; `at` is the offset of its struct
 * drawing. The verb has its own row for `out`. */
/* clang-format off */
#define DRAWING_AT(at, field) (at) + offsetof(struct drawing, field)
#define DRAWING_KEEP_OPTION(at)                                                \
    {"keep", 0, "DIR", OPTION_TEXT, DRAWING_AT(at, keep), NULL,                \
     "keep the gnuplot scripts and their data in this folder"}
#define DRAWING_LOOK_OPTIONS(at)                                               \
    {"title", 0, "TEXT", OPTION_TEXT, DRAWING_AT(at, title), NULL,             \
     "title of the figure, or of the page (default: what it shows)"},          \
    {"theme", 0, "THEME", OPTION_CHOICE, DRAWING_AT(at, theme),                \
     DRAWING_THEMES,                                                           \
     "colours of the figure: light, dark or print, which is black and grey "   \
     "(default: light)"}
/* clang-format on */

/* EXIT_DONE if the figure can be drawn and its file may be replaced; else
 * prints the reason and returns the exit code. */
int drawing_check(const struct call *call, const struct drawing *d, bool force);

/* Writes what gnuplot must know of the look, each time after "; ":
 * user_title='...' and the other variables of plots/canvas.gp. */
void drawing_put(FILE *out, const struct drawing *d);

/* Writes 'text' as gnuplot quotes it: single quotes in the text are doubled. */
void drawing_quote(FILE *out, const char *text);

#endif
