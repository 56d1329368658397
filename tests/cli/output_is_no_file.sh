# A device or a folder is never renamed over.
mkdir folder
fragsim replay small.csv -q -p direct -f -o folder
echo $?
fragsim replay small.csv -q -p direct -f -o /dev/full
echo $?
fragsim import small.csv -q -f -o /dev/full
echo $?
test -c /dev/full && ls
