# frontier.gp - draws the capacities at which PyTorch's default survives.
# in:  PREFIX.tsv  trace, row, from, to (relative to the capacity from which on it
#                  always survives), survives
# usage: gnuplot -e "here='.'" -e "in='frontier'" -e "out='frontier.pdf'" frontier.gp
wide = 3.33; high = 1.55
load here."/style.gp"
set border 1
unset grid
set xlabel "capacity, relative" offset 0,0.5
set format x "%.2f"
set xtics 0.02
set ytics scale 0 noenhanced
set yrange [*:*] reverse
set style fill solid 1.0 noborder
set offsets 0,0,0.2,0.2
unset key
plot in.".tsv" using ($5 == 1 ? 0.5*($3+$4) : NaN):2:3:4:($2-0.3):($2+0.3):\
         ytic(1) with boxxyerror lc rgb black fs solid 1.0, \
     "" using 3:($2-0.3):($4-$3):(0) with vectors nohead lc rgb black lw 0.6, \
     "" using 3:($2+0.3):($4-$3):(0) with vectors nohead lc rgb black lw 0.6
