fragsim replay small.csv -p first_fit:segmint=2MiB -o r.h5
code=$?
ls
exit $code
