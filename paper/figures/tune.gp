# tune.gp - draws the saving of the settings that tune chooses on each program.
# in:  PREFIX.tsv  trace, saving without a bound, without virtual memory, held out,
#                  in percent
# usage: gnuplot -e "here='.'" -e "in='tune'" -e "out='tune.pdf'" tune.gp
wide = 3.33; high = 2.35
load here."/style.gp"
set xtics rotate by 55 right font ",6" offset 0.4,0 noenhanced
set ylabel "saving, %" offset 0.5
set yrange [-10:68]
set xrange [-0.6:19.6]
set key top right
set arrow from graph 0, first 0 to graph 1, first 0 nohead lc rgb grey lw 1
plot in.".tsv" using 0:2:xtic(1) with points pt 7 ps 0.5 lc rgb blue \
         title "whole recording", \
     "" using 0:3 with points pt 6 ps 0.5 lc rgb green lw 1.5 \
         title "without virtual memory", \
     "" using 0:4 with points pt 2 ps 0.5 lc rgb orange lw 1.7 \
         title "chosen on first half, second half"
