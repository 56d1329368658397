# compare.gp - draws peak reserved of each run as a bar, with a mark at peak
#              requested.
# in:  PREFIX.tsv  label, note, requested, reserved, ooms, trace: peaks in
#                  bytes; one row for each run, the first on top
#      PREFIX.note.tsv  limited (1: the figure leaves something out), shown,
#                       rule: the caption
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='compare'; out='compare.svg'" compare.gp
set datafile separator tab
set encoding utf8
# A name may begin with #.
set datafile commentschars ""

note = ""; rule = ""; noted = 0
stats in.".note.tsv" skip 1 using \
    (note = strcol(2), rule = strcol(3), noted = int($1), 0) nooutput

trace = ""
stats in.".tsv" skip 1 using (trace = strcol(6), $4) nooutput
n = int(STATS_records)
most = STATS_max > 0 ? STATS_max : 1.0
stats in.".tsv" skip 1 using (strlen(strcol(2))) nooutput
notes = STATS_max
stats in.".tsv" skip 1 using 3 nooutput
most = STATS_max > most ? STATS_max : most
unit = most < 2**30 ? 2.0**20 : 2.0**30

wide = 1000
step = n <= 24 ? 64.0 : 37.0
small = n <= 24 ? "" : ",11"
foot = 68.0 + 40*noted
high = int(88 + foot + step*n)
left = 24.0
suffix = out[strlen(out)-2:]
right = (suffix eq "svg" ? 8.4 : 9.8)*notes + 16
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

# Okabe and Ito's palette, which the colour-blind can tell apart.
fits = "#0072B2"
failed = "#D55E00"

set lmargin at screen left/wide
set rmargin at screen 1 - 20.0/wide
set tmargin at screen 1 - 74.0/high
set bmargin at screen foot/high
set border 2 linecolor "#555555"
set tics nomirror textcolor "#333333"
set grid xtics linecolor "#dddddd" linetype 1 linewidth 1
set style fill solid 1.0 noborder
# The space right of the longest bar is for its note.
set xrange [0:most/unit*(wide - left - 20)/(wide - left - 20 - right)]
set yrange [-n+0.4:0.6]
set xlabel "peak reserved, ".(unit > 2**20 ? "GiB" : "MiB") textcolor "#333333"
unset ytics
set label 1 trace noenhanced at screen left/wide, screen 1 - 24.0/high left \
    font ",18" textcolor "#111111"
set key at screen 1 - 20.0/wide, screen 1 - 44.0/high right top horizontal \
    maxrows 1 samplen 2 width -1 textcolor "#333333"

bottom(i) = -i - 0.34
top(i) = -i + 0.12
plot in.".tsv" skip 1 using ($5 == 0 ? 0.5*$4/unit : NaN):(-$0):(0.0): \
         ($4/unit):(bottom($0)):(top($0)) \
         with boxxyerror linecolor rgb fits title "peak reserved", \
     "" skip 1 using ($5 > 0 ? 0.5*$4/unit : NaN):(-$0):(0.0): \
         ($4/unit):(bottom($0)):(top($0)) \
         with boxxyerror linecolor rgb failed title "with an OOM", \
     "" skip 1 using ($3/unit):(bottom($0) - 0.05):(0):(0.56) \
         with vectors nohead linewidth 3 linecolor "#111111" \
         title "peak requested", \
     "" skip 1 using ($4 > $3 ? $4/unit : $3/unit):(-$0 - 0.11):2 \
         with labels left offset 0.8,0 noenhanced textcolor "#333333" notitle, \
     "" skip 1 using (0):(-$0 + 0.31):1 \
         with labels left offset 0.3,0 noenhanced font small textcolor "#111111" \
         notitle
