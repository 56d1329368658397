# The worked example of the manual: PyTorch's message states 3.76 GiB allocated
# and 685.84 MiB reserved but unallocated. Then wrong uses.
bundled=$(dirname "$0")/../../traces/bundled
dead=$bundled/lstm_varlen__cap_below.pickle.xz
cp "$dead" dead.pickle.xz
cp "${dead%.pickle.xz}.json" dead.json
fragsim explain -q dead.pickle.xz
echo
mv dead.json elsewhere.json
fragsim explain -q dead.pickle.xz | grep '^  process limit'
fragsim explain -q dead.pickle.xz --stats elsewhere.json | grep '^  process limit'
fragsim explain -q dead.pickle.xz --recorded-limit 5GiB | grep '^  process limit'
fragsim explain -q small.csv -c 30MiB | grep -A 1 ' because '
fragsim explain -q "$bundled/leak_frames.pickle.xz" -c 300MiB | grep -A 2 ' because \| leave behind.*saves'
fragsim explain -q "$bundled/late_start.pickle.xz" | head -n 2 | tail -n 1
# A replay from the recorded layout fails; one on fresh memory does not.
fragsim explain -q "$bundled/late_start.pickle.xz" -c 2GiB | grep -A 1 '^failed\|^What'
fragsim explain -q dead.pickle.xz --process-limit 5GiB | grep '^failed\|^  process limit\|^What'
fragsim explain -q dead.pickle.xz --json answer.json && grep -c '"limit_source": "inferred"' answer.json
echo "--- wrong"
fragsim explain -q dead.pickle.xz --json answer.json
echo $?
fragsim explain -q dead.pickle.xz --at 7
echo $?
fragsim explain -q dead.pickle.xz --at 1226 -c 1GiB
echo $?
fragsim explain -q dead.pickle.xz --process-limit 1GiB -c 1GiB
echo $?
fragsim explain -q dead.pickle.xz -o map.txt
echo $?
fragsim explain -q dead.pickle.xz --device 3
echo $?
