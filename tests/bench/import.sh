#!/usr/bin/env bash
# import.sh [PAIRS]: the rates of the importers, as a table: MB and events for
# each second of processor time of `fragsim info`, beside that of wc -l on the
# same file, and the peak of memory of a reader that gets the log from a pipe.
# The logs are those of long_logs.py; the .xz row compares with `xzcat | wc -c`.
# Each number is the best of 3 runs.
#
# Environment: FRAGSIM (the tool, a Release build).
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
tool=${FRAGSIM:-$here/../../build/fragsim}
pairs=${1:-500000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
TIMEFORMAT='%U %S'

# best COMMAND...: the least processor time of three runs, in seconds. A command that
# fails ends the benchmark.
best() {
    "$@" >"$folder/out" 2>&1 || {
        printf 'import.sh: failed: %s\n' "$*" >&2
        cat "$folder/out" >&2
        return 1
    }
    for _ in 1 2 3; do { time "$@" >"$folder/out" 2>&1; } 2>&1; done |
        awk '{ print $1 + $2 }' | sort -n | head -n 1
}

# The peak of memory in KiB. Pages of a mapped file would count, so the log
# comes from a pipe.
peak() {
    python3 -c 'import os, subprocess, sys
log = subprocess.Popen(["cat", sys.argv[2]], stdout=subprocess.PIPE)
run = subprocess.Popen([sys.argv[1], "info", "-"], stdin=log.stdout,
                       stdout=subprocess.DEVNULL)
print(os.wait4(run.pid, 0)[2].ru_maxrss)' "$tool" "$1"
}

count_xz() { xzcat "$1" | wc -c; }

# row NAME FILE BYTES EVENTS COMMAND...: COMMAND is compared with the import.
row() {
    local name=$1 file=$2 bytes=$3 events=$4 own other
    shift 4
    own=$(best "$tool" info "$file")
    other=$(best "$@")
    awk -v name="$name" -v b="$bytes" -v n="$events" -v s="$own" \
        -v o="$other" -v kib="$(peak "$file")" 'BEGIN {
        s = s > .001 ? s : .001; o = o > .001 ? o : .001
        printf "%-14s %7.0f %9d %8.2f %7.0f %9.2f %8.0f %9.0f\n", name, b / 1e6,
               n, s, b / 1e6 / s, n / 1e6 / s, b / 1e6 / o, kib / 1024 }'
}

printf '%-14s %7s %9s %8s %7s %9s %8s %9s\n' format MB events cpu_s MB/s \
    Mevents/s 'wc MB/s' peak_MiB
for format in csv static rmm kineto torch record; do
    log=$folder/$format
    python3 "$here/../long_logs.py" "$format" "$pairs" >"$log"
    row "$format" "$log" "$(stat -c %s "$log")" $((2 * pairs)) wc -l "$log"
    [ "$format" = torch ] && {
        xz -1 -T0 -k "$log"
        row torch.xz "$log.xz" "$(stat -c %s "$log")" $((2 * pairs)) \
            count_xz "$log.xz"
    }
    rm -f "$log" "$log.xz"
done
