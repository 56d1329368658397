# pareto.gp - draws memory against driver time, one point for each policy, and
#             the front.
# in:  PREFIX.tsv  policy, memory, seconds, kind, bound, subjects, trace,
#                  named: one row for each policy, by seconds; with one subject,
#                  memory is peak reserved in bytes and bound its lower bound;
#                  with several, memory is the mean of peak reserved over lower
#                  bound and bound is 0; kind: front, beaten, failed (an OOM, or not
#                  on every trace), offline (it knows the future); named: 1 if
#                  there is room for the name
#      PREFIX.note.tsv  limited (1: the figure leaves something out), shown,
#                       rule: the caption
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='pareto'; out='pareto.svg'" pareto.gp
load ARG0[1:strlen(ARG0) - strlen("pareto.gp")]."canvas.gp"
eval read_note

stats in.".tsv" skip 1 using 0 nooutput
n = int(STATS_records)
array name[n]; array memory[n]; array seconds[n]; array kind[n]
array named[n]
trace = ""; bound = 0.0; subjects = 1
do for [i=1:n] {
    stats in.".tsv" skip 1 every ::i-1::i-1 using (text = strcol(1), \
        what = strcol(4), bound = $5, subjects = int($6), trace = strcol(7), \
        has_name = $8, s = $3, $2) nooutput
    name[i] = text
    named[i] = int(has_name)
    memory[i] = STATS_max
    seconds[i] = s
    kind[i] = what
}
low_y = memory[1]; high_y = memory[1]; low_x = seconds[1]; high_x = seconds[1]
do for [i=1:n] {
    low_y = memory[i] < low_y ? memory[i] : low_y
    high_y = memory[i] > high_y ? memory[i] : high_y
    low_x = seconds[i] < low_x ? seconds[i] : low_x
    high_x = seconds[i] > high_x ? seconds[i] : high_x
}
# No policy can be below the bound.
floor_y = subjects > 1 ? 1.0 : bound
low_y = floor_y > 0 && floor_y < low_y ? floor_y : low_y
unit = subjects > 1 ? 1.0 : high_y < 2**30 ? 2.0**20 : 2.0**30
log_x = low_x > 0 && high_x > 20*low_x
log_y = low_y > 0 && high_y > 2.5*low_y
# Positions along an axis: logarithms if the axis is logarithmic.
to_x(v) = log_x ? log10(v) : v
to_y(v) = log_y ? log10(v) : v
from_x = to_x(low_x); span_x = to_x(high_x) - from_x
from_y = to_y(low_y); span_y = to_y(high_y) - from_y
span_x = span_x > 0 ? span_x : (log_x ? 1.0 : (high_x > 0 ? high_x : 1.0))
span_y = span_y > 0 ? span_y : (log_y ? 1.0 : (high_y > 0 ? high_y : 1.0))
from_x = from_x - 0.06*span_x; span_x = 1.12*span_x
from_y = from_y - 0.09*span_y; span_y = 1.17*span_y

wide = 1000
left = 100.0; right = 24.0; head = 84.0; foot = 80.0 + 40*noted
high = int(670 + 40*noted)
eval open_canvas
size = is_vector || suffix eq "pdf" ? 0.8 : 1.5

best = ink_main
beaten = ink_grey
lost = ink_failing
offline = line_ink[3]
ink(what) = what eq "front" ? strong : what eq "failed" ? lost : \
    what eq "offline" ? offline : soft

set lmargin at screen left/wide
set rmargin at screen 1 - right/wide
set tmargin at screen 1 - head/high
set bmargin at screen foot/high
set border 3 linecolor rgb soft
set tics nomirror out textcolor rgb plain
set grid linecolor rgb grid_ink linetype 1 linewidth 1
set xrange [from_x:from_x + span_x]
set yrange [from_y:from_y + span_y]

# Ticks on a logarithmic axis, as texts without an exponent.
duration(v) = v < 0.9995e-3 ? sprintf("%g µs", 1e6*v) : \
    v < 0.9995 ? sprintf("%g ms", 1e3*v) : sprintf("%g s", v)
array steps[3] = [1.0, 2.0, 5.0]
if (log_x) {
    set xtics ()
    do for [k=floor(from_x):ceil(from_x + span_x)] {
        do for [m=1:3] {
            if (m == 1 || span_x < 2.2) {
                set xtics add (duration(steps[m]*10.0**k) \
                               k + log10(steps[m]))
            }
        }
    }
}
array parts[9] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0]
if (log_y) {
    set ytics ()
    do for [k=-3:5] {
        do for [m=1:9] {
            v = parts[m]*10.0**k
            if (span_y < 0.7 || m == 1 || m == 3 || m == 4 || m == 6 || \
                m >= 8) {
                set ytics add (sprintf("%g", v) log10(v*unit))
            }
        }
    }
}

# -- labels: each beside its point, at a place that is free -------------------
wide_x = wide - left - right
high_y = high - head - foot
array px[n]; array py[n]
# The last box is that of the label "lower bound".
array l[n+1]; array r[n+1]; array b[n+1]; array t[n+1]
do for [i=1:n] {
    px[i] = left + (to_x(seconds[i]) - from_x)/span_x*wide_x
    py[i] = foot + (to_y(memory[i]) - from_y)/span_y*high_y
    l[i] = 1e9; r[i] = -1e9; b[i] = 1e9; t[i] = -1e9
}
bound_y = floor_y > 0 ? foot + (to_y(floor_y) - from_y)/span_y*high_y : -99
l[n+1] = wide - right - letter*12; r[n+1] = wide - right
t[n+1] = bound_y; b[n+1] = bound_y - 18
# The front in pixels: right from the previous point, then down to this point.
array before[n]
last = 0
do for [i=1:n] {
    before[i] = kind[i] eq "front" ? last : 0
    last = kind[i] eq "front" ? i : last
}
crosses(i, x0, x1, y0, y1) = before[i] && x0 < px[i] && \
    ((x1 > px[before[i]] && y0 < py[before[i]] && y1 > py[before[i]]) || \
     (x1 > px[i] && y0 < py[before[i]] && y1 > py[i]))
meets(x0, x1, y0, y1) = (sum [j=1:n] crosses(j, x0, x1, y0, y1)) +  \
    (sum [j=1:n] (px[j] + 7 > x0 && px[j] - 7 < x1 && \
                  py[j] + 7 > y0 && py[j] - 7 < y1)) + \
    (sum [j=1:n+1] (l[j] < x1 && r[j] > x0 && b[j] < y1 && t[j] > y0))
inside(x0, x1, y0, y1) = x0 > left + 2 && x1 < wide - 6 && \
    y0 > foot + 2 && y1 < high - head + 14 && \
    (y0 > bound_y + 1 || y1 < bound_y - 1)
# Eight sides of a point. Points of the front try the sides below and left
# first, because no other point is there.
array side_x[8] = [1, -1, 1, 1, -1, -1, 0, 0]
array side_y[8] = [0, 0, 1, -1, 1, -1, 1, -1]
array front_x[8] = [-1, -1, 0, 1, 1, 1, -1, 0]
array front_y[8] = [-1, 0, -1, 1, 0, -1, 1, 1]
tall = 15.0
do for [pass=0:1] {
    do for [i=1:n] {
        if (named[i] && (kind[i] eq "front") == 1 - pass) {
            width = letter*strlen(name[i])
            placed = 0
            ring = 0
            while (!placed && ring < 40) {
                side = 1
                while (!placed && side <= 8) {
                    sx = pass ? side_x[side] : front_x[side]
                    sy = pass ? side_y[side] : front_y[side]
                    cx = px[i] + sx*(9.0 + (sy == 0 ? 11.0 : 8.0)*ring)
                    cy = py[i] + sy*((sx == 0 ? 15.0 : 9.0) + 8.0*ring)
                    x0 = sx > 0 ? cx : sx < 0 ? cx - width : cx - width/2
                    y0 = cy - tall/2
                    if (inside(x0, x0 + width, y0, y0 + tall) && \
                        meets(x0, x0 + width, y0, y0 + tall) == 0) {
                        l[i] = x0; r[i] = x0 + width
                        b[i] = y0; t[i] = y0 + tall
                        placed = 1
                                                if (sx > 0) {
                            set label 100+i name[i] noenhanced left front \
                                at screen cx/wide, screen cy/high \
                                textcolor rgb ink(kind[i])
                        } else { if (sx < 0) {
                            set label 100+i name[i] noenhanced right front \
                                at screen cx/wide, screen cy/high \
                                textcolor rgb ink(kind[i])
                        } else {
                            set label 100+i name[i] noenhanced center front \
                                at screen cx/wide, screen cy/high \
                                textcolor rgb ink(kind[i])
                        } }
                        if (ring > 1) {
                            set arrow 100+i nohead back \
                                from screen px[i]/wide, screen py[i]/high \
                                to screen (cx - 3*sx)/wide, \
                                screen (cy - 5*sy)/high \
                                linecolor rgb grid_ink linewidth 1
                        }
                    }
                    side = side + 1
                }
                ring = ring + 1
            }
        }
    }
}

title = (subjects > 1 ? "Memory and its price over ".subjects." traces" : \
    "Memory and its price: ".trace)
eval put_title
set label 2 "Lower left is better. No policy beats those on the line; grey ones " \
    ."are beaten in both measures." \
    at screen 24.0/wide, screen 1 - 48.0/high left \
    textcolor rgb soft
set xlabel "modelled time in driver calls".(log_x ? "" : ", s") \
    textcolor rgb plain
set ylabel (subjects > 1 ? \
    "peak reserved over the lower bound, geometric mean" : \
    "peak reserved, ".(unit > 2**20 ? "GiB" : "MiB")) textcolor rgb plain
if (!log_y) { set format y "%g" }
unset key

# The front: steps from the top left to the bottom right.
at_x(i) = to_x(seconds[i])
at_y(v) = log_y ? log10(v) : v/unit
if (!log_y) { set yrange [from_y/unit:(from_y + span_y)/unit] }
do for [i=1:n] {
    k = before[i]
    if (k) {
        set arrow 2*i+300 nohead back from at_x(k), at_y(memory[k]) \
            to at_x(i), at_y(memory[k]) linecolor rgb best linewidth 2
        set arrow 2*i+301 nohead back from at_x(i), at_y(memory[k]) \
            to at_x(i), at_y(memory[i]) linecolor rgb best linewidth 2
    } else { if (kind[i] eq "front") {
        set arrow 10 nohead back from at_x(i), graph 1 \
            to at_x(i), first at_y(memory[i]) \
            linecolor rgb best linewidth 1.5 dashtype 3
    } }
}
if (last) {
    set arrow 11 nohead back from at_x(last), first at_y(memory[last]) \
        to graph 1, first at_y(memory[last]) \
        linecolor rgb best linewidth 1.5 dashtype 3
}
if (floor_y > 0) {
    set arrow 3 nohead back from graph 0, first at_y(floor_y) \
        to graph 1, first at_y(floor_y) linecolor rgb plain dashtype 2
    set label 3 "lower bound" right at graph 1, first at_y(floor_y) \
        offset -0.3,-0.6 textcolor rgb soft
}
plot in.".tsv" skip 1 using (strcol(4) eq "beaten" ? to_x($3) : NaN):(at_y($2)) \
         with points pointtype 7 pointsize size linecolor rgb beaten \
         title "beaten in both measures", \
     "" skip 1 using (strcol(4) eq "failed" ? to_x($3) : NaN):(at_y($2)) \
         with points pointtype 11 pointsize size linecolor rgb lost \
         title "a request failed", \
     "" skip 1 using (strcol(4) eq "offline" ? to_x($3) : NaN):(at_y($2)) \
         with points pointtype 12 pointsize 1.2*size linewidth 2 \
         linecolor rgb offline title "knows the future: a bound", \
     "" skip 1 using (strcol(4) eq "front" ? to_x($3) : NaN):(at_y($2)) \
         with points pointtype 7 pointsize 1.15*size linecolor rgb best \
         title "the best"
