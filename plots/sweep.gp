# sweep.gp - draws peak reserved over the values of one parameter.
# in:  PREFIX.tsv         line, value, reserved, ooms, bound, label: one row for
#                         each run, with an empty line before and after a run
#                         with an OOM, which no line may join to another run;
#                         reserved is bytes and bound the lower bound,
#                         or reserved is the ratio of both and bound is 0; value
#                         is the index of a row of the other file
#      PREFIX.values.tsv  value, text, policy, parameter, trace
#      PREFIX.note.tsv  limited (1: the figure leaves something out), shown,
#                       rule: the caption
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='sweep'; out='sweep.svg'" sweep.gp
load ARG0[1:strlen(ARG0) - strlen("sweep.gp")]."canvas.gp"
eval read_note

policy = ""; parameter = ""; trace = ""
stats in.".values.tsv" skip 1 using \
    (policy = strcol(3), parameter = strcol(4), trace = strcol(5), $1) nooutput
ticks = int(STATS_max) + 1
stats in.".values.tsv" skip 1 using (strlen(strcol(2))) nooutput
widest = STATS_max
stats in.".tsv" skip 1 using 1 nooutput
lines = int(STATS_max) + 1
stats in.".tsv" skip 1 using 5 nooutput
bound = STATS_max
stats in.".tsv" skip 1 using 3 nooutput
low = bound > 0 && bound < STATS_min ? bound : STATS_min
most = STATS_max
unit = bound == 0 ? 1.0 : most < 2**30 ? 2.0**20 : 2.0**30
# The last point of each line, and its name beside it.
array name[lines]; array end_x[lines]; array end_y[lines]
longest = 0
do for [i=1:lines] {
    text = ""; x = 0.0; y = 0.0
    stats in.".tsv" skip 1 using \
        ($1 == i-1 ? (text = strcol(6), x = $2, y = $3) : NaN) nooutput
    name[i] = text
    end_x[i] = x
    end_y[i] = y/unit
    longest = strlen(name[i]) > longest ? strlen(name[i]) : longest
}
stats in.".tsv" skip 1 using 4 nooutput
ooms = STATS_max

wide = longest > 30 ? 1200 : 1000
left = 100.0
right = 56 + letter*longest
head = 84.0
# Long values are printed at an angle.
aslant = ticks*letter*(widest + 2) > wide - left - right
foot = (aslant ? 70.0 + 0.72*letter*widest : 78.0) + 40*noted
# Of many values, every second or third one has a label.
every_n = int(ceil(ticks*18.0/(wide - left - right)))
high = int(560 + foot)
high = high < head + foot + 19*lines ? int(head + foot + 19*lines) : high
eval open_canvas
size = (suffix eq "png" ? 1.4 : 0.8)*zoom

# A line has a
# colour, a shape of its points and a dash that no other line has together.
array shape[6] = [7, 5, 13, 6, 4, 12]
color_of(i) = line_ink[1 + (i-1)%6]
shape_of(i) = shape[1 + ((i-1)/6 + (i-1))%6]
dash_of(i) = 1 + ((i-1)/6)%5
failed = ink_failing

set lmargin at screen left/wide
set rmargin at screen 1 - right/wide
set tmargin at screen 1 - head/high
set bmargin at screen foot/high
set border 3 linecolor rgb soft
set tics nomirror out textcolor rgb plain
set grid ytics linecolor rgb grid_ink linetype 1 linewidth 1
span = (most - low)/unit
span = span > 0 ? span : most/unit
floor_y = low/unit - 0.12*span
ceil_y = most/unit + 0.1*span
set xrange [-0.3:ticks - 0.7]
set yrange [floor_y:ceil_y]
title = "Peak reserved over ".parameter." of ".policy. \
    (bound > 0 ? ": ".trace : "")
eval put_title
set label 2 "The axis does not begin at zero.". \
    (ooms > 0 ? " Triangles: runs with an OOM." : "") \
    at screen 24.0/wide, screen 1 - 50.0/high left textcolor rgb soft
set xlabel parameter noenhanced textcolor rgb plain
set ylabel (bound > 0 ? "peak reserved, ".(unit > 2**20 ? "GiB" : "MiB") : \
    "peak reserved over the lower bound") textcolor rgb plain
unset key
if (aslant) { set xtics rotate by 45 right }
if (bound > 0) {
    set arrow 3 nohead back from graph 0, first bound/unit \
        to graph 1, first bound/unit linecolor rgb plain dashtype 2
    set label 3 "lower bound" left at graph 0, first bound/unit \
        offset 0.5,-0.6 textcolor rgb soft
}

# Names at the right end, in the order of the lines' ends, without overlap.
gap = 18.0/(high - head - foot)*(ceil_y - floor_y)
array taken[lines]
do for [i=1:lines] { taken[i] = 0 }
next_y = floor_y
do for [k=1:lines] {
    low_i = 0
    do for [i=1:lines] {
        if (!taken[i] && (low_i == 0 || end_y[i] < end_y[low_i])) { low_i = i }
    }
    taken[low_i] = 1
    y = end_y[low_i] > next_y ? end_y[low_i] : next_y
    next_y = y + gap
    set label 10+low_i name[low_i] noenhanced left \
        at screen 1 - (right - 40)/wide, first y \
        textcolor rgb color_of(low_i) front
    # A sample of the line, in front of its name.
    set arrow 10+low_i nohead from screen 1 - (right - 8)/wide, first y \
        to screen 1 - (right - 34)/wide, first y linewidth 2 \
        dashtype dash_of(low_i) linecolor rgb color_of(low_i)
    set label 410+low_i "" at screen 1 - (right - 21)/wide, first y \
        point pointtype shape_of(low_i) pointsize size \
        linecolor rgb color_of(low_i) front
}

set datafile missing NaN
plot for [i=1:lines] in.".tsv" skip 1 using \
         ($1 != i-1 ? NaN : $4 == 0 ? $2 : -99):($3/unit) \
         with linespoints linewidth 2 dashtype dash_of(i) \
         pointtype shape_of(i) pointsize size linecolor rgb color_of(i) title name[i] \
         noenhanced, \
     in.".tsv" skip 1 using ($4 > 0 ? $2 : -99):($3/unit) \
         with points pointtype 9 pointsize 1.5*size linecolor rgb failed \
         title "a request failed", \
     for [i=1:lines] in.".tsv" skip 1 using \
         ($1 == i-1 && $4 > 0 ? $2 : -99):($3/unit) with points pointtype 8 \
         pointsize 1.9*size linewidth 2 linecolor rgb color_of(i) \
         title name[i] noenhanced, \
     in.".values.tsv" skip 1 using 1:(floor_y): \
         xtic(int($1)%every_n == 0 ? strcol(2) : "") with dots \
         linecolor rgb paper notitle
