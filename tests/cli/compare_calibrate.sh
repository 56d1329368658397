# By hand: 3000 ns and 200 ns a MiB, in the rounds that count.
calls="va_reserve va_free phys_create phys_release map unmap segment_alloc segment_free small_alloc small_free copy synchronize"
{
    echo "# device by hand"
    echo call,bytes,round,ns
    for call in $calls; do
        for mib in 1 2 4 8 16; do
            echo "$call,$((mib << 20)),0,1"
            echo "$call,$((mib << 20)),1,$((9000 + 200 * mib))"
            echo "$call,$((mib << 20)),2,$((3000 + 200 * mib))"
        done
    done
} >calls.csv
fragsim compare --calibrate calls.csv
fragsim compare --calibrate calls.csv --csv costs.csv >/dev/null
head -4 costs.csv
fragsim replay small.csv -q -p direct --costs costs.csv --csv - >/dev/null || echo "--costs does not read it"
fragsim compare --calibrate calls.csv --csv - | cmp - costs.csv
fragsim compare --calibrate calls.csv --csv costs.csv 2>/dev/null || echo "kept: $?"
fragsim compare --calibrate calls.csv --calls x 2>/dev/null || echo "no use: $?"
fragsim compare --calibrate small.csv 2>/dev/null || echo "bad input: $?"
# What belongs to one of the two is refused by the other.
for options in "small.csv small.csv --calibrate" "--calibrate -p torch" "--calibrate --check" \
    "--calibrate --json -" "--calibrate --costs h200" "--calibrate --repeat 10001" \
    "small.csv --calls x" "small.csv --repeat 1001" ""; do
    fragsim compare $options 2>/dev/null
    echo "compare $options: $?"
done
fragsim compare --calibrate --device-number 99999999999 2>/dev/null || echo "no such GPU: $?"
