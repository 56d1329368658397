fragsim replay nowhere.csv -o r.h5 --json r.json
code=$?
ls
exit $code
