# empty_cache.gp - draws the peak and the price of empty_cache by its period,
# both relative to the same recording without a call.
# in:  TSV with a header; columns period (steps), peak, seconds, trace
# out: SVG
# usage: gnuplot -e "in='empty_cache.tsv'; out='empty_cache.svg'" empty_cache.gp
set datafile separator tab
set terminal svg size 900,560 font "Helvetica,13" background "white"
set output out
set logscale y
set grid linecolor "#e4e4e4" linetype 1
set border 3 linecolor "#555555"
set tics nomirror out
set xlabel "peak reserved, relative to no call"
set ylabel "modelled seconds of driver calls, relative to no call"
set arrow 1 nohead from 1, graph 0 to 1, graph 1 linecolor "#888888" dashtype 2
set key top right title "a call every ... steps"
array ink[3] = ["#D55E00", "#0072B2", "#009E73"]
array shape[3] = [7, 5, 9]
array periods[3] = [1, 10, 100]
set title "empty_cache: each point is one recording" noenhanced
plot for [i=1:3] in skip 1 using ($1 == periods[i] ? $2 : NaN):3 \
    with points pointtype shape[i] pointsize 1.1 linecolor rgb ink[i] \
    title sprintf("%d", periods[i])
