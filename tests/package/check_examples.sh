#!/usr/bin/env bash
# check_examples.sh: checks the scripts of tests/examples: a nightly batch, RMM's
# resources, the command of the job of Kubernetes, and a sweep under GNU parallel that
# is killed and run again (left out if parallel is missing; check_slurm.sh tests the
# script for Slurm).
# Environment: FRAGSIM (the tool; default build/fragsim).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
fragsim=$(realpath "${FRAGSIM:-$root/build/fragsim}")
[ -x "$fragsim" ] || {
    echo "check_examples: no tool at $fragsim; skipped"
    exit 77
}
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/in" "$folder/night" "$folder/out"
cat >"$folder/bin/fragsim" <<TOOL
#!/bin/sh
echo \$\$ >>"$folder/pids"
exec "$fragsim" "\$@"
TOOL
chmod +x "$folder/bin/fragsim"
export PATH="$folder/bin:$PATH"

fail() {
    echo "check_examples: $*" >&2
    exit 1
}

# One file is a recording, the other is not.
cp "$root/traces/bundled/leak.pickle.xz" "$folder/in/"
echo "no recording" >"$folder/in/notes.txt"
SOURCE_DATE_EPOCH=0 "$root/tests/examples/nightly.sh" "$folder/in" \
    "$folder/night" 2>"$folder/words"
[ $? -eq 3 ] || fail "nightly: expected exit code 3: $(cat "$folder/words")"
grep -q notes.txt "$folder/words" || fail "nightly: no message about notes.txt"
[ "$(cat "$folder"/night/*.csv | wc -l)" -eq 16 ] || fail "nightly: expected 15 rows"
command -v gnuplot >/dev/null && { [ -s "$(ls "$folder"/night/*.svg)" ] ||
    fail "nightly: no figure"; }
rm "$folder/in/notes.txt"
"$root/tests/examples/nightly.sh" "$folder/in" "$folder/night" \
    2>"$folder/words" || fail "nightly: $(cat "$folder/words")"
"$root/tests/examples/nightly.sh" "$folder/in" "$folder/night" 1GiB \
    2>"$folder/words" || fail "nightly: $(cat "$folder/words")"
"$root/tests/examples/nightly.sh" "$folder/in" "$folder/night" 1MiB \
    2>"$folder/words"
[ $? -eq 1 ] || fail "nightly: expected exit code 1 for a size that is too small"
grep -q "does not fit in 1 MiB" "$folder"/night/*.need.txt ||
    fail "nightly: what does not fit is not named"

"$root/tests/examples/rmm_choice.sh" \
    "$root/traces/bundled/recorded/rmm_query.dev0.csv.xz" 1GiB \
    >"$folder/words" || fail "rmm_choice: $(cat "$folder/words")"
[ "$(grep -c '^rmm_\|^cuda_async ' "$folder/words")" -eq 9 ] ||
    fail "rmm_choice: expected 9 rows: $(cat "$folder/words")"
grep -q '^cuda_async  *928 MiB ' "$folder/words" ||
    fail "rmm_choice: cuda_async fits from another size: $(cat "$folder/words")"

cat >"$folder/grid" <<GRID
trace $root/traces/bundled/leak.pickle.xz
trace $root/traces/bundled/cudagraph.pickle.xz
policy torch
$(printf 'policy torch:max_split_size_mb:%d\n' $(seq 21 60))
capacity inf,1.1x
GRID
fragsim sweep -q --grid "$folder/grid" -o "$folder/alone.h5" || fail "the sweep fails"

# What a pod of each index runs, in a folder instead of the volume.
mkdir "$folder/data"
cp "$folder/grid" "$folder/data"
fragsim sweep -q --grid "$folder/data/grid" -o "$folder/data/alone.h5" ||
    fail "the sweep fails"
job=$root/tests/examples/kubernetes_sweep.yaml
pod=$(sed -n '/- >-$/,/^ *resources:/{/>-$/d; /resources:/d; s/^ *//; p}' "$job" |
    tr '\n' ' ' | sed "s#/data#$folder/data#g")
parts=$(sed -n 's/^ *completions: //p' "$job")
for ((index = 0; index < parts; index++)); do
    JOB_COMPLETION_INDEX=$index sh -c "$pod" ||
        fail "kubernetes: part $index fails: $pod"
done
fragsim merge -q "$folder/data/sweep.h5" "$folder"/data/part-*.h5 ||
    fail "kubernetes: the parts do not merge"
cmp "$folder/data/sweep.h5" "$folder/data/alone.h5" ||
    fail "kubernetes: the merged file differs"

command -v parallel >/dev/null || {
    echo "check_examples: without GNU parallel"
    exit 0
}
# The first run ends as if the machine went down. The jobs of parallel are in
# other process groups, so each is killed by its id.
setsid "$root/tests/examples/parallel_sweep.sh" "$folder/grid" "$folder/out" 5 \
    >"$folder/words" 2>&1 &
group=$!
: >"$folder/pids"
while [ ! -e "$folder/out/part-2.h5.part/lock" ] && kill -0 $group; do
    sleep 0.01
done 2>/dev/null
kill -9 -- -$group 2>/dev/null
wait $group 2>/dev/null
while read -r job; do
    while [ "$(readlink "/proc/$job/exe")" = "$fragsim" ]; do
        kill -9 "$job" 2>/dev/null
        sleep 0.01
    done
done <"$folder/pids"
"$root/tests/examples/parallel_sweep.sh" "$folder/grid" "$folder/out" 5 \
    >"$folder/words" 2>&1 || fail "parallel: $(cat "$folder/words")"
cmp "$folder/out/sweep.h5" "$folder/alone.h5" ||
    fail "parallel: the merged file differs"
[ "$(grep -c sweep "$folder/out/joblog")" -ge 5 ] || fail "parallel: no joblog"
