# A limit on the size of files stands for a disk that is full.
(ulimit -f 1 && fragsim replay small.csv -q -p direct -o r.h5 2>&1)
echo $?
(ulimit -f 1 && fragsim replay small.csv -q -p direct --json r.json 2>&1)
echo $?
fragsim replay small.csv -q -p direct --json /dev/full 2>&1
echo $?
ls
