# steps.gp - draws what each step of a trace needs: peak reserved and peak
#            requested as bars, what is live where the step begins as a line
# in:  PREFIX.facts.tsv  one row: trace, policy, steps, stride (steps that a bar
#                        shows), capacity (bytes of
#                        the bound; -1: unlimited)
#      PREFIX.tsv        step (its place), part (before, step, after),
#                        live_at_begin, peak_requested, peak_reserved (bytes),
#                        ooms
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='steps'; out='steps.svg'" steps.gp
load ARG0[1:strlen(ARG0) - strlen("steps.gp")]."canvas.gp"

trace = ""; policy = ""
array f[5]
stats in.".facts.tsv" skip 1 using (trace = strcol(1), policy = strcol(2), \
    sum [k=3:5] (f[k] = column(k), 0), 0) nooutput
steps = f[3]; stride = f[4]; capacity = f[5]
stats in.".tsv" skip 1 using 1 nooutput
first = STATS_min; last = STATS_max
stats in.".tsv" skip 1 using 5 nooutput
most = STATS_max > 0 ? STATS_max : 1.0
stats in.".tsv" skip 1 using 6 nooutput
ooms = STATS_sum
unit = most < 2**30 ? 2.0**20 : 2.0**30
size(b) = b >= 2**30 ? sprintf("%.2f GiB", b/2.0**30) : \
    b >= 2**20 ? sprintf("%.2f MiB", b/2.0**20) : \
    b >= 1024 ? sprintf("%.1f KiB", b/1024.0) : sprintf("%.0f B", b)
near = capacity > 0 && capacity < 1.6*most ? capacity : most

wide = 1000
high = 460
left = 92.0; right = 24.0; head = 118.0; foot = 72.0
eval open_canvas
marks = is_vector ? 0.8 : 1.3
reserved = ink_amber
requested = ink_second
live = ink_main
failed = ink_failing

set lmargin at screen left/wide
set rmargin at screen 1 - right/wide
set tmargin at screen 1 - head/high
set bmargin at screen foot/high
set border 3 linecolor rgb soft
set tics nomirror out textcolor rgb plain
set grid ytics linecolor rgb grid_ink linetype 1 linewidth 1
set style fill solid 1.0 noborder
set xrange [first - 0.6*stride:last + 0.6*stride]
set yrange [0:1.08*near/unit]
set xlabel "step".(stride > 1 ? sprintf(" (a bar shows the largest of %d " \
    ."steps)", int(stride)) : "") textcolor rgb plain
set ylabel (unit > 2**20 ? "GiB" : "MiB") textcolor rgb plain
# The parts before and after the steps have words for numbers.
if (steps > 0) {
    apart = steps <= 20 ? 1 : steps <= 50 ? 5 : 10.0**floor(log10(steps/2.0))
    apart = steps/apart > 12 ? 2*apart : apart
    set xtics apart, apart, steps
    if (apart == 1) { set xtics 1, 1, steps }
} else { unset xtics }
if (first == 0) { set xtics add ("before" 0) }
if (last > steps && steps > 0) { set xtics add ("after" last) }
if (steps == 0) { set xtics ("the whole trace" 0) }

title = "Steps of ".trace.", ".policy
eval put_title
words = steps == 0 ? "No step was found." : sprintf("%d complete step%s; " \
    ."largest peak reserved ", int(steps), steps == 1 ? "" : "s").size(most)."."
words = words.(ooms > 0 ? sprintf(" %d request%s failed.", int(ooms), \
    ooms == 1 ? "" : "s") : "")
# A capacity far above the bars is named and not drawn.
then = near < capacity ? "The bound, ".size(capacity).", lies above the " \
    ."picture." : ""
set label 2 words at screen 24.0/wide, screen 1 - 48.0/high left \
    font ",12" textcolor rgb soft
set label 3 then at screen 24.0/wide, screen 1 - 66.0/high left \
    font ",12" textcolor rgb soft
set key at screen 1 - right/wide, screen 1 - 80.0/high right top \
    horizontal maxrows 1 samplen 2 width -1 font ",11" textcolor rgb plain
if (near == capacity) {
    set arrow 1 from graph 0, first capacity/unit to graph 1, \
        first capacity/unit nohead dashtype 2 linewidth 1.5 \
        linecolor rgb plain front
}
set boxwidth (last > 100 ? 1.0 : 0.84)*stride
plot in.".tsv" skip 1 using 1:($5/unit) with boxes linecolor rgb reserved \
         title "peak reserved", \
     "" skip 1 using 1:($4/unit) with boxes linecolor rgb requested \
         title "peak requested", \
     "" skip 1 using 1:($3/unit) with linespoints linecolor rgb live \
         linewidth 2 pointtype 7 pointsize (last > 60 ? 0 : 0.5*marks) \
         title "live at begin", \
     (near == capacity ? NaN : NaN) with lines dashtype 2 linewidth 1.5 \
         linecolor rgb plain title (near == capacity ? "bound" : ""), \
     in.".tsv" skip 1 using ($6 > 0 ? $1 : NaN):($5/unit) with points \
         pointtype 11 pointsize marks linecolor rgb failed \
         title (ooms > 0 ? "OOM" : "")
