fragsim tune small.csv --without large_segments
fragsim tune small.csv -c 1GiB --gpu l4
fragsim tune small.csv --gpu l5
fragsim tune small.csv --torch-version 1.13
fragsim tune small.csv --torch-version 2.x
fragsim tune small.csv --json small.csv
fragsim tune small.csv --device 1
fragsim tune nothing.csv
echo $?
