# A limit on the size of files stands for a disk that is full.
(ulimit -f 1 && fragsim replay small.csv -q -p direct -o r.h5 2>&1)
echo $?
(ulimit -f 1 && fragsim replay small.csv -q -p direct --json r.json 2>&1)
echo $?
ln -s /dev/full full # a failure would replace the device itself
fragsim replay small.csv -q -p direct --json full 2>&1
echo $?
ls
