#!/usr/bin/env bash
# sweep.sh [THREADS]...: measures sweeps of 12 policies x 5 capacities on 1 and on
# THREADS threads (default 2), in turns: of 20 default recordings, and of the same
# with the long recording. Prints medians: seconds, processor time, peak of memory,
# the part of the cores that is used (processor time over THREADS times the
# seconds), and the speed relative to THREADS times one thread; the last two with
# their least and largest values. Where cores slow each other down, the speed is
# lower than the use. Fails if two result files differ.
#
# With OLD, another build of the tool, that one runs in the same turns.
# Environment: FRAGSIM, OLD, FRAG_SHARED_DIR, TURNS (3).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
shared=${FRAG_SHARED_DIR:-$root/../shared}
fragsim=${FRAGSIM:-$root/build/fragsim}
turns=${TURNS:-3}
[ $# -gt 0 ] || set -- 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

recordings() {
    find "$shared/recorded/dev" -name '*.pickle.xz' |
        grep -vE '__|_frames|_kineto|_cpp' | sort
}
long() { find "$shared/recorded/large" -name '*.pickle.xz' | sort | head -n 1; }

# A grid of the traces in stdin.
grid() {
    sed 's/^/trace /'
    for policy in torch torch:expandable_segments:True first_fit best_fit tlsf \
        buddy bfc rmm_pool cupy cuda_async; do
        echo "policy $policy"
    done
    echo "capacity inf,1.2x,1.1x,1.05x,1.01x"
}

# one TOOL GRID THREADS OUTPUT: seconds, processor seconds and MiB.
one() {
    python3 -c 'import os, subprocess, sys, time
start = time.monotonic()
run = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, text=True)
words = run.stderr.read()
_, code, used = os.wait4(run.pid, 0)
if code:
    sys.exit(words)
print(time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
' "$1" sweep --grid "$folder/$2.grid" -j "$3" -f -o "$4"
}

# measure NAME GRID TOOL THREADS...: a line for each number of threads.
measure() {
    local name=$1 grid=$2 tool=$3 first turn n
    shift 3
    for ((turn = 0; turn < turns; turn++)); do
        first=
        for n in 1 "$@"; do
            read -r s cpu mib <<<"$(one "$tool" "$grid" "$n" "$folder/$n.h5")"
            first=${first:-$s}
            cmp "$folder/1.h5" "$folder/$n.h5"
            echo "$s $cpu $mib $first" >>"$folder/$grid.$name.$n"
        done
    done
}

# median FILE EXPRESSION: of the lines; then the least and the largest.
median() {
    awk -v n="$3" "{ print $2 }" "$1" | sort -n | awk '{ v[NR] = $1 }
        END { print v[int((NR + 1) / 2)], v[1], v[NR] }'
}

# The same as "MEDIAN (LEAST..LARGEST)".
spread() {
    median "$@" | awk '{ printf "%.0f (%.0f..%.0f)", $1, $2, $3 }'
}

row() { # GRID NAME THREADS
    local file=$folder/$1.$2.$3
    read -r s _ <<<"$(median "$file" '$1' "$3")"
    read -r cpu _ <<<"$(median "$file" '$2' "$3")"
    read -r mib _ <<<"$(median "$file" '$3' "$3")"
    printf '%-12s %-5s %7d %8.2f %8.2f %6.0f  %-14s %s\n' "$1" "$2" "$3" "$s" \
        "$cpu" "$mib" "$(spread "$file" '100 * $2 / $1 / n' "$3")" \
        "$(spread "$file" '100 * $4 / $1 / n' "$3")"
}

recordings | grid >"$folder/recordings.grid"
{ recordings; long; } | grid >"$folder/with_long.grid"
printf '%-12s %-5s %7s %8s %8s %6s  %-14s %s\n' grid tool threads s cpu_s MiB \
    'use, %' 'speed, %'
for grid in recordings with_long; do
    for name in ${OLD:+old} new; do
        tool=$fragsim
        [ "$name" = new ] || tool=$OLD
        measure "$name" "$grid" "$tool" "$@"
        for n in 1 "$@"; do row "$grid" "$name" "$n"; done
    done
done
