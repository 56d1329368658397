# A shell takes the answer as it is; the last line is the one to export.
cat >growing.csv <<'END'
op,id,bytes,stream
alloc,1,104857600,0
free,1,0,0
alloc,1,133169152,0
free,1,0,0
END
fragsim tune growing.csv -q >answer
. ./answer
test "$(tail -n 1 answer)" = "export PYTORCH_CUDA_ALLOC_CONF='$PYTORCH_CUDA_ALLOC_CONF'" && echo sourced
grep -c -v '^#' answer
cat answer
fragsim tune growing.csv -q --torch-version 2.10 | tail -n 1
fragsim tune growing.csv -q --worth 0.5 | tail -n 1
fragsim tune growing.csv -q -c 200MiB --simplest | tail -n 1

# No setting survives: the exit code is 1, and eval runs nothing.
fragsim tune growing.csv -q -c 127MiB >answer
echo $?
grep -c -v '^#' answer
tail -n 1 answer
PYTORCH_CUDA_ALLOC_CONF=mine
eval "$(fragsim tune growing.csv -q -c 127MiB)"
echo $PYTORCH_CUDA_ALLOC_CONF

# The requests alone exceed the capacity: no setting is tried.
fragsim tune growing.csv -q -c 120MiB
echo $?
fragsim tune growing.csv -q -c 120MiB --json - | sed 1,4d

# A name is data: each line of the answer but the last is a comment.
cp growing.csv "$(printf "job\nexport EVIL=1 #.csv")"
fragsim tune job* -q >answer
grep -c -v '^#' answer
. ./answer
echo "${EVIL-safe}"
fragsim tune job* growing.csv -q >answer
grep -v '^#' answer
fragsim tune job* -q -c 120MiB
echo $?
