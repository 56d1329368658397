# compare.gp - draws one number of each run as a bar, with a mark at another one.
#              Few bars have their labels above them; of many, each has one line
#              and the figure grows.
# in:  PREFIX.facts.tsv  one row: title, value, mark (what they are; mark may be
#                        empty), units (byte, s, ns or empty), roomy (up to so
#                        many bars have their labels above them)
#      PREFIX.tsv  label, note, value, mark (0: none), ooms (1: a request
#                  failed), known (0: there is no value): one row for each run,
#                  the first on top
#      PREFIX.note.tsv  limited (1: the figure leaves something out), shown,
#                       rule: the caption
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='compare'; out='compare.svg'" compare.gp
load ARG0[1:strlen(ARG0) - strlen("compare.gp")]."canvas.gp"
eval read_note

value = ""; marked = ""; units = ""
stats in.".facts.tsv" skip 1 using (title = strcol(1), value = strcol(2), \
    marked = strcol(3), units = strcol(4), $5) nooutput
roomy = STATS_max
stats in.".tsv" skip 1 using (strlen(strcol(2))) nooutput
n = int(STATS_records)
notes = STATS_max
stats in.".tsv" skip 1 using (strlen(strcol(1))) nooutput
names = STATS_max
bigger(a, b) = a > b ? a : b
stats in.".tsv" skip 1 using (bigger($3, $4)) nooutput
most = STATS_max > 0 ? STATS_max : 1.0
stats in.".tsv" skip 1 using 5 nooutput
fail = STATS_sum; fit = n - fail
unit = units ne "byte" ? 1.0 : most < 2**30 ? 2.0**20 : 2.0**30
axis = value.(units eq "" ? "" : ", ".(units ne "byte" ? units : \
    unit > 2**20 ? "GiB" : "MiB"))

# Labels above the bars, or in a column of their own at the left.
dense = n > roomy
small = dense ? ",11" : ""
narrow = dense ? letter*11/usual : letter*1.05
step = dense ? 18.0 : 64.0
left = dense ? 24 + narrow*names + 12 : 24.0
right = narrow*notes + 24
wide = left + right + 560 > 1000 ? left + right + 560 : 1000
foot = 68.0 + 40*noted
head = dense ? 96.0 : 74.0
high = head + foot + step*n + 14
eval open_canvas

set lmargin at screen left/wide
set rmargin at screen 1 - 20.0/wide
set tmargin at screen 1 - head/high
set bmargin at screen foot/high
set border 2 linecolor rgb soft
set tics nomirror textcolor rgb plain
set grid xtics linecolor rgb grid_ink linetype 1 linewidth 1
set style fill solid 1.0 noborder
# The space right of the longest bar is for its note.
set xrange [0:most/unit*(wide - left - 20)/(wide - left - 20 - right)]
set yrange [-n + 0.4:0.6]
set xlabel axis textcolor rgb plain
unset ytics
# The axis of a long figure stands above it, too.
if (dense) { set xtics mirror; set link x2; set x2tics textcolor rgb plain }
eval put_title
set key at screen 1 - 20.0/wide, screen 1 - 40.0/high right top horizontal \
    maxrows 1 samplen 2 width -1 textcolor rgb plain

# A mark has a rim, so that it shows on every bar.
bottom(i) = -i - (dense ? 0.32 : 0.34)
top(i) = -i + (dense ? 0.32 : 0.12)
middle(i) = (bottom(i) + top(i))/2
plot in.".tsv" skip 1 using ($5 == 0 && $6 > 0 ? 0.5*$3/unit : NaN):(-$0):(0.0): \
         ($3/unit):(bottom($0)):(top($0)) \
         with boxxyerror linecolor rgb ink_main title (fit > 0 ? value : ""), \
     "" skip 1 using ($5 > 0 && $6 > 0 ? 0.5*$3/unit : NaN):(-$0):(0.0): \
         ($3/unit):(bottom($0)):(top($0)) with boxxyerror \
         linecolor rgb ink_failing title (fail > 0 ? "with an OOM" : ""), \
     "" skip 1 using ($4 > 0 ? $4/unit : NaN):(bottom($0) - 0.05):(0): \
         (top($0) - bottom($0) + 0.1) \
         with vectors nohead linewidth 5 linecolor rgb strong title marked, \
     "" skip 1 using ($4 > 0 ? $4/unit : NaN):(bottom($0) - 0.05):(0): \
         (top($0) - bottom($0) + 0.1) \
         with vectors nohead linewidth 2 linecolor rgb ink_amber notitle, \
     "" skip 1 using (bigger($3, $4)/unit):(middle($0)):2 \
         with labels left offset 0.8,0 noenhanced font small \
         textcolor rgb plain notitle, \
     "" skip 1 using (0):(dense ? 99 : -$0 + 0.31):1 \
         with labels left offset 0.3,0 noenhanced \
         textcolor rgb strong notitle, \
     "" skip 1 using (0):(dense ? middle($0) : 99):1 \
         with labels right offset -0.8,0 noenhanced font small \
         textcolor rgb strong notitle
