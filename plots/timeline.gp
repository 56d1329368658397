# timeline.gp - draws memory over the events of each run, one panel for each
#               run.
# in:  PREFIX.tsv       event, allocated, reserved (bytes): corners of steps;
#                       one block for each run, separated by two empty lines
#      PREFIX.ooms.tsv  run (from 0), event, reserved: requests that failed
#      PREFIX.runs.tsv  label, trace, capacity, events: one row for each run;
#                       capacity in bytes, -1: unlimited
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='timeline'; out='timeline.svg'" timeline.gp
set datafile separator tab
set encoding utf8

label = ""; trace = ""; most = 0.0; capacity = -1.0; events = 0.0
stats in.".runs.tsv" skip 1 using 0 nooutput
n = int(STATS_records)
array labels[n]
array capacities[n]
array lasts[n]
do for [i=1:n] {
    stats in.".runs.tsv" skip 1 every ::i-1::i-1 using \
        (label = strcol(1), trace = strcol(2), events = $4, $3) nooutput
    labels[i] = label
    capacities[i] = STATS_max
    lasts[i] = events
}
stats in.".tsv" using 3 nooutput
most = STATS_max > 0 ? STATS_max : 1.0
unit = most < 2**30 ? 2.0**20 : 2.0**30
do for [i=1:n] {
    if (capacities[i] > most && capacities[i] < 1.5*most) { most = capacities[i] }
}
top = 1.12*most/unit

wide = 1000
head = 84
foot = 70
tall = n == 1 ? 420 : n < 4 ? 250 : 190
high = head + n*tall + foot
marks = 1.3
suffix = out[strlen(out)-2:]
if (suffix eq "png") {
    set terminal pngcairo size wide,high font "Helvetica,13" background "white"
} else { if (suffix eq "pdf") {
    set terminal pdfcairo size wide/100.0,high/100.0 font "Helvetica,13" \
        background "white"
} else {
    marks = 0.8
    set terminal svg size wide,high font "Helvetica,14" background "white"
} }
set output out

# Okabe and Ito's palette, which the colour-blind can tell apart.
reserved = "#0072B2"
allocated = "#56B4E9"
waste = "#F0C36B"
failed = "#D55E00"

set multiplot
set border 3 linecolor "#555555"
set tics nomirror out textcolor "#333333"
set grid ytics linecolor "#dddddd" linetype 1 linewidth 1
set grid front
set style fill solid 1.0 noborder
set lmargin at screen 0.085
set rmargin at screen 0.975
set yrange [0:top]
set format x ""
set x2range [0:1]
set y2range [0:1]

# The legend is drawn with the first panel, above it.
set label 1 trace noenhanced at screen 0.085, screen 1 - 24.0/high left \
    font ",18" textcolor "#111111"
do for [i=1:n] {
    set tmargin at screen 1 - (head + (i-1)*tall + 34.0)/high
    set bmargin at screen 1 - (head + i*tall - 8.0)/high
    set label 2 labels[i] noenhanced at graph 0, graph 1 offset 0,0.7 left \
        textcolor "#111111"
    set ylabel (unit > 2**20 ? "GiB" : "MiB") textcolor "#333333"
    set xrange [0:lasts[i] > 0 ? lasts[i] : 1]
    if (i == n) {
        # Labels with enough digits that no two are equal.
        lead = lasts[i]/1000.0**floor(log10(lasts[i] + 1)/3)
        set format x (lasts[i] < 1e4 ? "%g" : lead < 5 ? "%.1s%c" : "%.0s%c")
        set xlabel "event" textcolor "#333333"
    }
    if (i == 1) {
        set key at screen 0.975, screen 1 - 54.0/high right top horizontal \
            maxrows 1 samplen 2 width -2 textcolor "#333333"
    } else {
        unset key
    }
    unset arrow
    if (capacities[i] > 0 && capacities[i]/unit < top) {
        set arrow 1 from graph 0, first capacities[i]/unit \
            to graph 1, first capacities[i]/unit nohead \
            dashtype 2 linewidth 1.5 linecolor "#333333" front
    }
    plot in.".tsv" index i-1 using 1:($3/unit) with filledcurves y=0 \
             linecolor rgb waste title "not allocated", \
         "" index i-1 using 1:($2/unit) with filledcurves y=0 \
             linecolor rgb allocated title "allocated", \
         "" index i-1 using 1:($3/unit) with lines \
             linecolor rgb reserved linewidth 2 title "reserved", \
         NaN with lines dashtype 2 linewidth 1.5 linecolor "#333333" \
             title "capacity", \
         in.".ooms.tsv" skip 1 using ($1 == i-1 ? $2 : NaN):($3/unit) \
             with points pointtype 11 pointsize marks linecolor rgb failed \
             title "OOM"
    unset label 1
}
unset multiplot
