# canvas.gp - what all other scripts of plots/ share: the options of the user,
#             the colours of the themes, the canvas with its title and caption.
#             A script loads it first, computes `wide` and `high`, the pixels
#             that its contents need, and then evaluates open_canvas.
# in:  out; for a figure of runs PREFIX.note.tsv: limited (1: the figure leaves
#      something out), shown, rule: the caption
#      Optional, by -e: user_title; theme (light, dark, print)
set datafile separator tab
set encoding utf8
# A name may begin with #.
set datafile commentschars ""

if (!exists("user_title")) { user_title = "" }
if (!exists("theme")) { theme = "light" }
suffix = out[strlen(out)-2:]
is_vector = suffix eq "svg"

# The colours: text, from strong to soft, and lines of a grid on the paper; then
# the data. In grey, too, each colour of data differs from the others (test:
# check_figures.py, colors), so that a print without colour is readable. Those
# of `line_ink` are for lines, points and their names.
if (theme eq "dark") {
    paper = "#15181D"; strong = "#F4F5F7"; plain = "#D6D9DE"; soft = "#A9AFB9"
    grid_ink = "#3A404B"
    ink_main = "#C7E7FA"; ink_pending = "#C879B8"; ink_failing = "#FF923F"
    ink_grey = "#7B7B7B"; ink_second = "#90CFF3"; ink_amber = "#885D0D"
    ink_pale = "#634A05"
    array line_ink[6] = ["#C2E8FF", "#B23E9B", "#00CC88", "#9B9B9B", \
        "#1A8ACB", "#F9C55C"]
} else { if (theme eq "print") {
    paper = "#FFFFFF"; strong = "#000000"; plain = "#000000"; soft = "#333333"
    grid_ink = "#CCCCCC"
    ink_main = "#1F1F1F"; ink_pending = "#434343"; ink_failing = "#636363"
    ink_grey = "#848484"; ink_second = "#A6A6A6"; ink_amber = "#C6C6C6"
    ink_pale = "#E8E8E8"
    array line_ink[6] = ["#000000", "#2E2E2E", "#555555", "#757575", \
        "#949494", "#B4B4B4"]
} else {
    paper = "#FFFFFF"; strong = "#111111"; plain = "#333333"; soft = "#555555"
    grid_ink = "#DDDDDD"
    ink_main = "#00426C"; ink_pending = "#943D83"; ink_failing = "#D55D00"
    ink_grey = "#989898"; ink_second = "#60BAED"; ink_amber = "#F1C36D"
    ink_pale = "#FAE3A5"
    array line_ink[6] = ["#00375A", "#812B6F", "#007750", "#828282", \
        "#34A6E8", "#F9AC14"]
} }
# The tiles of runs that fail early and late, and a scale of five colours, from
# little to much.
tile_early = theme eq "print" ? "#8C8C8C" : theme eq "dark" ? "#C45A0C" : "#D55E00"
tile_late = theme eq "print" ? "#EEEEEE" : theme eq "dark" ? "#4A2A10" : "#F8E3D0"
# Cividis, which looks the same to the colour-blind.
array scale[5] = ["#FDEA45", "#BCAF6F", "#7C7B78", "#414D6B", "#00224E"]
if (theme eq "print") {
    array scale[5] = ["#F0F0F0", "#BFBFBF", "#8E8E8E", "#5D5D5D", "#2C2C2C"]
}
if (theme eq "dark") {
    array scale[5] = ["#4F6A8F", "#7C8FA6", "#A9A58C", "#D3C06A", "#FDEA45"]
}
hex(ink) = int("0x".ink[2:])

# The width of a letter of the usual size.
letter = is_vector ? 8.0 : 10.0

# The caption of a figure of runs: what it leaves out, and the rule.
note = ""; rule = ""; noted = 0
read_note = "stats in.'.note.tsv' skip 1 using (note = strcol(2), " \
    ."rule = strcol(3), noted = int($1), 0) nooutput"

# The canvas is as large as its contents need; a PDF has 100 pixels to the inch.
usual = is_vector ? 14.0 : 13.0
least(a, b) = a < b ? a : b
terminal_of(w, h) = (suffix eq "pdf" ? \
    sprintf("set terminal pdfcairo size %g,%g", w/100.0, h/100.0) : \
    sprintf("set terminal %s size %d,%d", is_vector ? "svg" : "pngcairo", \
            w, h)).sprintf(" font \"Helvetica,%g\" background \"%s\"", usual, paper)
open_canvas = "wide = int(wide); high = int(high); " \
    ."eval terminal_of(wide, high); set output out; " \
    ."set border linecolor rgb soft; " \
    ."if (noted) { eval put_caption }"
put_caption = "set label 901 note noenhanced at screen 24.0/wide, " \
    ."screen 32.0/high left font ',11' textcolor rgb strong; " \
    ."set label 902 rule noenhanced at screen 24.0/wide, " \
    ."screen 14.0/high left font ',11' textcolor rgb soft"

# `eval put_title` draws the text `title` above everything else: in the size
# that has room, and cut if none has. The words of the user replace it.
title = ""
title_size(text) = (wide - 48.0)*usual/letter/(strlen(text) + 0.1)
title_cut(text) = title_size(text) >= 11 ? text : \
    text[1:int(strlen(text)*title_size(text)/11) - 2]."…"
put_title = "title = title_cut(user_title eq '' ? title : user_title); " \
    ."set label 1 title noenhanced at screen 24.0/wide, screen 1 - 24.0/high " \
    ."left font sprintf(',%d', least(title_size(title), 1.3*usual)) " \
    ."textcolor rgb strong"
