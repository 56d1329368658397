# frontier.gp - draws which policy survives which capacity, and where the other
#               policies fail.
# in:  PREFIX.tsv  row, column, policy, capacity, share, runs, survived, ooms,
#                  done, trace, impossible, hopeless: one row for each policy
#                  and capacity; done is the share of the events before the
#                  first OOM, as the mean of the runs; share may be empty;
#                  impossible is the runs that no policy can survive, which are
#                  not among runs, and hopeless the cells of such runs
#      PREFIX.note.tsv  limited (1: the figure leaves something out), shown,
#                       rule: the caption
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='frontier'; out='frontier.svg'" frontier.gp
load ARG0[1:strlen(ARG0) - strlen("frontier.gp")]."canvas.gp"
eval read_note

trace = ""
stats in.".tsv" skip 1 using (trace = strcol(10), $1) nooutput
rows = int(STATS_max) + 1
stats in.".tsv" skip 1 using 2 nooutput
columns = int(STATS_max) + 1
stats in.".tsv" skip 1 using (strlen(strcol(3))) nooutput
names = STATS_max
stats in.".tsv" skip 1 using 6 nooutput
most = STATS_max
hopeless = 0
stats in.".tsv" skip 1 using (hopeless = $12, $12) nooutput
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

# With one trace a tile shows where it failed and how often; with several
# traces, how many survive.
cell_w = letter*texts + 14 < 96 ? 96.0 : letter*texts + 14
cell_h = 28.0
left = letter*names + 28
head = 116.0
foot = 24.0 + 40*noted
wide = int(left + columns*cell_w + 24)
wide = wide < 760 ? 760 : wide
high = int(head + rows*cell_h + foot)
eval open_canvas
right = wide - left - columns*cell_w

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
title = (most > 1 ? "Survival by capacity: traces without an OOM" : \
    "Survival by capacity: ".trace)
eval put_title
set label 2 (most > 1 ? (is_share ? "Capacity relative to each trace's peak requested." : \
    "Capacity of the device.") : \
    "Failed runs: share of the events before the first OOM, number of " \
    ."OOMs.") at screen 24.0/wide, screen 1 - 50.0/high left \
    textcolor rgb soft
if (hopeless > 0) {
    set label 3 sprintf("Hatched: the job asks for more than that, so no " \
        ."policy can survive (%d cell%s).", hopeless, hopeless > 1 ? "s" : "") \
        at screen 24.0/wide, screen 1 - 68.0/high left textcolor rgb soft
}
do for [i=1:columns] {
    set label 10+2*i capacity[i] center at first i-1, \
        screen 1 - (head - (multiple[i] eq "" ? 14 : 32))/high \
        textcolor rgb strong
    set label 11+2*i multiple[i] center at first i-1, \
        screen 1 - (head - 13)/high textcolor rgb soft
}

# A later failure is paler.
fits = hex(ink_main)
early = hex(tile_early); late = hex(tile_late)
part(ink, shift) = (ink >> shift) & 0xFF
mixed(done, shift) = int(part(early, shift) + \
    (part(late, shift) - part(early, shift))*done) << shift
pale(done) = mixed(done, 16) + mixed(done, 8) + mixed(done, 0)
fill(runs, survived, done) = survived == runs ? fits : \
    most > 1 ? pale(survived/runs) : pale(done)
is_dark(ink) = 30*part(ink, 16) + 59*part(ink, 8) + 11*part(ink, 0) < 14000

set style fill solid 1.0 noborder
plot in.".tsv" skip 1 using 2:($6 > 0 ? $1 : NaN): \
         ($2 - 0.485):($2 + 0.485):($1 - 0.46):($1 + 0.46): \
         (fill($6, $7, $9)) with boxxyerror linecolor rgb variable \
         title "outcome", \
     "" skip 1 using 2:($6 == 0 && $11 > 0 ? $1 : NaN): \
         ($2 - 0.485):($2 + 0.485):($1 - 0.46):($1 + 0.46) \
         with boxxyerror fillstyle pattern 4 border linecolor rgb soft \
         title "impossible", \
     "" skip 1 using 2:1:(number($6, $7, $8, $9)): \
         (is_dark(fill($6, $7, $9)) ? 0xffffff : 0x111111) \
         with labels textcolor rgb variable notitle, \
     "" skip 1 using (-0.5):($2 == 0 ? $1 : NaN):(strcol(3)) \
         with labels right offset -0.6,0 noenhanced textcolor rgb strong \
         notitle
