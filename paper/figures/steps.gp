# steps.gp - draws what steps cost under limits, the mean of the programs that live.
# in:  PREFIX.tsv  side (fragsim, segments or pages12), position, limit, percent above
#                  the default without a limit, low, high, programs that live
# usage: gnuplot -e "here='.'" -e "in='steps'" -e "out='steps.pdf'" steps.gp
wide = 3.33; high = 2.1
load here."/style.gp"
set xrange [-0.5:2.5]
set yrange [-6:8]
set xlabel "limit / peak that the default allocates" offset 0,0.5
set ylabel "all steps, % above the default" offset 1
set xtics scale 0.5
set key top right Left reverse samplen 1
set arrow from graph 0, first 0 to graph 1, first 0 nohead lc rgb grey lw 1
only(name, a) = strcol(1) eq name ? a : NaN
plot in.".tsv" using ($2-0.15):(only("fragsim", $4)):5:6:xtic(3) with yerrorbars pt 7 \
         ps 0.5 lc rgb black lw 1.3 title "expandable", \
     "" using 2:(only("segments", $4)):5:6 with yerrorbars pt 8 ps 0.6 \
         lc rgb blue lw 1.3 title "switch", \
     "" using ($2+0.15):(only("pages12", $4)):5:6 with yerrorbars pt 4 ps 0.5 \
         lc rgb grey lw 1.3 title "switch, 12 MiB", \
     "" using ($2-0.15):(only("fragsim", -5.2)):7 with labels font ",6" notitle, \
     "" using 2:(only("segments", -5.2)):7 with labels font ",6" \
         textcolor rgb blue notitle, \
     "" using ($2+0.15):(only("pages12", -5.2)):7 with labels font ",6" \
         textcolor rgb grey notitle
