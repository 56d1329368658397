# Each unknown name has the nearest known one in its message.
fragsim replay small.csv -p max_split_size_mb:64
try() {
    fragsim "$@"
    echo "$?"
}
try replay small.csv -p best-fit
try replay small.csv -p RMM-POOL
try replay small.csv -p bfc:fragmantation=yes
try replay small.csv -p torch:expandable_segment:True
try replay small.csv -p torch:garbage_collection:0.6
try replay small.csv -p torch:expandable_segments=True
try replay small.csv -p torch:qqqqqqq:1
try gen training:step=5 -o t.h5
try gen trainig -o t.h5
try plot small.csv comprae -o c.svg
try plot small.csv small.csv -o c.svg
# A text that means something else has the right form in its message.
try replay small.csv -p torch,best_fit
try replay small.csv -p tlsf:segment=2MiB,best_fit:segment=2MiB
try replay small.csv -p PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
try replay small.csv -o x.csv
try sweep small.csv -o x.json
ls
# A parameter has one value.
try replay small.csv -p best_fit:segment=2MiB,segment=4MiB
