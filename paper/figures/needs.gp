# needs.gp - draws what each program needs under three policies.
# in:  PREFIX.tsv  trace, need of torch, torch with expandable segments, remap; what
#                  torch reserves without a bound (an arrow if it is above the frame);
#                  all over the lower bound
# usage: gnuplot -e "here='.'" -e "in='needs'" -e "out='needs.pdf'" needs.gp
wide = 3.33; high = 3.0
load here."/style.gp"
set xtics rotate by 90 right font ",8.5" noenhanced
set ytics font ",8.5"
set ylabel "memory / lower bound" font ",9" offset 1
top = 2.2
set yrange [0.93:top]
set xrange [-0.6:19.6]
set key outside top center horizontal maxrows 2 Left reverse samplen 0.5 width -1 font ",8.5"
set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb grey lw 1
plot in.".tsv" using 0:($5 > top ? NaN : $5) with points pt 2 ps 0.4 \
         lc rgb grey lw 1.2 title "default: reserved", \
     "" using 0:($5 > top ? top-0.1 : NaN):(0):(0.09) with vectors head filled size 0.25,25 \
         lc rgb grey lw 1.2 notitle, \
     "" using 0:2:xtic(1) with points pt 7 ps 0.55 lc rgb orange \
         title "default: need", \
     "" using 0:3 with points pt 8 ps 0.6 lc rgb blue lw 1.5 \
         title "switch: need", \
     "" using 0:4 with points pt 5 ps 0.4 lc rgb black title "remap: need"
