# leaks.gp - draws what each leak holds at the places of the recording's windows,
#            with the line of its growth, and below it what is live there and
#            the peaks of the windows.
# in:  PREFIX.facts.tsv  one row: trace, policy (empty: no capacity), verdict,
#                        reason (of the verdict unknown), unit (of the axis),
#                        begin, end (units), from (the first examined place,
#                        units), leaks, shown, rate (bytes a unit, of all),
#                        capacity (bytes; -1: none), least, most (units until
#                        it is full; -1: not known)
#      PREFIX.sites.tsv  label, rate (bytes a unit), from (units), base (bytes
#                        of the growth's line there), last (units): one row for
#                        each leak that is shown, the fastest first
#      PREFIX.tsv        unit, held (bytes): one block for each leak
#      PREFIX.windows.tsv  unit, to, live_at_begin, peak_requested (bytes)
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='leaks'; out='leaks.svg'" leaks.gp
load ARG0[1:strlen(ARG0) - strlen("leaks.gp")]."canvas.gp"

trace = ""; policy = ""; verdict = ""; reason = ""; unit = ""
array f[14]
stats in.".facts.tsv" skip 1 using (trace = strcol(1), policy = strcol(2), \
    verdict = strcol(3), reason = strcol(4), unit = strcol(5), \
    sum [k=6:14] (f[k] = column(k), 0), 0) nooutput
begin = f[6]; end = f[7]; from = f[8]; leaks = f[9]; n = int(f[10])
rate = f[11]; capacity = f[12]; least = f[13]; most_left = f[14]
a_unit = unit eq "step" ? " a step" : " in 1000 events"
size(b) = b >= 2**30 ? sprintf("%.2f GiB", b/2.0**30) : \
    b >= 2**20 ? sprintf("%.2f MiB", b/2.0**20) : \
    b >= 1024 ? sprintf("%.1f KiB", b/1024.0) : sprintf("%.0f B", b)
unit_of(b) = b < 2**20 ? 2.0**10 : b < 2**30 ? 2.0**20 : 2.0**30
word_of(u) = u < 2**20 ? "KiB" : u < 2**30 ? "MiB" : "GiB"

array labels[n > 0 ? n : 1]; array slopes[n > 0 ? n : 1]
array starts[n > 0 ? n : 1]
array bases[n > 0 ? n : 1]; array lasts[n > 0 ? n : 1]
label = ""; slope = 0.0; base = 0.0; start = 0.0
held = 1.0
do for [i=1:n] {
    stats in.".sites.tsv" skip 1 every ::i-1::i-1 using (label = strcol(1), \
        slope = $2, start = $3, base = $4, $5) nooutput
    labels[i] = label
    slopes[i] = slope
    starts[i] = start
    bases[i] = base
    lasts[i] = STATS_max
    top = base + slope*(lasts[i] - start)
    held = top > held ? top : held
}
set datafile commentschars "#"
if (n > 0) {
    stats in.".tsv" using 2 nooutput
    held = STATS_max > held ? STATS_max : held
}
peak = 1.0
if (end > begin) {
    stats in.".windows.tsv" skip 1 using 4 nooutput
    peak = STATS_max > 0 ? STATS_max : 1.0
}
up = unit_of(held)
down = unit_of(peak)
# A round distance of five labels or fewer.
tens(x) = 10.0**floor(log10(x))
round_up(x) = x <= tens(x) ? tens(x) : x <= 2*tens(x) ? 2*tens(x) : \
    x <= 5*tens(x) ? 5*tens(x) : 10*tens(x)
distance(top) = round_up(top/5.0)

wide = 1000
left = 92.0; right = 24.0
head = 92.0 + 21*n
tall = n > 0 ? 270.0 : 0.0
gap = n > 0 ? 46.0 : 14.0
below = n > 0 ? 150.0 : 260.0
foot = 72.0
high = int(head + tall + gap + below + foot)
eval open_canvas
marks = is_vector ? 0.7 : 1.1
# The points differ too.
array shape[6] = [7, 9, 5, 13, 6, 8]

set multiplot
set border 3 linecolor rgb soft
set tics nomirror out textcolor rgb plain
set grid ytics linecolor rgb grid_ink linetype 1 linewidth 1
set style fill solid 1.0 noborder
set lmargin at screen left/wide
set rmargin at screen 1 - right/wide
set xrange [begin:(end > begin ? end : begin + 1)]
unset key

title = "Leaks of ".trace
eval put_title
words = verdict eq "leak" ? sprintf("%.0f leak%s of ", leaks, leaks > 1 ? \
    "s" : "").size(rate).a_unit." together".(leaks > n ? sprintf("; the %d " \
    ."fastest are shown", n) : "").". Dashed: the growth." : \
    verdict eq "none" ? "No site keeps more and more memory." : \
    "Not known: ".reason.".".(n > 0 ? " What grows is shown." : "")
set label 2 words at screen 24.0/wide, screen 1 - 48.0/high left font ",12" \
    textcolor rgb soft
set label 3 (least < 0 ? "" : policy." fills ".size(capacity). \
    sprintf(" between %.0f and %.0f ", least, most_left). \
    (unit eq "step" ? "steps" : "thousand events")." after the end.") noenhanced at screen 24.0/wide, screen 1 - 66.0/high left \
    font ",12" textcolor rgb soft
if (n > 0) {
    do for [i=1:n] {
        y = high - 70.0 - 21*i
        set label 10+i labels[i] noenhanced at screen (left + 36)/wide, \
            screen y/high left font ",12" textcolor rgb strong
        set label 20+i "" at screen (left + 18)/wide, screen y/high \
            point pointtype shape[i] pointsize 1.3*marks \
            linecolor rgb line_ink[i]
    }
    set tmargin at screen 1 - head/high
    set bmargin at screen (foot + below + gap)/high
    set yrange [0:1.06*held/up]
    set ylabel "held, ".word_of(up) textcolor rgb plain
    set format x ""
    set samples 2
    plot for [i=1:n] in.".tsv" index i-1 using 1:($2/up) with linespoints \
             linecolor rgb line_ink[i] linewidth 2 pointtype shape[i] \
             pointsize marks title labels[i] \
             noenhanced, \
         for [i=1:n] [starts[i]:lasts[i]] \
             (bases[i] + slopes[i]*(x - starts[i]))/up with lines \
             linecolor rgb plain linewidth 1.5 dashtype 2 title "growth"
    do for [i=1:n] { unset label 10+i; unset label 20+i }
    unset label 1; unset label 2; unset label 3
}
set tmargin at screen (foot + below)/high
set bmargin at screen foot/high
set yrange [0:1.1*peak/down]
set ytics distance(1.1*peak/down)
set ylabel word_of(down) textcolor rgb plain
set format x "%g"
set xlabel (unit eq "step" ? "step" : "1000 events") textcolor rgb plain
set key at screen 1 - right/wide, screen (foot + below + 30)/high right top \
    horizontal maxrows 1 samplen 2 width -1 textcolor rgb plain
if (end > begin) {
    plot in.".windows.tsv" skip 1 using (($1 + $2)/2):($4/down):(0.84*($2 - $1)) \
             with boxes \
             linecolor rgb ink_second title "peak requested", \
         "" skip 1 using 1:($3/down) with lines linecolor rgb ink_main \
             linewidth 2 title "live at begin"
} else {
    plot NaN notitle
}
unset multiplot
