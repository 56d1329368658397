# cost.gp - draws mean overhead against driver seconds, one named point for each
#           policy; a policy above the figure is named at its upper end.
# in:  PREFIX.tsv  policy, seconds, mean overhead, kind (places, maps, moves,
#                  future), height of the name, whether the name is on the left
# usage: gnuplot -e "here='.'" -e "in='cost'" -e "out='cost.pdf'" cost.gp
wide = 7.0; high = 3.1
load here."/style.gp"
most = 3.5
set logscale xy
set xrange [0.004:60]
set yrange [0.97:most]
set ytics (1, 1.1, 1.2, 1.4, 1.6, 2, 2.5, 3)
set xtics (0.01, 0.1, 1, 10)
set grid xtics
set xlabel "seconds in driver calls, all programs" offset 0,0.3
set ylabel "mean peak reserved / lower bound" offset 0.5
set key top right
is(word) = strcol(4) eq word
low(y) = y > most ? 0.97*most : y
text(i) = $3 > most ? sprintf("%s (%.0f)", strcol(1), $3) : strcol(1)
plot in.".tsv" using (is("places") && $3 < most ? $2 : NaN):3 with points \
         pt 7 ps 0.5 lc rgb orange title "places blocks in segments", \
     "" using (is("maps") ? $2 : NaN):3 with points pt 5 ps 0.5 lc rgb blue \
         title "maps pages", \
     "" using (is("moves") ? $2 : NaN):3 with points pt 9 ps 0.7 lc rgb green \
         title "moves blocks", \
     "" using (is("future") ? $2 : NaN):3 with points pt 4 ps 0.6 lc rgb black \
         title "knows the future", \
     "" using ($3 > most ? $2 : NaN):(0.97*most) with points pt 2 ps 0.5 \
         lc rgb orange notitle, \
     "" using ($6 == 0 ? $2 : NaN):(low($5)):(text(0)) with labels left \
         offset 0.6,0 noenhanced font ",6.5" textcolor rgb "#222222" notitle, \
     "" using ($6 == 1 ? $2 : NaN):5:1 with labels right offset -0.6,0 \
         noenhanced font ",6.5" textcolor rgb "#222222" notitle
