# heatmap.gp - draws peak reserved over the lower bound, policy by trace.
# in:  PREFIX.tsv         row, column, policy, ratio, ooms: one row for each
#                         tile; ratio 0: no run; the last column is the mean
#      PREFIX.traces.tsv  column, trace
#      PREFIX.note.tsv  limited (1: the figure leaves something out), shown,
#                       rule: the caption
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='heatmap'; out='heatmap.svg'" heatmap.gp
set datafile separator tab
set encoding utf8
# A name may begin with #.
set datafile commentschars ""

note = ""; rule = ""; noted = 0
stats in.".note.tsv" skip 1 using \
    (note = strcol(2), rule = strcol(3), noted = int($1), 0) nooutput

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

letter = 8.0
suffix = out[strlen(out)-2:]
if (suffix ne "svg") { letter = 10.0 }
cell_w = 46.0
cell_h = 26.0
left = letter*names + 28
head = 84 + 0.72*letter*traces
right = 24 + 0.75*letter*traces
right = right < 80 ? 80 : right
foot = 52.0 + 40*noted
wide = int(left + (columns + 1.3)*cell_w + right)
wide = wide < 980 ? 980 : wide
right = wide - left - (columns + 1.3)*cell_w
high = int(head + rows*cell_h + foot)
if (suffix eq "png") {
    set terminal pngcairo size wide,high font "Helvetica,13" background "white"
} else { if (suffix eq "pdf") {
    set terminal pdfcairo size wide/100.0,high/100.0 font "Helvetica,13" \
        background "white"
} else {
    set terminal svg size wide,high font "Helvetica,14" background "white"
} }
set output out
if (noted) {
    set label 901 note noenhanced at screen 24.0/wide, screen 32.0/high left \
        font ",11" textcolor "#111111"
    set label 902 rule noenhanced at screen 24.0/wide, \
        screen 14.0/high left font ",11" textcolor "#555555"
}

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
# Cividis, which looks the same to the colour-blind: darker means more waste. A
# factor of four and more is darkest.
set palette defined (0 "#FDEA45", 1 "#BCAF6F", 2 "#7C7B78", 3 "#414D6B", \
    4 "#00224E") maxcolors 256
set cbrange [0:2]
shade(x) = x >= 4 ? 2.0 : x > 1 ? log(x)/log(2) : 0.0
number(x, ooms) = x == 0 ? "" : ooms > 0 ? "OOM" : \
    x >= 99.5 ? sprintf("%.0f", x) : x >= 9.995 ? sprintf("%.1f", x) : \
    sprintf("%.2f", x)
# The column of means is set apart.
place(column) = column == columns ? column + 0.3 : column

unset colorbox
set label 1 "Peak reserved over the lower bound" \
    at screen 24.0/wide, screen 1 - 24.0/high left font ",18" \
    textcolor "#111111"
set label 2 "1.00 is the least that any policy can reserve; the best policy " \
    ."is on top. Right: the geometric mean." \
    at screen 24.0/wide, screen (22.0 + 40*noted)/high left textcolor "#555555"
do for [i=1:columns] {
    set label 10+i trace[i] noenhanced left rotate by 45 \
        at first i-1, screen 1 - (head - 8)/high textcolor "#333333"
}
set label 10+columns+1 "mean" left rotate by 45 \
    at first columns + 0.3, screen 1 - (head - 8)/high textcolor "#111111"

set style fill solid 1.0 noborder
plot in.".tsv" skip 1 using (place($2)):($4 > 0 && $5 == 0 ? $1 : NaN): \
         (place($2) - 0.48):(place($2) + 0.48):($1 - 0.47):($1 + 0.47): \
         (shade($4)) with boxxyerror linecolor palette, \
     "" skip 1 using (place($2)):($4 > 0 && $5 > 0 ? $1 : NaN): \
         (place($2) - 0.48):(place($2) + 0.48):($1 - 0.47):($1 + 0.47) \
         with boxxyerror linecolor "#D55E00", \
     "" skip 1 using (place($2)):1:(number($4, $5)):(shade($4) > 0.9 || $5 > 0 ? \
         0xffffff : 0x111111) with labels textcolor rgb variable, \
     "" skip 1 using (-0.5):($2 == 0 ? $1 : NaN):(strcol(3)) \
         with labels right offset -0.6,0 noenhanced textcolor "#111111"
