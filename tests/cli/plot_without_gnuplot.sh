fragsim replay small.csv -q -p direct -o r.h5 >/dev/null
tool=$(command -v fragsim)
PATH=/nowhere "$tool" plot r.h5 compare -o c.svg --keep kept
code=$?
ls . kept
exit $code
