# peaks.gp - draws the overhead of three policies on each program.
# in:  PREFIX.tsv  trace, torch, torch with expandable segments, remap: overheads
# usage: gnuplot -e "here='.'" -e "in='peaks'" -e "out='peaks.pdf'" peaks.gp
wide = 3.33; high = 2.35
load here."/style.gp"
set xtics rotate by 55 right font ",6" offset 0.4,0 noenhanced
set ylabel "peak reserved / lower bound" offset 1
set yrange [0.9:3.25]
set xrange [-0.6:19.6]
set key top right
set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb grey lw 1
plot in.".tsv" using 0:2:xtic(1) with points pt 7 ps 0.55 lc rgb orange \
         title "PyTorch, default", \
     "" using 0:3 with points pt 8 ps 0.6 lc rgb blue lw 1.5 \
         title "PyTorch, expandable segments", \
     "" using 0:4 with points pt 5 ps 0.45 lc rgb black title "remap"
