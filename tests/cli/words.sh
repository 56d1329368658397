# The glossary has every heading that the tables of the commands print, and every
# label of info and validate.
fragsim help words | tee words

bundled=$(dirname "$0")/../../traces/bundled
trace=$bundled/leak.pickle.xz
frames=$bundled/leak_frames.pickle.xz
cp small.csv other.csv
fragsim replay small.csv -q -o small.h5 >table
{
    fragsim replay small.csv other.csv -q | head -n 1
    fragsim fit small.csv other.csv -q --frontier frontier.csv | head -n 1
    fragsim tune small.csv -q -c inf |
        sed -n 's/^#   \(saves\|knobs\)/\1/p'
    fragsim steps -q "$trace" "$frames" | sed -n '/^rank/p'
    fragsim top -q "$trace" "$frames" | sed -n '/^rank/p'
    fragsim steps -q "$trace" | sed -n '/^ *step /p' | sed 's/^  *//'
    fragsim leaks -q "$trace" | sed -n '/^leaks at/p'
    fragsim info -q "$trace" | sed '1,/^device/d; s/^  \(.*[^ ]\)   *.*/\1/'
    fragsim explain -q "$bundled/lstm_varlen__cap_below.pickle.xz" >answer
    grep -A 1 -e '^by pool' -e '^changes' answer | grep '^  '
    sed -n '/^memory/,/^by/s/^  \([a-z ]*[a-z]\)   .*/\1/p' answer
    fragsim summary -q "$trace" | tee text |
        sed -n '/Metric/d; s/^|  *\([^|]*[^ |]\) *|[^|]*|[^|]*|.*/\1/p'
    sed -n 's/^|  *\(CUDA OOMs\): .*\(cudaMalloc retries\): .*/\1   \2/p' text
    sed -n 's/^| *Metric *|\(.*\)|$/\1/; T; s/|/   /g; p' text
    for by in site function stack size class age pool stream; do
        fragsim top -q "$frames" --by $by | sed -n '/^ *held /p'
    done
    fragsim diff -q "$trace" "$trace" --at 0 --at end | sed -n '/^ *change  of/p'
    fragsim diff small.h5 small.h5 | head -n 1
    fragsim validate -q "$trace" | sed -n 's/ 2\.[0-9]*$//; s/ [0-9]* of [0-9]*,*/  /gp'
} | awk '{
    n = split($0, heads, /   */)
    for (i = 1; i <= n; i++)
        if (heads[i] != "")
            print heads[i]
}' >headings
wc -l <headings | tr -d ' '
while read -r heading; do
    grep -qx "  $heading" words || echo "no meaning of $heading"
done <headings
