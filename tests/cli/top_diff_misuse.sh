# What top and diff cannot answer.
bundled=$(dirname "$0")/../../traces/bundled
cp "$bundled"/leak*.pickle.xz "$bundled"/late_start.pickle.xz .
fragsim replay small.csv -q -o small.h5 >table
refused() {
    fragsim "$@" && echo "accepted: $*"
    echo $?
}
refused top leak.pickle.xz --by site
refused top leak.pickle.xz --filter train.py
refused top leak.pickle.xz --folded -
refused top leak.pickle.xz --at oom
refused top leak.pickle.xz --at top
refused top leak.pickle.xz --by sites
refused top leak.pickle.xz --json a --folded a
refused top small.h5
refused diff leak.pickle.xz
refused diff leak.pickle.xz small.h5
refused diff small.h5 leak.pickle.xz
refused diff small.h5 small.h5 --by size
refused diff leak.pickle.xz leak.pickle.xz --fail-over 2
refused diff leak.pickle.xz leak.pickle.xz --fail-over -2%
refused diff leak.pickle.xz leak_frames.pickle.xz --by site
refused diff - -
refused diff leak.pickle.xz nothing.pickle
