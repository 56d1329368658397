# breakdown.gp - draws the parts of the reserved bytes of each run at its peak,
#                as stacked bars.
# in:  PREFIX.tsv  label, note, requested, rounding, pending, free_here,
#                  free_stream, free_pool, unusable, trace: bytes that sum to
#                  peak reserved; one row for each run, the first on top
#      PREFIX.note.tsv  limited (1: the figure leaves something out), shown,
#                       rule: the caption
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='breakdown'; out='breakdown.svg'" breakdown.gp
load ARG0[1:strlen(ARG0) - strlen("breakdown.gp")]."canvas.gp"
eval read_note

trace = ""
stats in.".tsv" skip 1 using (trace = strcol(10), \
    $3+$4+$5+$6+$7+$8+$9) nooutput
n = int(STATS_records)
most = STATS_max > 0 ? STATS_max : 1.0
unit = most < 2**30 ? 2.0**20 : 2.0**30
stats in.".tsv" skip 1 using (strlen(strcol(2))) nooutput
notes = STATS_max

array part[7] = ["requested", "rounding", "freed, not yet reusable", \
    "free: same stream and pool", "free: another stream", \
    "free: another pool", "unusable"]
array ink[7] = [ink_main, ink_second, ink_pending, ink_pale, ink_amber, \
    ink_failing, ink_grey]
array total[7]
do for [k=1:7] {
    stats in.".tsv" skip 1 using k+2 nooutput
    total[k] = STATS_sum
}

wide = 1000
left = 24.0
right = 1.05*letter*notes + 16
# The legend: the parts that occur, in rows as wide as the figure.
array at_x[7]; array at_y[7]
x = left; lines = 1
do for [k=1:7] {
    if (total[k] > 0) {
        w = 40 + letter*strlen(part[k])
        if (x + w > wide - 20) {
            x = left
            lines = lines + 1
        }
        at_x[k] = x
        at_y[k] = lines
        x = x + w
    }
}
head = 44.0 + 24*lines
step = n <= 24 ? 60.0 : 36.0
small = n <= 24 ? "" : ",11"
foot = 62.0 + 40*noted
high = int(head + step*n + foot + 4)
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
set yrange [-n+0.4:0.6]
set xlabel "reserved at the peak, ".(unit > 2**20 ? "GiB" : "MiB") \
    textcolor rgb plain
unset ytics
unset key
title = "Parts of peak reserved: ".trace
eval put_title
do for [k=1:7] {
    if (total[k] > 0) {
        y = high - 28.0 - 24*at_y[k]
        set object 10+k rectangle from screen at_x[k]/wide, screen (y-6)/high \
            to screen (at_x[k]+14)/wide, screen (y+6)/high \
            fillcolor rgb ink[k] fillstyle solid 1.0 noborder front
        set label 10+k part[k] at screen (at_x[k]+20)/wide, screen y/high \
            left textcolor rgb plain
    }
}

bottom(i) = -i - 0.34
top(i) = -i + 0.10
plot for [k=1:7] in.".tsv" skip 1 using \
         ((sum [c=3:k+2] column(c))/unit):(-$0): \
         ((sum [c=3:k+2] column(c) - (c == k+2 ? column(c) : 0))/unit): \
         ((sum [c=3:k+2] column(c))/unit):(bottom($0)):(top($0)) \
         with boxxyerror linecolor rgb ink[k] title part[k], \
     in.".tsv" skip 1 using ((sum [c=3:9] column(c))/unit):(-$0 - 0.12):2 \
         with labels left offset 0.8,0 noenhanced textcolor rgb plain notitle, \
     in.".tsv" skip 1 using (0):(-$0 + 0.29):1 \
         with labels left offset 0.3,0 noenhanced font small \
         textcolor rgb strong notitle
