echo 'free,9,0,0' >>small.csv
fragsim replay small.csv -o r.h5 --csv r.csv
code=$?
ls
exit $code
