fragsim replay small.csv -p direct --device 3 -o r.h5
code=$?
ls
exit $code
