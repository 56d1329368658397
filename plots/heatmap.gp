# heatmap.gp - draws peak reserved over the lower bound, policy by trace.
# in:  PREFIX.tsv         row, column, policy, ratio, ooms: one row for each
#                         tile; ratio 0: no run; the last column is the mean
#      PREFIX.traces.tsv  column, trace
#      PREFIX.note.tsv  limited (1: the figure leaves something out), shown,
#                       rule: the caption
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='heatmap'; out='heatmap.svg'" heatmap.gp
load ARG0[1:strlen(ARG0) - strlen("heatmap.gp")]."canvas.gp"
eval read_note

stats in.".tsv" skip 1 using 1 nooutput
rows = int(STATS_max) + 1
stats in.".traces.tsv" skip 1 using 1 nooutput
columns = int(STATS_max) + 1
stats in.".tsv" skip 1 using (strlen(strcol(3))) nooutput
names = STATS_max
stats in.".traces.tsv" skip 1 using (strlen(strcol(2))) nooutput
traces = STATS_max
array trace[columns]
do for [i=1:columns] {
    name = ""
    stats in.".traces.tsv" skip 1 every ::i-1::i-1 \
        using (name = strcol(2), 1) nooutput
    trace[i] = name
}

cell_w = 46.0
cell_h = 26.0
left = letter*names + 28
head = 84 + 0.72*letter*traces
right = 24 + 0.75*letter*traces
right = right < 80 ? 80 : right
foot = 52.0 + 40*noted
wide = int(left + (columns + 1.3)*cell_w + right)
wide = wide < 980 ? 980 : wide
high = int(head + rows*cell_h + foot)
eval open_canvas
right = wide - left - (columns + 1.3)*cell_w

set lmargin at screen left/wide
set rmargin at screen 1 - right/wide
set tmargin at screen 1 - head/high
set bmargin at screen foot/high
set xrange [-0.5:columns + 0.8]
set yrange [rows - 0.5:-0.5]
unset border
unset xtics
unset ytics
unset key
# A factor of four and more is darkest (in the theme dark, brightest).
set palette defined (0 scale[1], 1 scale[2], 2 scale[3], 3 scale[4], \
    4 scale[5]) maxcolors 256
set cbrange [0:2]
shade(x) = x >= 4 ? 2.0 : x > 1 ? log(x)/log(2) : 0.0
number(x, ooms) = x == 0 ? "" : ooms > 0 ? "OOM" : \
    x >= 99.5 ? sprintf("%.0f", x) : x >= 9.995 ? sprintf("%.1f", x) : \
    sprintf("%.2f", x)
# The column of means is set apart.
place(column) = column == columns ? column + 0.3 : column

unset colorbox
title = "Peak reserved over the lower bound"
eval put_title
set label 2 "1.00 is the least that any policy can reserve; the best policy " \
    ."is on top. Right: the geometric mean." \
    at screen 24.0/wide, screen (22.0 + 40*noted)/high left textcolor rgb soft
do for [i=1:columns] {
    set label 10+i trace[i] noenhanced left rotate by 45 \
        at first i-1, screen 1 - (head - 8)/high textcolor rgb plain
}
set label 10+columns+1 "mean" left rotate by 45 \
    at first columns + 0.3, screen 1 - (head - 8)/high textcolor rgb strong

set style fill solid 1.0 noborder
plot in.".tsv" skip 1 using (place($2)):($4 > 0 && $5 == 0 ? $1 : NaN): \
         (place($2) - 0.48):(place($2) + 0.48):($1 - 0.47):($1 + 0.47): \
         (shade($4)) with boxxyerror linecolor palette \
         title "peak reserved over the lower bound", \
     "" skip 1 using (place($2)):($4 > 0 && $5 > 0 ? $1 : NaN): \
         (place($2) - 0.48):(place($2) + 0.48):($1 - 0.47):($1 + 0.47) \
         with boxxyerror linecolor rgb ink_failing title "OOM", \
     "" skip 1 using (place($2)):1:(number($4, $5)):($5 > 0 || (shade($4) > 0.9) == (theme ne "dark") ? \
         0xffffff : 0x111111) with labels textcolor rgb variable notitle, \
     "" skip 1 using (-0.5):($2 == 0 ? $1 : NaN):(strcol(3)) \
         with labels right offset -0.6,0 noenhanced textcolor rgb strong \
         notitle
