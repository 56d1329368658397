#!/usr/bin/env bash
# start.sh [OLD]: what short commands cost: milliseconds of processor time (user
# and system) and peak memory of --version, of info on a small snapshot, and of a
# replay of 15,591 events without and with a result file. With OLD, another
# build of the tool, both run in turns, and the table has the ratio new/old of
# each turn: median, least and largest. Where valgrind is installed, it also
# counts the instructions.
#
# Environment: FRAGSIM (the tool, a Release build), TURNS (9), RUNS (20 in a turn).
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
new=${FRAGSIM:-$root/build/fragsim}
old=${1:-}
turns=${TURNS:-9}
runs=${RUNS:-20}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
TIMEFORMAT='%U %S'

train=$root/traces/bundled/gpt2_train.pickle.xz
commands=(
    "--version"
    "info $root/traces/bundled/leak.pickle.xz"
    "replay -q -p best_fit $train"
    "replay -q -p best_fit -f -o $folder/out.h5 $train"
)

repeat() {
    for ((i = 0; i < runs; i++)); do "$@" >"$folder/out" 2>&1; done
}

# ms COMMAND...: of processor time, the mean of the runs of a turn.
ms() {
    { time repeat "$@"; } 2>&1 |
        awk -v n="$runs" '{ printf "%.3f\n", 1000 * ($1 + $2) / n }'
}

# Million instructions; "-" without valgrind.
instructions() {
    command -v valgrind >/dev/null || { echo -; return; }
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 \
        >"$folder/out" |
        awk '/refs:/ { gsub(",", ""); printf "%.1f\n", $NF / 1e6 }'
}

peak() {
    /usr/bin/time -f %M -o "$folder/peak" "$@" >"$folder/out" 2>&1
    awk '{ printf "%.1f\n", $1 / 1024 }' "$folder/peak"
}

# Of the numbers of a column of the file: median, least, largest.
spread() {
    awk -v c="$2" '{ print $c }' "$1" | sort -n | awk '{ v[NR] = $1 }
        END { print v[int((NR + 1) / 2)], v[1], v[NR] }'
}

printf '%-28s %8s %8s %8s %8s %8s %8s  %s\n' command 'ms' 'old ms' Minstr old \
    MiB old 'new/old (least..largest)'
for command in "${commands[@]}"; do
    read -ra words <<<"$command"
    : >"$folder/turns"
    for ((turn = 0; turn < turns; turn++)); do
        a=$(ms "$new" "${words[@]}")
        b=${old:+$(ms "$old" "${words[@]}")}
        echo "$a ${b:--}" | awk '{ print $1, $2, ($2 > 0 ? $1 / $2 : "-") }'
    done >>"$folder/turns"
    read -r a _ <<<"$(spread "$folder/turns" 1)"
    read -r b _ <<<"$(spread "$folder/turns" 2)"
    read -r ratio least most <<<"$(spread "$folder/turns" 3)"
    name=$(basename -a -- "${words[@]}" | grep -vE '^-[qf]$' | tr '\n' ' ')
    printf '%-28.28s %8s %8s %8s %8s %8s %8s  %.5s (%.5s..%.5s)\n' "$name" "$a" "$b" \
        "$(instructions "$new" "${words[@]}")" \
        "${old:+$(instructions "$old" "${words[@]}")}" \
        "$(peak "$new" "${words[@]}")" "${old:+$(peak "$old" "${words[@]}")}" \
        "$ratio" "$least" "$most"
done
