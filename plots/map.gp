# map.gp - draws the addresses of blocks over events.
# in:  PREFIX.tsv       trace, policy, color, events, bytes, peak, ooms,
#                       first_oom, recorded_oom (events; -1: none): one row
#      PREFIX.ooms.tsv  event of each OOM
#      PREFIX.cells     a grid of numbers separated by spaces, one line for each
#                       row, from the lowest address: -2 not reserved, -1
#                       reserved and free, else the block's lifetime in events
#                       or size in bytes (as a power of two)
#      PREFIX.pools.tsv heights in bytes between which blocks of one private
#                       pool lie, and its name
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='map'; out='map.svg'" map.gp
load ARG0[1:strlen(ARG0) - strlen("map.gp")]."canvas.gp"

trace = ""; policy = ""; color = ""; events = 0.0; bytes = 0.0; ooms = 0.0
dead = -1; died = -1
stats in.".tsv" skip 1 using (trace = strcol(1), policy = strcol(2), \
    color = strcol(3), events = $4, bytes = $5, ooms = $7, \
    dead = $8, died = $9, $6) nooutput
peak = STATS_max
set datafile separator whitespace
stats in.".cells" matrix using 3 nooutput
most = STATS_max
wide_n = STATS_size_x
high_n = STATS_size_y
unit = bytes < 2**30 ? 2.0**20 : 2.0**30

# Each cell of the grid is one pixel.
left = 100.0
right = 56.0
head = 132.0
foot = 70.0
wide = int(left + wide_n + right)
high = int(head + high_n + foot)
eval open_canvas

set lmargin at screen left/wide
set rmargin at screen 1 - right/wide
set tmargin at screen 1 - head/high
set bmargin at screen foot/high
set border 3 linecolor rgb soft
set tics nomirror out textcolor rgb plain
set xrange [0:events]
set yrange [0:bytes/unit]
# Labels with enough digits that no two are equal.
lead = events/1000.0**floor(log10(events + 1)/3)
set format x (events < 1e4 ? "%g" : lead < 5 ? "%.1s%c" : "%.0s%c")
set xlabel "event" textcolor rgb plain
set ylabel "addresses ever reserved, ".(unit > 2**20 ? "GiB" : "MiB") \
    textcolor rgb plain
title = "Memory map: ".trace.", ".policy
eval put_title
set label 2 sprintf("peak reserved %.2f %s", peak/unit, \
    unit > 2**20 ? "GiB" : "MiB").(ooms > 0 ? sprintf(", %d OOM%s", ooms, \
    ooms > 1 ? "s" : "") : "").". Grey: reserved and free; blank: " \
    ."not reserved." at screen 24.0/wide, screen 1 - 48.0/high left \
    textcolor rgb soft

# A darker block lives
# longer or is larger.
low = color eq "size" ? 9 : 0
most = most > low + 1 ? most : low + 1
span = most - low
set palette defined (-2.5 paper, -1.5 paper, -1.5 grid_ink, \
    -0.5 grid_ink, -0.5 scale[1], low scale[1], \
    low + span/4 scale[2], low + span/2 scale[3], \
    low + 3*span/4 scale[4], most scale[5]) maxcolors 1024
set cbrange [-2.5:most]

# The key: a strip of boxes with their values.
key_x = 24.0
strip = 24
amount(p) = color eq "size" ? (p < 10 ? sprintf("%d B", 2**p) : \
    p < 20 ? sprintf("%.0f KiB", 2**(p-10)) : \
    p < 30 ? sprintf("%.0f MiB", 2**(p-20)) : \
    sprintf("%.1f GiB", 2**(p-30))) : p < 10 ? sprintf("%.0f", 2**p) : gprintf("%.1s%c", 2**p)
y = high - 76.0
set label 10 "blocks by ".color.(color eq "lifetime" ? ", events:" : ":") \
    at screen key_x/wide, screen y/high left textcolor rgb plain
do for [i=0:4] {
    x = key_x + 260 + i*125
    set object 10+i rectangle from screen x/wide, screen (y-7)/high \
        to screen (x+20)/wide, screen (y+7)/high \
        fillcolor rgb scale[i+1] fillstyle solid 1.0 noborder
    set label 11+i amount(low + span*i/4.0) \
        at screen (x+28)/wide, screen y/high left textcolor rgb plain
}
# The points of death: of the replay and of the recorded job.
if (dead >= 0) {
    set arrow 1 nohead front from dead, graph 0 to dead, graph 1 \
        dashtype 3 linewidth 2 linecolor rgb ink_failing
}
if (died >= 0) {
    set arrow 2 nohead front from died, graph 0 to died, graph 1 \
        dashtype 2 linewidth 2 linecolor rgb ink_failing
}
marks = (dead >= 0 ? "Triangles: requests that failed (OOM); dotted " \
    ."line: the first of them. " : "").(died >= 0 ? \
    "Dashed line: the recorded job ran out of memory." : "")
set label 3 marks \
    at screen key_x/wide, screen (high - 102.0)/high left font ",11" \
    textcolor rgb ink_failing
unset key
unset colorbox
plot in.".cells" matrix using (($1 + 0.5)*events/wide_n): \
         (($2 + 0.5)*bytes/unit/high_n):3 with image notitle, \
     in.".pools.tsv" skip 1 using (events*0.997):($1/unit): \
         (0):(($2 - $1)/unit) with vectors nohead linewidth 5 \
         linecolor rgb ink_failing title "private pool", \
     in.".pools.tsv" skip 1 using (events*0.99):(($1 + $2)/2.0/unit): \
         (($2 - $1)/bytes*high_n < 10 ? "" : \
         stringcolumn(3)." ".stringcolumn(4)) \
         with labels right font ",11" textcolor rgb ink_failing notitle, \
     in.".ooms.tsv" skip 1 using ($1 >= 0 ? $1 : NaN):(bytes/unit) \
         with points pointtype 11 pointsize 1.3*zoom linecolor rgb ink_failing \
         title "a request failed"
