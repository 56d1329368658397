# A shell takes the answer as it is; the last line is the one to export.
fragsim tune small.csv -q --no-vmm --no-hold-out --evaluations 0 >answer
. ./answer
test "$(tail -n 1 answer)" = "export PYTORCH_CUDA_ALLOC_CONF='$PYTORCH_CUDA_ALLOC_CONF'" && echo sourced
grep -c -v '^#' answer

# Several knobs are almost as good: the ladder has them, the simplest is chosen.
cat >four.csv <<'END'
op,id,bytes,stream
alloc,1,5242880,0
alloc,2,5242880,0
alloc,3,5242880,0
free,2,0,0
alloc,4,12582912,0
END
fragsim tune four.csv -q --no-hold-out --evaluations 0 >answer
sed -n '/^# what/,/^# of/p; /^# the chosen/,$p' answer
fragsim tune four.csv -q --no-hold-out --evaluations 0 --torch-version 2.10 | tail -n 1
fragsim tune four.csv -q --no-hold-out --evaluations 0 -c 28MiB --simplest | tail -n 1

# No setting survives: the exit code is 1, and eval runs nothing.
fragsim tune four.csv -q -c 25MiB --without expandable_segments --no-hold-out --evaluations 0 >answer
echo $?
grep -c -v '^#' answer
grep 'no setting' answer
PYTORCH_CUDA_ALLOC_CONF=mine
eval "$(fragsim tune four.csv -q -c 25MiB --without expandable_segments --no-hold-out --evaluations 0)"
echo $PYTORCH_CUDA_ALLOC_CONF

# The requests alone exceed the capacity: there is no search.
fragsim tune four.csv -q -c 20MiB
echo $?
fragsim tune four.csv -q -c 20MiB --json - | sed 1,4d

# A name is data: each line of the answer but the last is a comment.
cp four.csv "$(printf "job\nexport EVIL=1 #.csv")"
fragsim tune job* -q --evaluations 0 >answer
grep -c -v '^#' answer
. ./answer
echo "${EVIL-safe}"
fragsim tune job* four.csv -q --evaluations 0 >answer
grep -v '^#' answer
fragsim tune job* -q -c 20MiB
echo $?
