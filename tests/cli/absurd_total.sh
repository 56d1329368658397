# A device has no unlimited total; one of any capacity serves every request.
for total in inf 5TiB 4096GiB; do
    fragsim replay -q small.csv -p torch:expandable_segments:True \
        --total $total --json - 2>&1 | grep -o 'fragsim replay: .*\|"num_ooms": [0-9]*'
done
for verb in validate summary "export -f csv"; do
    fragsim $verb --total inf small.csv 2>&1 | head -n 1
done
fragsim replay -q small.csv -p torch:expandable_segments:True -p rmm_arena \
    -c inf,4TiB,100TiB --json - | grep -o '"num_ooms": [0-9]*'
