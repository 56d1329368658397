# A result file where a trace is wanted, and the reverse, name the command.
fragsim replay small.csv -q -o a.h5 >table
fragsim replay small.csv -q -p best_fit -o b.h5 >table
fragsim import small.csv -o t.h5
try() {
    fragsim "$@"
    echo "$?"
}
try replay a.h5
try info a.h5
try plot a.h5 map -o x.html
try plot t.h5 compare -o x.svg
try plot small.csv compare -o x.svg
try merge m.h5 t.h5
try compare a.h5 b.h5
head -c 3000 a.h5 >torn.h5
try plot torn.h5 compare -o x.svg
head -c 3000 t.h5 >torn.h5
try info torn.h5
ls
try diff a.h5 small.csv
try diff a.h5 nothing.h5
try diff a.h5
mkdir folder
try plot folder compare -o x.svg
