# costs.gp - draws the time of driver calls over their size, and the cost
# model. in:  PREFIX.tsv  call, bytes, ns, model_ns, about: typical times; one
# block
#                  for each call, separated by two empty lines
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='costs'; out='costs.svg'" costs.gp
set datafile separator tab
set encoding utf8

about = ""
stats in.".tsv" skip 1 using (about = strcol(5), $2) nooutput
n = int(STATS_blocks)
columns = 4
rows = int(ceil(n/real(columns)))
wide = 1180
high = 86 + 210*rows
suffix = out[strlen(out)-2:]
if (suffix eq "png") {
    set terminal pngcairo size wide,high font "Helvetica,11" background "white"
} else { if (suffix eq "pdf") {
    set terminal pdfcairo size wide/100.0,high/100.0 font "Helvetica,11" \
        background "white"
} else {
    set terminal svg size wide,high font "Helvetica,12" background "white"
} }
set output out

# Okabe and Ito's palette, which the colour-blind can tell apart.
measured = "#0072B2"
model = "#D55E00"

set border 3 linecolor "#555555"
set tics nomirror out textcolor "#333333"
set grid linecolor "#e4e4e4" linetype 1 linewidth 1
set logscale xy
set format x ""
set xtics ("1 KiB" 2**10, "1 MiB" 2**20, "1 GiB" 2**30, "1 TiB" 2.0**40)
set format y "%.0s %cs"
set label 1 "Time of driver calls over their size" at screen 24.0/wide, \
    screen 1 - 24.0/high left font ",18" textcolor "#111111"
set label 2 about noenhanced at screen 24.0/wide, screen 1 - 46.0/high left \
    textcolor "#555555"
set label 3 "dots: measured; line: model, a fixed time + a time for each MiB" \
    at screen 1 - 24.0/wide, screen 1 - 24.0/high right textcolor "#555555"
unset key

set multiplot layout rows,columns margins screen 60.0/wide, screen 1 - 20.0/wide, \
    screen 40.0/high, screen 1 - 90.0/high \
    spacing screen 76.0/wide, screen 70.0/high
do for [i=0:n-1] {
    call = ""
    first = i == 0 ? 1 : 0
    set yrange [*:*]
    stats in.".tsv" index i skip first using (call = strcol(1), $3) nooutput
    low = STATS_min
    top = STATS_max
    set yrange [1e-9*low/2:1e-9*top*2]
    set title call noenhanced offset 0,-0.6 textcolor "#111111"
    plot in.".tsv" index i skip first using 2:(1e-9*$4) with lines \
             linecolor rgb model linewidth 2, \
         "" index i skip first using 2:(1e-9*$3) with points pointtype 7 \
             pointsize 0.6 linecolor rgb measured
    unset label 1
    unset label 2
    unset label 3
}
unset multiplot
