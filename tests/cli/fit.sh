# By hand: in units of 2 MiB the device gives 6 + 4 + 30 MiB at the peak.
fragsim fit small.csv -q -p direct --csv - | cut -d, -f1-4,7,9-15
fragsim fit small.csv -q -p direct -p torch --frontier frontier.csv -j 3
cat frontier.csv
fragsim fit small.csv -q -p direct -p torch --frontier - -j 1 | cmp - frontier.csv
fragsim fit small.csv -p direct --csv frontier.csv
fragsim fit small.csv -p direct --csv a --json a
fragsim fit small.csv -p direct --device 3
echo $?
# Whether it fits, by each bound; one at a time.
fragsim fit small.csv small.csv -q -p direct -p torch -c 39MiB
echo $?
fragsim fit small.csv -q -p direct -p torch --process-limit 40MiB --csv - |
    cut -d, -f3,4,10,20
fragsim fit small.csv -q -p direct --gpu t4 | tail -n 1
fragsim fit small.csv -q -p direct -c inf
echo $?
fragsim fit small.csv -c 1GiB --gpu t4
fragsim fit small.csv --gpu t5
echo $?
