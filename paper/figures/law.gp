# law.gp - draws the need with small pages beside what the law allows.
# in:  PREFIX.tsv  trace, need, law by runs, law by blocks, all over the lower bound
# usage: gnuplot -e "here='.'" -e "in='law'" -e "out='law.pdf'" law.gp
wide = 3.33; high = 2.25
load here."/style.gp"
set xtics rotate by 55 right font ",6.5" offset 0.4,0 noenhanced
set ylabel "memory / lower bound" offset 1
set logscale y
set yrange [0.97:*]
set ytics (1, 1.1, 1.2, 1.5, 2, 3, 4, 6)
set xrange [-0.6:19.6]
set key top left
set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb grey lw 1
plot in.".tsv" using 0:4:xtic(1) with points pt 10 ps 0.5 lc rgb grey lw 1.2 \
         title "allowed, two pages a live block (any placement)", \
     "" using 0:3 with points pt 8 ps 0.55 lc rgb blue lw 1.5 \
         title "allowed, two pages a run", \
     "" using 0:2 with points pt 7 ps 0.4 lc rgb black title "needed"
