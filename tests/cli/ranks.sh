# The example of the manual, and its JSON; ranks whose recordings report OOMs;
# files of one trace with two devices.
bundled=$(dirname "$0")/../../traces/bundled
ln -s "$bundled"/*.pickle.xz .
fragsim ranks multistream.pickle.xz leak_frames.pickle.xz -c 700MiB
fragsim ranks -q lstm_varlen__cap_below.pickle.xz \
    lstm_varlen__cap_tight_exp.pickle.xz -p torch
fragsim ranks multistream.pickle.xz -q --json - | sed '2,3d'
fragsim ranks lstm_varlen__cap_below.pickle.xz --json a.json
grep -c '"notes": \["device 0: the memory limit' a.json
fragsim ranks lstm_varlen__cap_below.pickle.xz --json a.json
echo $?
fragsim ranks multistream.pickle.xz -p torhc
echo $?
fragsim ranks multistream.pickle.xz --step-mark nothing
echo $?
