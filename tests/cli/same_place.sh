fragsim sweep small.csv -o x.h5 --csv x.h5
fragsim fit small.csv --csv - --frontier -
fragsim export small.csv --device 7
fragsim plot small.csv map --device 7 -o x.html
ls
