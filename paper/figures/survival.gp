# survival.gp - draws how many programs run at each capacity, by policy.
# in:  PREFIX.tsv  first row: the names of the policies; then capacity as a
#                  multiple, and the number of programs that run
# usage: gnuplot -e "here='.'" -e "in='survival'" -e "out='survival.pdf'" survival.gp
wide = 3.33; high = 2.3
load here."/style.gp"
set key autotitle columnhead noenhanced inside bottom right vertical \
    Left reverse samplen 2.5 spacing 0.95
set xlabel "capacity / peak of the requests (not to scale)" offset 0,0.4
set ylabel "programs that run" offset 1
set yrange [0:20.8]
set xrange [-0.2:9.2]
set for [i=1:9] style line i lw 1.6
array colour[8] = [black, grey, green, blue, yellow, orange, pink, sky]
array mark[8] = [5, 4, 9, 8, 2, 7, 6, 1]
array dash[8] = [1, 2, 1, 1, 3, 1, 4, 5]
plot for [i=1:8] in.".tsv" using 0:i+1:xtic(1) with linespoints \
    lc rgb colour[i] pt mark[i] ps 0.5 dt dash[i] lw 1.4
