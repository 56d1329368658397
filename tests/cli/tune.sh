# A shell takes the answer as it is; the last line is the one to export.
cat >growing.csv <<'END'
op,id,bytes,stream
alloc,1,104857600,0
free,1,0,0
alloc,1,133169152,0
free,1,0,0
END
fragsim tune growing.csv -q -c inf >answer
. ./answer
grep -c -v '^#' answer
cat answer
fragsim tune growing.csv -q -c 200MiB --torch-version 2.10 | tail -n 1

# Nothing is enough: the exit code is 1, and eval runs nothing. Below what the
# requests alone need, no allocator helps.
for size in 127MiB 120MiB; do
    fragsim tune growing.csv -q -c $size >answer
    echo $?
    grep -c -v '^#' answer
    cat answer
done
PYTORCH_CUDA_ALLOC_CONF=mine
eval "$(fragsim tune growing.csv -q -c 127MiB)"
echo $PYTORCH_CUDA_ALLOC_CONF
fragsim tune growing.csv -q --gpu t4 --json - | sed 1,4d

# A name is data: each line of the answer but the last is a comment.
cp growing.csv "$(printf "job\nexport EVIL=1 #.csv")"
fragsim tune job* -q -c inf >answer
grep -c -v '^#' answer
. ./answer
echo "${EVIL-safe}"
fragsim tune job* growing.csv -q -c inf >answer
grep -v '^#' answer
fragsim tune job* -q -c 120MiB
echo $?
