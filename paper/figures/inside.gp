# inside.gp - draws the median step time of policies inside PyTorch with its
#             interval, and the memory as a number.
# in:  PREFIX.tsv  program, policy, median, low, high (percent above the default),
#                  reserved over allocated, row from the top
# usage: gnuplot -e "here='.'" -e "in='inside'" -e "out='inside.pdf'" inside.gp
wide = 7.0
set datafile separator tab
stats in.".tsv" using 7 nooutput
rows = STATS_max
high = 0.5 + 0.118*rows
load here."/style.gp"
set datafile missing "?"
unset ytics
set border 1
unset grid
set grid xtics linecolor "#dddddd" linetype 1 linewidth 0.7
unset key
set xrange [-5:6]
set xtics -5,1,6
set yrange [rows+0.6:-0.8]
set lmargin at screen 0.38
set rmargin at screen 0.88
set bmargin at screen 0.46/high
set tmargin at screen 1 - 0.02
set xlabel "step time against PyTorch's default, % more" offset 0,0.1
set arrow from 0, graph 0 to 0, graph 1 nohead lc rgb black lw 1
set arrow from 1, graph 0 to 1, graph 1 nohead lc rgb grey dt 3 lw 1.5
cut(x) = x > 6 ? 6 : x < -5 ? -5 : x
last = ""
first(s) = (new = s ne last, last = s, new ? s : "")
plot in.".tsv" using 3:7:(cut($4)):(cut($5)) with xerrorbars pt 7 ps 0.4 \
         lc rgb blue lw 1.3, \
     "" using (-5):7:2 with labels right offset -0.8,0 noenhanced, \
     "" using (-5):7:(first(strcol(1))) with labels left \
         offset screen -0.365,0 noenhanced, \
     "" using (6):7:6 with labels left offset 1.2,0
