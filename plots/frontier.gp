# frontier.gp - draws which policy survives which capacity, and where the other
#               policies fail.
# in:  PREFIX.tsv  row, column, policy, capacity, share, runs, survived, ooms,
#                  done, trace: one row for each policy and capacity; done is
#                  the share of the events before the first OOM, as the mean of
#                  the runs; share may be empty
#      PREFIX.note.tsv  limited (1: the figure leaves something out), shown,
#                       rule: the caption
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='frontier'; out='frontier.svg'" frontier.gp
set datafile separator tab
set encoding utf8
# A name may begin with #.
set datafile commentschars ""

note = ""; rule = ""; noted = 0
stats in.".note.tsv" skip 1 using \
    (note = strcol(2), rule = strcol(3), noted = int($1), 0) nooutput

trace = ""
stats in.".tsv" skip 1 using (trace = strcol(10), $1) nooutput
rows = int(STATS_max) + 1
stats in.".tsv" skip 1 using 2 nooutput
columns = int(STATS_max) + 1
stats in.".tsv" skip 1 using (strlen(strcol(3))) nooutput
names = STATS_max
stats in.".tsv" skip 1 using 6 nooutput
most = STATS_max
number(runs, survived, ooms, done) = runs == 0 ? "" : \
    most > 1 ? sprintf("%d of %d", survived, runs) : \
    ooms == 0 ? "fits" : \
    sprintf("%d %%, %d OOM%s", int(100*done), ooms, ooms > 1 ? "s" : "")
stats in.".tsv" skip 1 using (strlen(number($6, $7, $8, $9))) nooutput
texts = STATS_max
array capacity[columns]; array multiple[columns]
do for [i=1:columns] {
    c = ""; m = ""
    stats in.".tsv" skip 1 every ::i-1::i-1 \
        using (c = strcol(4), m = strcol(5), 1) nooutput
    capacity[i] = c
    multiple[i] = m
}
# With several traces a column is a capacity in bytes or a share such as 1.2x.
is_share = most > 1 && capacity[1][strlen(capacity[1]):] eq "x"

letter = 8.0
suffix = out[strlen(out)-2:]
if (suffix ne "svg") { letter = 10.0 }
# With one trace a tile shows where it failed and how often; with several
# traces, how many survive.
cell_w = letter*texts + 14 < 96 ? 96.0 : letter*texts + 14
cell_h = 28.0
left = letter*names + 28
head = 116.0
foot = 24.0 + 40*noted
wide = int(left + columns*cell_w + 24)
wide = wide < 760 ? 760 : wide
right = wide - left - columns*cell_w
high = int(head + rows*cell_h + foot)
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

set lmargin at screen left/wide
set rmargin at screen 1 - right/wide
set tmargin at screen 1 - head/high
set bmargin at screen foot/high
set xrange [-0.5:columns - 0.5]
set yrange [rows - 0.5:-0.5]
unset border
unset xtics
unset ytics
unset key
set label 1 (most > 1 ? "Survival by capacity: traces without an OOM" : \
    "Survival by capacity: ".trace) noenhanced \
    at screen 24.0/wide, screen 1 - 24.0/high left font ",18" \
    textcolor "#111111"
set label 2 (most > 1 ? (is_share ? "Capacity relative to each trace's peak requested." : \
    "Capacity of the device.") : \
    "Failed runs: share of the events before the first OOM, number of " \
    ."OOMs.") at screen 24.0/wide, screen 1 - 50.0/high left \
    textcolor "#555555"
do for [i=1:columns] {
    set label 10+2*i capacity[i] center at first i-1, \
        screen 1 - (head - (multiple[i] eq "" ? 14 : 32))/high \
        textcolor "#111111"
    set label 11+2*i multiple[i] center at first i-1, \
        screen 1 - (head - 13)/high textcolor "#555555"
}

# Okabe and Ito's palette, which the colour-blind can tell apart. A later
# failure is paler.
fits = 0x0072B2
pale(done) = (int(0xD5 + (0xF8 - 0xD5)*done) << 16) + \
    (int(0x5E + (0xE3 - 0x5E)*done) << 8) + int(0x00 + 0xD0*done)
fill(runs, survived, done) = survived == runs ? fits : \
    most > 1 ? pale(survived/runs) : pale(done)
dark(runs, survived, done) = survived == runs || \
    (most > 1 ? survived/runs : done) < 0.15

set style fill solid 1.0 noborder
plot in.".tsv" skip 1 using 2:($6 > 0 ? $1 : NaN): \
         ($2 - 0.485):($2 + 0.485):($1 - 0.46):($1 + 0.46): \
         (fill($6, $7, $9)) with boxxyerror linecolor rgb variable, \
     "" skip 1 using 2:1:(number($6, $7, $8, $9)): \
         (dark($6, $7, $9) ? 0xffffff : 0x111111) \
         with labels textcolor rgb variable, \
     "" skip 1 using (-0.5):($2 == 0 ? $1 : NaN):(strcol(3)) \
         with labels right offset -0.6,0 noenhanced textcolor "#111111"
