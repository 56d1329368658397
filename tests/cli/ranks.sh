# Several traces are ranks: a table below the answers of steps and top; nothing
# for one. One rank dies in the replay, one in its recording, one has no times.
bundled=$(dirname "$0")/../../traces/bundled
ln -s "$bundled"/*.pickle.xz .
fragsim steps -q multistream.pickle.xz leak_frames.pickle.xz -c 700MiB | tail -n 6
fragsim steps -q lstm_varlen__cap_below.pickle.xz small.csv | sed -n '/^rank/,$p'
fragsim steps -q small.csv small.csv -c 40MiB | sed -n '/^rank/,$p'
fragsim top multistream.pickle.xz leak_frames.pickle.xz --rows 1
for command in steps top; do
    fragsim $command -q small.csv | grep -c '^imbalance'
    fragsim $command -q --json - small.csv | grep -c imbalance
    fragsim $command -q --json - small.csv leak_frames.pickle.xz |
        sed -n '/^ "imbalance/,$p'
done
fragsim top small.csv missing.csv --rows 1
echo $?
fragsim top small.csv small.csv --folded -
echo $?
