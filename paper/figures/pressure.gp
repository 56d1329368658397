# pressure.gp - draws the modelled seconds in driver calls by capacity; a filled
#               mark: all programs run.
# in:  PREFIX.tsv  first row: names; then capacity, and for each policy seconds
#                  and whether all programs run
# usage: gnuplot -e "here='.'" -e "in='pressure'" -e "out='pressure.pdf'" pressure.gp
wide = 3.33; high = 2.3
load here."/style.gp"
set logscale y
set yrange [0.03:12]
set xrange [-0.3:8.3]
set xtics font ",6.5"
set xlabel "capacity / peak of the requests (not to scale)" offset 0,0.5
set ylabel "driver seconds" offset 1
set key at graph 0.02,0.03 left bottom Left reverse
array label[5] = ["PyTorch, default", "switch", "expandable", "remap", \
                  "remap:pack=full"]
array colour[5] = [orange, blue, pink, black, green]
array full[5] = [7, 9, 11, 5, 13]
array open[5] = [6, 8, 10, 4, 12]
array dash[5] = [1, 2, 5, 4, 1]
plot for [i=1:5] in.".tsv" skip 1 using 0:2*i:xtic(1) with lines \
         lc rgb colour[i] dt dash[i] lw 1.3 notitle, \
     for [i=1:5] "" skip 1 using 0:(column(2*i+1) == 1 ? column(2*i) : NaN) \
         with points lc rgb colour[i] pt full[i] ps 0.55 title label[i], \
     for [i=1:5] "" skip 1 using 0:(column(2*i+1) == 0 ? column(2*i) : NaN) \
         with points lc rgb colour[i] pt open[i] ps 0.55 notitle
