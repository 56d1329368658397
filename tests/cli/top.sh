# What holds memory, on a recording with stacks and on others without.
bundled=$(dirname "$0")/../../traces/bundled
cp "$bundled"/*.pickle.xz .
# The worked example of the manual: each step leaves a block behind.
fragsim top leak_frames.pickle.xz --filter train.py:164 --by age
fragsim top leak_frames.pickle.xz
fragsim top leak_frames.pickle.xz --by stack --rows 2
fragsim top leak_frames.pickle.xz --filter nowhere
fragsim top leak.pickle.xz --rows 3
fragsim top leak_frames.pickle.xz --by class
fragsim top multistream.pickle.xz --by stream
fragsim top cudagraph.pickle.xz -q --by pool --at end
fragsim top lstm_varlen__cap_below.pickle.xz -q --at oom --rows 2
fragsim top late_start.pickle.xz -q --at 300 --by age
# Folded stacks: as many bytes as the table has.
fragsim top leak_frames.pickle.xz --folded - >folded
cut -c1-60 folded
awk '{ sum += $NF } END { print sum }' folded
fragsim top leak_frames.pickle.xz -q --folded again --json json
cmp folded again
tail -n +4 json | head -n 4 | cut -c1-120
