# PyTorch's memory summary, and the fragmentation, at any event.
traces=$(dirname "$0")/../../traces/bundled
fragsim summary -q "$traces/gpt2_train.pickle.xz" --at peak
fragsim summary -q "$traces/gpt2_train.pickle.xz" --at peak -p best_fit -c 0.9x
fragsim summary -q "$traces/lstm_varlen__cap_below.pickle.xz" --at oom |
    head -n 8
fragsim summary -q "$traces/lstm_varlen__cap_below.pickle.xz" --at 3 |
    grep '^| Allocations'
# Without the limit of the counters' file, the request is met.
fragsim summary -q "$traces/lstm_varlen__cap_below.pickle.xz" --recorded-limit 100GiB \
    --at oom | sed -n 's/^note: \(.\{80\}\).*/\1/p'
fragsim summary -q "$traces/late_start.pickle.xz" --at 3 | tail -n 3
# A trace without a recorded allocator: the default settings.
fragsim summary small.csv | sed -n '2p; $p'
fragsim summary small.csv -p direct --json - | sed '2,3d'
for at in foo 99 oom -1; do
    fragsim summary small.csv --at "$at"
    echo $?
done
fragsim summary small.csv --device 3
echo $?
fragsim summary small.csv -p torch@recorded
echo $?
