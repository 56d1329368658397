# style.gp - terminal, font and colours of the figures of the paper, after
#            ../../plots: Okabe and Ito's palette, which the colour-blind can tell
#            apart. The marks differ too, so that the figures can be read in grey.
# in:  wide, high  size in inches
#      out         the PDF to write
set encoding utf8
set datafile separator tab
set terminal pdfcairo size wide,high fontscale 0.75 \
    font "Helvetica,7" linewidth 0.8 \
    background "white"
set output out
blue = "#0072B2"; orange = "#D55E00"; green = "#009E73"; black = "#111111"
sky = "#56B4E9"; pink = "#CC79A7"; yellow = "#E69F00"; grey = "#777777"
set border 3 linecolor "#555555"
set tics nomirror textcolor "#222222"
set grid ytics linecolor "#dddddd" linetype 1 linewidth 0.7
set key samplen 2 spacing 1.0 textcolor "#222222"
