# A program with two weights of 3 MiB, activations of 1 MiB a sample in each of
# two layers, and a workspace of 64 KiB and 2 KiB a sample, at three batch sizes.
record() {
    awk -v b="$1" -v part="${2:-65536}" -v sample="${3:-2048}" 'BEGIN {
        mib = 1048576
        print "op,id,bytes,stream"
        print "alloc,0," 3 * mib ",0\nalloc,1," 3 * mib ",0"
        for (s = 0; s < 3; s++) {
            print "alloc,2," b * mib ",0"
            print "alloc,4," part + sample * b ",0\nfree,4,0,0"
            print "alloc,3," b * mib ",0\nfree,3,0,0\nfree,2,0,0"
        }
    }'
}
record 2 >b2.csv
record 4 >b4.csv
record 6 >b6.csv
fragsim batch 2=b2.csv 4=b4.csv --at 3,8,4 -c 32MiB -p direct -p torch
fragsim batch 2=b2.csv 6=b6.csv 4=b4.csv -c 32MiB -p direct
fragsim batch 2=b2.csv 4=b4.csv --at 8 -p direct --json - |
    sed -E 's/"(tool|command|sha256)": "[^"]*"/"\1": .../g'
# A workspace that is live at the peak: the largest batch is not sure.
record 2 1048576 1572864 >w2.csv
record 4 1048576 1572864 >w4.csv
fragsim batch 2=w2.csv 4=w4.csv --at 3,8 -c 29MiB -p direct
fragsim batch 2=w2.csv 4=w4.csv --at 8,10 -c 29MiB -p direct --json - |
    grep -E 'batch": 8|largest|guessed'
fragsim batch 2=w2.csv 4=w4.csv --at 10 -c 20MiB -p direct
fragsim batch 2=w2.csv 4=w4.csv --at 8 -c 27MiB -p direct | grep fits
# What cannot be answered.
for wrong in "b2.csv 4=b4.csv" "0=b2.csv 4=b4.csv" "2=b2.csv 2=b4.csv" \
    "2=b2.csv 4=b2.csv" "2=b2.csv 4=b4.csv" "2=b2.csv 4=b4.csv --at 3,x" \
    "2=b2.csv 4=b4.csv --at 0" "2=b2.csv 4=b4.csv -c 1GiB,2GiB" \
    "2=b2.csv 4=b4.csv -c 0.9x" "2=b2.csv 4=none.csv -c 1GiB" \
    "2=b2.csv 4=b4.csv -c 1GiB -p torch -p torch"; do
    # shellcheck disable=SC2086
    fragsim batch -q $wrong
    echo $?
done
