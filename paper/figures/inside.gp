# inside.gp - draws the median step time of policies inside PyTorch with its
#             interval, and the memory as a number.
# in:  PREFIX.tsv  program, policy, median, low, high (percent above the default),
#                  reserved over allocated
# usage: gnuplot -e "here='.'; in='inside'; out='inside.pdf'" inside.gp
wide = 7.0
rows = int(system("wc -l < ".in.".tsv"))
high = 0.55 + 0.125*rows
load here."/style.gp"
set datafile missing "?"
unset ytics
set border 1
unset grid
set grid xtics linecolor "#dddddd" linetype 1 linewidth 0.7
unset key
set xrange [-8:20]
set xtics -8,2,20
set yrange [rows+0.3:-0.8]
set lmargin at screen 0.36
set rmargin at screen 0.88
set bmargin at screen 0.40/high
set tmargin at screen 1 - 0.02
set xlabel "step time against PyTorch's default, % more" offset 0,0.6
set arrow from 0, graph 0 to 0, graph 1 nohead lc rgb black lw 1
set arrow from 1, graph 0 to 1, graph 1 nohead lc rgb grey dt 3 lw 1.5
cut(x) = x > 20 ? 20 : x < -8 ? -8 : x
last = ""
first(s) = (new = s ne last, last = s, new ? s : "")
plot in.".tsv" using 3:0:(cut($4)):(cut($5)) with xerrorbars pt 7 ps 0.4 \
         lc rgb blue lw 1.3, \
     "" using (-8):0:2 with labels right offset -0.8,0 noenhanced, \
     "" using (-8):0:(first(strcol(1))) with labels left \
         offset screen -0.345,0 noenhanced, \
     "" using (20):0:6 with labels left offset 1.2,0
