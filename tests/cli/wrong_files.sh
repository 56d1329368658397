# A name that no trace has: the message says what to type instead.
mkdir folder empty
cp small.csv folder/run.csv.xz
try() {
    fragsim replay "$@" -o r.h5
    echo "$?"
}
try '*.pickle'
try 'folder/*.pickle'
try folder
try smal.csv
try folder/run.csv
try folder/runn.csv.xz
try empty/run.csv
try nofolder/run.csv
try xyzzy
try small.csv best_fit
try torch:expandable_segments:True small.csv
try small.csv 24GiB
try - -
fragsim info torch@recorded || echo "$?"
ls
# A file with the name of a policy is a trace.
cp small.csv best_fit
fragsim info best_fit | head -1
fragsim sweep small.csv nothing.csv -o r.h5 >table
echo "$?"
# A sweep without a result leaves no file.
for name in 'no*/*.csv' nothing.csv 24GiB; do
    fragsim sweep "$name" -o none.h5
    echo "$?"
    fragsim sweep small.csv "$name" -p best_fit -q -o some.h5 2>/dev/null
    echo "$?"
done
ls -d none.h5* some.h5* 2>/dev/null || :
