# holes.gp - draws the segments of an allocator at one moment to one scale, in
#            rows, with the request that failed above them.
# in:  PREFIX.facts.tsv   one row: trace, cause, event, failed (1: a request
#                         failed), device, rows, wide (pixels of a row),
#                         row_bytes, request, segment, reserved, limit (-1: not
#                         known), cached, holes, largest, own_largest,
#                         unreserved (-1: not known), pending, usable,
#                         unusable (free bytes that the request can use, or
#                         cannot); bytes
#      PREFIX.tsv         row, from, to (pixels), kind: 0 live, 1 pending, 2
#                         free, 3 free and of no use for the request
#      PREFIX.frames.tsv  row, from, to, kind: segment, largest (hole), usable
#                         (the largest hole that the request can use), goes_on
#                         (1: the frame continues in the next row)
#      PREFIX.spaces.tsv  row, space, reserved, cached: at its first row; bytes,
#                         -1: no number
# out: SVG, PNG or PDF, by its suffix
# usage: gnuplot -e "in='holes'; out='holes.svg'" holes.gp
load ARG0[1:strlen(ARG0) - strlen("holes.gp")]."canvas.gp"

trace = ""; cause = ""
array f[20]
stats in.".facts.tsv" skip 1 using (trace = strcol(1), cause = strcol(2), \
    sum [k=3:20] (f[k] = column(k), 0), 0) nooutput
event = f[3]; failed = int(f[4]); rows = f[6] > 0 ? f[6] : 1; wide_n = f[7]
row_bytes = f[8]; request = f[9]; reserved = f[11]; limit = f[12]
cached = f[13]; holes = f[14]; largest = f[15]; usable = f[16]
free = f[17]; pending = f[18]; useful = f[19]; other = f[20]
unit = row_bytes < 2**30 ? 2.0**20 : 2.0**30
size(b) = b >= 2**30 ? sprintf("%.2f GiB", b/2.0**30) : \
    b >= 2**20 ? sprintf("%.1f MiB", b/2.0**20) : \
    b >= 1024 ? sprintf("%.1f KiB", b/1024.0) : sprintf("%.0f B", b)

left = 212.0
right = 36.0
head = 128.0
foot = 78.0
above = failed ? (free >= 0 ? 2 : 1) : 0
lines = rows + above + (above > 0 ? 0.6 : 0.2)
step = 480.0/lines > 46 ? 46.0 : 480.0/lines < 32 ? 32.0 : 480.0/lines
wide = int(left + wide_n + right)
high = int(head + step*lines + foot)
eval open_canvas

set lmargin at screen left/wide
set rmargin at screen 1 - right/wide
set tmargin at screen 1 - head/high
set bmargin at screen foot/high
set border 1 linecolor rgb soft
set tics nomirror out textcolor rgb plain
unset ytics
unset key
set xrange [0:row_bytes/unit]
set yrange [-rows + 0.5:lines - rows + 0.5]
set xlabel "bytes of a row, ".(unit > 2**20 ? "GiB" : "MiB") \
    textcolor rgb plain

array ink[4] = [ink_main, ink_pending, ink_pale, ink_grey]
array name[4] = ["live", "freed, not yet reusable", \
    failed ? "free, of the request's stream, pool and class" : "free", \
    "free, of no use for it"]
wanted = ink_failing

title = (failed ? "Holes at the failed request: " : "Holes at the end: ").trace
eval put_title
set label 2 "reserved ".size(reserved). \
    (failed && limit > 0 ? " of ".size(limit) : "").": ".size(cached)." free in ". \
    sprintf("%.0f hole", holes).(holes == 1 ? "" : "s").(holes > 0 ? \
    ", the largest ".size(largest) : "").(failed && usable < largest ? \
    ", the largest that the request can use ".(usable > 0 ? size(usable) : \
    "0 B") : "").(failed ? \
    sprintf(". Event %.0f, cause: ", event).cause."." : ".") noenhanced at screen 24.0/wide, screen 1 - 48.0/high left font ",12" \
    textcolor rgb soft

# The key: the kinds that occur, and the frame.
x = 24.0
y = high - 76.0
narrow = letter*(is_vector ? 0.79 : 0.7)
do for [k=1:4] {
    if (k == 1 || k == 2 && pending > 0 || k == 3 && useful > 0 || \
        k == 4 && other > 0) {
        set object 10+k rectangle from screen x/wide, screen (y-7)/high \
            to screen (x+18)/wide, screen (y+7)/high \
            fillcolor rgb ink[k] fillstyle solid 1.0 noborder
        set label 10+k name[k] at screen (x+24)/wide, screen y/high left \
            font ",12" textcolor rgb plain
        x = x + 44 + narrow*strlen(name[k])
    }
}
x = 24.0
y = high - 102.0
array frame[3] = [soft, wanted, strong]
array framed[3] = ["a segment", "the largest hole for the request", \
    "the largest hole".(failed ? " of all" : "")]
do for [k=1:3] {
    if (k == 1 || k == 2 && failed && usable > 0 || \
        k == 3 && largest > usable) {
        set object 20+k rectangle from screen x/wide, screen (y-6)/high \
            to screen (x+18)/wide, screen (y+6)/high fillstyle empty \
            border linecolor rgb frame[k] linewidth (k == 1 ? 1 : 3)
        set label 20+k framed[k] at screen (x+24)/wide, screen y/high left \
            font ",12" textcolor rgb plain
        x = x + 44 + narrow*strlen(framed[k])
    }
}
stats in.".frames.tsv" skip 1 using 5 nooutput
if (STATS_max > 0) {
    set label 24 "→  goes on in the next row" at screen x/wide, \
        screen y/high left font ",12" textcolor rgb plain
}

# Above the rows: the request, and what is not reserved.
at(i) = lines - rows + 0.5 - 0.5 - i
cut(b) = (b > row_bytes ? row_bytes : b)/unit
if (above > 0) {
    set object 31 rectangle from first 0, first at(0) - 0.34 \
        to first cut(request), first at(0) + 0.34 \
        fillcolor rgb wanted fillstyle solid 1.0 noborder
    set label 31 "the request, ".size(request) at screen (left - 10)/wide, \
        first at(0) right font ",12" textcolor rgb ink_failing
}
if (above > 1) {
    set object 32 rectangle from first 0, first at(1) - 0.34 \
        to first cut(free), first at(1) + 0.34 fillcolor rgb paper \
        fillstyle solid 1.0 border linecolor rgb soft dashtype 2
    set label 32 "not reserved, ".size(free) at screen (left - 10)/wide, \
        first at(1) right font ",12" textcolor rgb plain
    if (free > row_bytes) {
        set label 33 "continues beyond the row" at graph 0.99, first at(1) \
            right font ",11" textcolor rgb plain
    }
}

per(p) = p*row_bytes/wide_n/unit
kind(k, word) = (strcol(4) eq word ? k : NaN)
plot for [k=0:3] in.".tsv" skip 1 \
         using ($4 == k ? per(0.5*($2 + $3)) : NaN):(-$1): \
         (per($2)):(per($3)):(-$1 - 0.34):(-$1 + 0.34) \
         with boxxyerror fillstyle solid 1.0 noborder linecolor rgb ink[k+1] \
         title name[k+1], \
     in.".frames.tsv" skip 1 \
         using (per($2) + kind(0, "segment")):(-$1):(per($2)):(per($3)): \
         (-$1 - 0.34):(-$1 + 0.34) with boxxyerror fillstyle empty \
         border linecolor rgb soft linewidth 1 linecolor rgb soft \
         title framed[1], \
     "" skip 1 \
         using (per($2) + kind(0, "largest")):(-$1):(per($2)):(per($3)): \
         (-$1 - 0.40):(-$1 + 0.40) with boxxyerror fillstyle empty \
         border linecolor rgb strong linewidth 3 linecolor rgb strong \
         title framed[3], \
     "" skip 1 \
         using (per($2) + kind(0, "usable")):(-$1):(per($2)):(per($3)): \
         (-$1 - 0.40):(-$1 + 0.40) with boxxyerror fillstyle empty \
         border linecolor rgb wanted linewidth 3 linecolor rgb wanted \
         title framed[2], \
     "" skip 1 using (per($3)):(-$1):($5 > 0 && strcol(4) eq "segment" ? \
         "→" : "") with labels left offset 0.6,0 textcolor rgb plain \
         notitle, \
     in.".spaces.tsv" skip 1 using (0):(-$1):($3 < 0 ? strcol(2) : \
         strcol(2)."\n".size($3).", ".size($4)." free") with labels right \
         offset -1.2,0.45 noenhanced font ",11" textcolor rgb plain notitle
