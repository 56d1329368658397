# The worked examples of leaks: the sites with stacks, and the sizes without;
# the time until a device is full; a job that does not leak; one with too few
# steps to say.
bundled=$(dirname "$0")/../../traces/bundled
fragsim leaks -q "$bundled/leak_frames.pickle.xz" -c 80GiB
fragsim leaks -q "$bundled/leak.pickle.xz" "$bundled/multistream.pickle.xz"
fragsim leaks -q "$bundled/gpt2_train.pickle.xz"
fragsim leaks -q small.csv
fragsim leaks -q "$bundled/leak_cpp.pickle.xz" -c 1GiB -p best_fit --json - |
    grep -A4 '"results"' | cut -c1-900
fragsim leaks -q "$bundled/leak_frames.pickle.xz" --step-mark nothing 2>message
echo "$? $(sed 's,[^ ]*/bundled,BUNDLED,' message)"
# --fail: a leak, none, unknown, several traces, a trace that cannot be read.
for traces in leak gpt2_train 'leak gpt2_train' 'leak none'; do
    files=$(for name in $traces; do echo "$bundled/$name.pickle.xz"; done)
    # shellcheck disable=SC2086 # the files are words
    fragsim leaks -q --fail $files >shown 2>&1
    echo "$traces: $?"
done
fragsim leaks -q --fail small.csv >shown
echo "unknown: $?"
# Pictures: of one trace, never over a file, whole or not at all.
without=$(dirname "$(command -v fragsim)")
for bad in '-o leaks.gif' '-o out.svg' '-o none/leaks.svg'; do
    echo kept >out.svg
    # shellcheck disable=SC2086 # the options are words
    fragsim leaks -q small.csv $bad 2>&1 >shown | head -n 1
    cat out.svg
done
PATH=$without fragsim steps -q small.csv -o steps.svg 2>&1 >shown | head -n 1
ls ./*.svg
fragsim leaks -q "$bundled/leak_frames.pickle.xz" --gpu h200 --json - | grep -o '"capacity_bytes": [0-9]*'
