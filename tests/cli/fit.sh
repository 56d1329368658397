# By hand: in units of 2 MiB the device gives 6 + 4 + 30 MiB at the peak.
fragsim fit small.csv -q -p direct --csv - | cut -d, -f1-4,7,9-15
fragsim fit small.csv -q -p direct -p torch --frontier frontier.csv -j 3
cat frontier.csv
fragsim fit small.csv -q -p direct -p torch --frontier - -j 1 | cmp - frontier.csv
fragsim fit small.csv -p direct --csv frontier.csv
fragsim fit small.csv -p direct --csv a --json a
fragsim fit small.csv -p direct --device 3
echo $?
