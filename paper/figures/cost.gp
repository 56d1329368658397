# cost.gp - draws mean overhead against driver seconds, one named point for each
#           policy.
# in:  PREFIX.tsv  policy, seconds, mean overhead, kind (places, maps, moves,
#                  future)
# usage: gnuplot -e "here='.'; in='cost'; out='cost.pdf'" cost.gp
wide = 7.0; high = 2.7
load here."/style.gp"
set logscale xy
set xrange [0.004:60]
set yrange [0.97:26]
set ytics (1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20)
set xtics (0.01, 0.1, 1, 10)
set grid xtics
set xlabel "seconds in driver calls, all programs" offset 0,0.5
set ylabel "mean peak reserved / lower bound" offset 1
set key top right
is(word) = strcol(4) eq word
plot in.".tsv" using (is("places") ? $2 : NaN):3 with points pt 7 ps 0.5 \
         lc rgb orange title "places blocks in segments", \
     "" using (is("maps") ? $2 : NaN):3 with points pt 5 ps 0.5 lc rgb blue \
         title "maps pages", \
     "" using (is("moves") ? $2 : NaN):3 with points pt 9 ps 0.7 lc rgb green \
         title "moves blocks", \
     "" using (is("future") ? $2 : NaN):3 with points pt 4 ps 0.6 lc rgb black \
         title "knows the future", \
     "" using 2:3:(sprintf("%s", strcol(1))) with labels left offset 0.5,0.25 \
         noenhanced font ",6.5" textcolor rgb "#222222" notitle
