# timeline.gp - draws memory over the events of each run, one panel for each
#               run; panels of one trace share a scale, unless one run reserves
#               much more than the others
# in:  PREFIX.tsv       event, allocated, reserved (bytes): corners of steps;
#                       one block for each run, separated by two empty lines
#      PREFIX.ooms.tsv  run (from 0), event, reserved: requests that failed
#      PREFIX.runs.tsv  label, trace, capacity, events, name, note, peak,
#                       first_oom: one row for each run; capacity in bytes, -1:
#                       unlimited; name is that of the run's trace, empty if all
#                       runs are of one trace; first_oom is an event, -1: none
#      PREFIX.note.tsv  limited (1: the figure leaves something out), shown,
#                       rule: the caption
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='timeline'; out='timeline.svg'" timeline.gp
load ARG0[1:strlen(ARG0) - strlen("timeline.gp")]."canvas.gp"
eval read_note

label = ""; trace = ""; name = ""; text = ""; capacity = -1.0; events = 0.0
first = -1.0
stats in.".runs.tsv" skip 1 using 0 nooutput
n = int(STATS_records)
array labels[n]; array names[n]; array texts[n]
array capacities[n]; array lasts[n]; array peaks[n]; array deaths[n]
most = 1.0
do for [i=1:n] {
    stats in.".runs.tsv" skip 1 every ::i-1::i-1 using \
        (label = strcol(1), trace = strcol(2), capacity = $3, events = $4, \
         name = strcol(5), text = strcol(6), first = $8, $7) nooutput
    labels[i] = label
    names[i] = name
    texts[i] = text
    capacities[i] = capacity
    lasts[i] = events
    deaths[i] = first
    peaks[i] = STATS_max
    most = peaks[i] > most ? peaks[i] : most
}
unit = most < 2**30 ? 2.0**20 : 2.0**30
# The top of a panel: the highest peak of its trace that is at most four times
# its own, so that one run that reserves very much does not flatten the others;
# or a capacity a little above that.
array tops[n]
differ = 0
do for [i=1:n] {
    top = 1.0
    do for [k=1:n] {
        if (names[k] eq names[i] && peaks[k] > top && \
            peaks[k] <= 4*peaks[i]) { top = peaks[k] }
    }
    near = top
    do for [k=1:n] {
        if (names[k] eq names[i] && capacities[k] > near && \
            capacities[k] < 1.5*top) { near = capacities[k] }
    }
    tops[i] = 1.12*near/unit
    differ = differ || lasts[i] != lasts[1]
}
# A round distance of labels on an axis up to `top`, `count` or fewer.
tens(x) = 10.0**floor(log10(x))
round_up(x) = x <= tens(x) ? tens(x) : x <= 2*tens(x) ? 2*tens(x) : \
    x <= 5*tens(x) ? 5*tens(x) : 10*tens(x)
distance(top, count) = round_up(1.0*top/count)

# Few panels are below each other; many make a table.
columns = n <= 4 ? 1 : n <= 16 ? 2 : 3
rows = int(ceil(n/real(columns)))
wide = columns == 1 ? 1000 : columns == 2 ? 1240 : 1440
titles = names[1] eq "" ? 30.0 : 48.0
tall = n == 1 ? 420.0 : n < 4 ? 250.0 : columns < 3 ? 190.0 : \
    rows <= 12 ? 150.0 : 108.0
head = 112.0
foot = 70.0 + 40*noted
left = 92.0; right = 24.0; gap = 64.0
# The size of the text above a panel.
small = columns < 3 ? ",11" : ",10"
# Where the runs have different lengths, each panel has labels of its own.
below = differ && columns < 3 ? 38.0 : 8.0
tall = tall + below - 8
high = int(head + rows*tall + foot)
eval open_canvas
panel = (wide - left - right - gap*(columns - 1))/columns
tall = (high - head - foot)/rows
marks = is_vector ? 0.8 : 1.3
reserved = ink_main
allocated = ink_second
waste = ink_amber
failed = ink_failing

set multiplot
set border 3 linecolor rgb soft
set tics nomirror out textcolor rgb plain
set grid ytics linecolor rgb grid_ink linetype 1 linewidth 1
set grid front
set style fill solid 1.0 noborder
set format x ""

# The legend and the caption are drawn with the first panel.
title = "Memory over the events: ".trace
eval put_title
do for [i=1:n] {
    row = (i - 1)/columns
    column = (i - 1)%columns
    x = left + column*(panel + gap)
    y = high - head - row*tall - titles + 14
    set lmargin at screen x/wide
    set rmargin at screen (x + panel)/wide
    set tmargin at screen y/high
    set bmargin at screen (high - head - (row + 1)*tall + below)/high
    # Above a panel: its trace, its policy and capacity, its peak.
    set label 2 names[i] noenhanced at screen x/wide, screen (y + 28)/high \
        left font small textcolor rgb strong
    set label 3 labels[i] noenhanced at screen x/wide, screen (y + 11)/high \
        left font small textcolor rgb strong
    set label 4 texts[i] noenhanced at screen (x + panel)/wide, \
        screen (y + (names[i] eq "" ? 11 : 28))/high right font small \
        textcolor rgb (deaths[i] < 0 ? soft : failed)
    set yrange [0:tops[i]]
    set ytics distance(tops[i], (tall - titles - below)/24)
    set format y "%g"
    # Without labels of its own the axis has no tics, which the text of the
    # panel below would meet.
    set xtics scale (i > n - columns || below > 8 ? 1 : 0)
    set ylabel (column == 0 ? (unit > 2**20 ? "GiB" : "MiB") : "") \
        offset 0.6,0 textcolor rgb plain
    set xrange [0:lasts[i] > 0 ? lasts[i] : 1]
    set format x ""
    set xlabel ""
    if (i > n - columns || below > 8) {
        # Labels with enough digits that no two are equal.
        lead = lasts[i]/1000.0**floor(log10(lasts[i] + 1)/3)
        set format x (lasts[i] < 1e4 ? "%g" : lead < 5 ? "%.1s%c" : "%.0s%c")
    }
    if (i > n - columns) { set xlabel "event" textcolor rgb plain }
    if (i == 1) {
        set key at screen 1 - right/wide, screen 1 - 44.0/high right top \
            horizontal maxrows 1 samplen 2 width -2 textcolor rgb plain
    } else {
        unset key
    }
    unset arrow
    if (capacities[i] > 0 && capacities[i]/unit < tops[i]) {
        set arrow 1 from graph 0, first capacities[i]/unit \
            to graph 1, first capacities[i]/unit nohead \
            dashtype 2 linewidth 1.5 linecolor rgb plain front
    }
    if (deaths[i] >= 0) {
        set arrow 2 from first deaths[i], graph 0 \
            to first deaths[i], graph 1 nohead \
            dashtype 3 linewidth 2 linecolor rgb failed front
    }
    set datafile commentschars "#"
    plot in.".tsv" index i-1 using 1:($3/unit) with filledcurves y=0 \
             linecolor rgb waste title "not allocated", \
         "" index i-1 using 1:($2/unit) with filledcurves y=0 \
             linecolor rgb allocated title "allocated", \
         "" index i-1 using 1:($3/unit) with lines \
             linecolor rgb reserved linewidth 2 title "reserved", \
         NaN with lines dashtype 2 linewidth 1.5 linecolor rgb plain \
             title "capacity", \
         in.".ooms.tsv" skip 1 using ($1 == i-1 ? $2 : NaN):($3/unit) \
             with points pointtype 11 pointsize marks linecolor rgb failed \
             title "OOM", \
         NaN with lines dashtype 3 linewidth 2 linecolor rgb failed \
             title "first OOM"
    unset label 1
    unset label 901
    unset label 902
}
unset multiplot
