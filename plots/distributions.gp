# distributions.gp - draws the sizes and lifetimes of a trace's requests.
# in:  PREFIX.tsv  kind (size, lifetime), power, requests, bytes,
# request_share,
#                  byte_share, trace: one row for each bin, from 2^power
#                  (bytes, events) to twice that; empty bins are left out
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='distributions'; out='distributions.svg'" \
#            distributions.gp
load ARG0[1:strlen(ARG0) - strlen("distributions.gp")]."canvas.gp"

trace = ""; requests = 0.0
array kind[2] = ["size", "lifetime"]
array low[2]; array last[2]
most = 0
do for [k=1:2] {
    stats in.".tsv" skip 1 using \
        (trace = strcol(7), strcol(1) eq kind[k] ? $2 : NaN) nooutput
    low[k] = STATS_min
    last[k] = STATS_max
    stats in.".tsv" skip 1 using \
        (strcol(1) eq kind[k] ? ($5 > $6 ? $5 : $6) : NaN) nooutput
    most = STATS_max > most ? STATS_max : most
    stats in.".tsv" skip 1 using (strcol(1) eq kind[k] ? $3 : NaN) nooutput
    requests = STATS_sum
}

wide = 1000
tall = 250.0
head = 84.0
foot = 84.0
gap = 76.0
high = int(head + 2*tall + gap + foot)
eval open_canvas
tall = (high - head - gap - foot)/2

by_request = ink_main
by_byte = ink_amber

# The name of a power of two, of bytes or of events.
bytes(p) = p < 10 ? sprintf("%d B", 2**p) : \
    p < 20 ? sprintf("%d KiB", 2**(p-10)) : \
    p < 30 ? sprintf("%d MiB", 2**(p-20)) : sprintf("%d GiB", 2**(p-30))
events(p) = p < 10 ? sprintf("%d", 2**p) : \
    p < 20 ? sprintf("%dk", 2**(p-10)) : sprintf("%dM", 2**(p-20))

set multiplot
set lmargin at screen 84.0/wide
set rmargin at screen 1 - 24.0/wide
set border 3 linecolor rgb soft
set tics nomirror out textcolor rgb plain
set grid ytics linecolor rgb grid_ink linetype 1 linewidth 1
set style fill solid 1.0 noborder
set ylabel "share, %" textcolor rgb plain
set yrange [0:108*most]
title = "Sizes and lifetimes of the requests: ".trace
eval put_title
set label 2 sprintf("%d requests", requests) \
    at screen 24.0/wide, screen 1 - 50.0/high left textcolor rgb soft
do for [k=1:2] {
    set tmargin at screen 1 - (head + (k-1)*(tall + gap))/high
    set bmargin at screen 1 - (head + k*tall + (k-1)*gap)/high
    set xrange [low[k] - 0.6:last[k] + 0.6]
    set xtics ()
    step = int(ceil((last[k] - low[k] + 1)/12.0))
    do for [p=int(low[k]):int(last[k])+1:step] {
        set xtics add ((k == 1 ? bytes(p) : events(p)) p - 0.5)
    }
    set xlabel (k == 1 ? "size of the request; each bar is one power of two" : \
        "lifetime in events; each bar is one power of two") textcolor rgb plain
    if (k == 1) {
        set key at screen 1 - 24.0/wide, screen 1 - 44.0/high right top \
            horizontal maxrows 1 samplen 2 width -1 textcolor rgb plain
    } else {
        unset key
        unset label 1
        unset label 2
    }
    plot in.".tsv" skip 1 using (strcol(1) eq kind[k] ? $2 - 0.2 : NaN): \
             (100*$5):(0.38) with boxes linecolor rgb by_request \
             title "of all requests", \
         "" skip 1 using (strcol(1) eq kind[k] ? $2 + 0.2 : NaN): \
             (100*$6):(0.38) with boxes linecolor rgb by_byte \
             title "of all bytes"
}
unset multiplot
