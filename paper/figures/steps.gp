# steps.gp - draws what steps cost under limits, the mean of the programs that live.
# in:  PREFIX.tsv  side (fragsim or segments), position, limit, percent above the default
#                  without a limit, low, high, programs that live
# usage: gnuplot -e "here='.'" -e "in='steps'" -e "out='steps.pdf'" steps.gp
wide = 3.33; high = 2.3
load here."/style.gp"
set xrange [-0.5:6.5]
set yrange [-11:27]
set xlabel "limit / peak that the default allocates (not to scale)" offset 0,0.5
set ylabel "all steps, % above the default" offset 1
set xtics scale 0.5
set key top right Left reverse samplen 1
set arrow from graph 0, first 0 to graph 1, first 0 nohead lc rgb grey lw 1
ours(a) = strcol(1) eq "fragsim" ? a : NaN
theirs(a) = strcol(1) eq "segments" ? a : NaN
plot in.".tsv" using ($2-0.1):(ours($4)):5:6:xtic(3) with yerrorbars pt 7 ps 0.5 \
         lc rgb black lw 1.3 title "expandable", \
     "" using ($2+0.1):(theirs($4)):5:6 with yerrorbars pt 8 ps 0.6 \
         lc rgb blue lw 1.3 title "switch", \
     "" using ($2-0.13):(ours(-9.5)):7 with labels font ",6" right notitle, \
     "" using ($2+0.13):(theirs(-9.5)):7 with labels font ",6" left \
         textcolor rgb blue notitle
