# A shell takes the answer as it is; the last line is the one to export.
fragsim tune small.csv -q --no-vmm --no-hold-out --evaluations 0 >answer
. ./answer
test "$(tail -n 1 answer)" = "export PYTORCH_CUDA_ALLOC_CONF='$PYTORCH_CUDA_ALLOC_CONF'" && echo sourced
grep -c -v '^#' answer
fragsim tune small.csv -q -c 1MiB --no-hold-out --evaluations 0 >answer
echo $?
grep 'no setting' answer
