fragsim import small.csv -q -o t.h5 --repeat 3 && fragsim info t.h5 | grep requests
fragsim import small.csv -q -o t.h5
echo $?
