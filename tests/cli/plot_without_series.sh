fragsim sweep -q small.csv -o r.h5 && fragsim plot r.h5 timeline -o t.svg
