# inside.gp - draws the step time of policies inside PyTorch: the median ratio and that
#             of all steps with their intervals, and the memory as a number.
# in:  PREFIX.tsv  program, policy, median, low, high, all steps, low, high (percent above
#                  the default), reserved over allocated, row from the top
# usage: gnuplot -e "here='.'" -e "in='inside'" -e "out='inside.pdf'" inside.gp
wide = 7.0
set datafile separator tab
stats in.".tsv" using 10 nooutput
rows = STATS_max
high = 0.62 + 0.122*rows
load here."/style.gp"
unset ytics
set border 1
unset grid
set grid xtics linecolor "#dddddd" linetype 1 linewidth 0.7
set key at screen 0.985, screen 0.045 right horizontal samplen 1.5
set xrange [-6:8]
set xtics -6,1,8
set yrange [rows+0.8:-0.8]
set lmargin at screen 0.38
set rmargin at screen 0.88
set bmargin at screen 0.5/high
set tmargin at screen 1 - 0.02
set xlabel "step time against PyTorch's default, % more" offset -12,0.1
set arrow from 0, graph 0 to 0, graph 1 nohead lc rgb black lw 1
set arrow from 1, graph 0 to 1, graph 1 nohead lc rgb grey dt 3 lw 1.5
cut(x) = x > 8 ? 8 : x < -6 ? -6 : x
last = ""
first(s) = (new = s ne last, last = s, new ? s : "")
plot in.".tsv" using 3:($10-0.16):(cut($4)):(cut($5)) with xerrorbars pt 7 ps 0.4 \
         lc rgb blue lw 1.3 title "median", \
     "" using (cut($6)):($10+0.2):(cut($7)):(cut($8)) with xerrorbars pt 6 ps 0.45 \
         lc rgb orange lw 1.1 title "all steps", \
     "" using (-6):10:2 with labels right offset -0.8,0 noenhanced notitle, \
     "" using (-6):10:(first(strcol(1))) with labels left \
         offset screen -0.365,0 noenhanced notitle, \
     "" using (8):10:9 with labels left offset 1.2,0 notitle
