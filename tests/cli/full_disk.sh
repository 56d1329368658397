# A limit on the size of files stands for a disk that is full.
(ulimit -f 1 && fragsim replay small.csv -q -p direct -o r.h5 2>&1)
echo $?
ls
