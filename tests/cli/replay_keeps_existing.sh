echo precious >r.h5
fragsim replay small.csv -p direct -o r.h5
code=$?
cat r.h5
exit $code
