# law.gp - draws the need with small pages beside what the law allows, in percent
#          above the lower bound; less than 0.008 is drawn there.
# in:  PREFIX.tsv  trace, need, law by runs, law by blocks, all over the lower bound
# usage: gnuplot -e "here='.'" -e "in='law'" -e "out='law.pdf'" law.gp
wide = 3.33; high = 2.8
load here."/style.gp"
set xtics rotate by 90 right font ",8.5" noenhanced
set ylabel "% above the lower bound" font ",9" offset 1
set logscale y
set yrange [0.005:600]
set ytics (0.01, 0.1, 1, 10, 100) font ",8.5"
set xrange [-0.6:19.6]
set key outside top center horizontal maxrows 2 Left reverse samplen 0.5 width -4 font ",8.5"
above(x) = 100*(x-1) < 0.008 ? 0.008 : 100*(x-1)
plot in.".tsv" using 0:(above($4)):xtic(1) with points pt 10 ps 0.5 lc rgb grey lw 1.2 \
         title "allowed by live blocks", \
     "" using 0:(above($3)) with points pt 8 ps 0.55 lc rgb blue lw 1.5 \
         title "allowed by runs", \
     "" using 0:(above($2)) with points pt 7 ps 0.4 lc rgb black title "needed"
