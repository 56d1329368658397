fragsim replay small.csv -q -p direct --json - >/dev/full; echo $?
fragsim replay small.csv -q -p direct --csv - >/dev/full; echo $?
fragsim replay small.csv -q -p direct >/dev/full; echo $?
fragsim info small.csv >/dev/full; echo $?
fragsim policies >/dev/full; echo $?
fragsim help >/dev/full; echo $?
