# What grew, between two moments, two traces and two result files.
bundled=$(dirname "$0")/../../traces/bundled
cp "$bundled"/leak*.pickle.xz .
# The worked example of the manual.
fragsim diff leak_frames.pickle.xz leak_frames.pickle.xz --at 1000 --at 3000
fragsim diff leak_frames.pickle.xz leak.pickle.xz --fail-over 0%
fragsim diff leak_cpp.pickle.xz leak_frames.pickle.xz --fail-over 47%
echo $?
fragsim diff leak_cpp.pickle.xz leak_frames.pickle.xz --fail-over 48% --rows 1
echo $?
fragsim diff leak_cpp.pickle.xz leak_frames.pickle.xz --by function --fail-over 2% --json - |
    tail -n +4 | cut -c1-90
# Result files. A run that only one file has is printed; one that fails at
# once reserves less, so more OOMs count as growth.
fragsim replay leak.pickle.xz -q -p torch -p best_fit -c 440MiB --stop-at-oom -o before.h5 >table
fragsim replay leak.pickle.xz -q -p torch -p best_fit -c 440MiB -c inf -o after.h5 >table
fragsim diff before.h5 after.h5 --fail-over 2%
echo $?
fragsim diff after.h5 before.h5 --fail-over 2%
echo $?
fragsim diff before.h5 after.h5 --fail-over 1% --json - | tail -n +4 |
    sed 's/.*"policy": \("[^"]*"\).*\("fails": [a-z]*\).*/\1 \2/'
fragsim replay leak.pickle.xz -q -p bfc -o other.h5 >table
fragsim diff before.h5 other.h5
echo $?
