#!/bin/sh
# sweep.sh [THREADS]: measures a sweep of 20 default recordings x 12 policies x
# 5 capacities, on one thread and on THREADS (default 2). Prints the seconds,
# events per second, peak memory, and the speed relative to THREADS times one
# thread. Fails if the result files differ.
# Environment: FRAGSIM, FRAG_SHARED_DIR.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
shared=${FRAG_SHARED_DIR:-$root/../shared}
fragsim=${FRAGSIM:-$root/build/fragsim}
threads=${1:-2}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

{
    find "$shared/recorded/dev" -name '*.pickle.xz' |
        grep -vE '__|_frames|_kineto|_cpp' | sort | sed 's/^/trace /'
    for policy in torch torch:expandable_segments:True first_fit best_fit tlsf \
        buddy slab bfc rmm_pool cupy cuda_async vma; do
        echo "policy $policy"
    done
    echo "capacity inf,1.2x,1.1x,1.05x,1.01x"
} >"$folder/grid"
for n in 1 "$threads"; do
    /usr/bin/time -a -o "$folder/times" -f "%e %M" \
        "$fragsim" sweep --grid "$folder/grid" -j "$n" -o "$folder/$n.h5" \
        2>>"$folder/words"
done
cat "$folder/words"
cmp "$folder/1.h5" "$folder/$threads.h5"
awk -v n="$threads" 'NR == 1 {one = $1} NR == 2 {
    printf "%s threads: %.0f %% of %s times one thread, %.0f MiB\n", n,
           100 * one / $1 / n, n, $2 / 1024}' "$folder/times"
