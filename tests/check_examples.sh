#!/usr/bin/env bash
# check_examples.sh: checks the scripts of tests/examples: a nightly batch, and
# a sweep under GNU parallel that is killed and run again (left out if parallel
# is missing; check_slurm.sh tests the script for Slurm).
# Environment: FRAGSIM (the tool; default build/fragsim).
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
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
echo "ooms <= 0" >"$folder/rules"
"$root/tests/examples/nightly.sh" "$folder/in" "$folder/night" \
    "$folder/rules" 2>"$folder/words" || fail "nightly: $(cat "$folder/words")"
echo "peak_reserved <= 1MiB" >>"$folder/rules"
"$root/tests/examples/nightly.sh" "$folder/in" "$folder/night" \
    "$folder/rules" 2>"$folder/words"
[ $? -eq 1 ] || fail "nightly: expected exit code 1 for a rule that fails"
grep -q "peak_reserved.*FAILED" "$folder"/night/*.rules.txt ||
    fail "nightly: the rule that failed is not named"

"$root/tests/examples/rmm_choice.sh" \
    "$root/traces/bundled/recorded/rmm_query.dev0.csv.xz" 1GiB \
    >"$folder/words" || fail "rmm_choice: $(cat "$folder/words")"
[ "$(grep -c '^rmm_\|^cuda_async ' "$folder/words")" -eq 9 ] ||
    fail "rmm_choice: expected 9 rows: $(cat "$folder/words")"
grep -q '^cuda_async  *928 MiB ' "$folder/words" ||
    fail "rmm_choice: cuda_async fits from another size: $(cat "$folder/words")"

command -v parallel >/dev/null || {
    echo "check_examples: without GNU parallel"
    exit 0
}
cat >"$folder/grid" <<GRID
trace $root/traces/bundled/leak.pickle.xz
trace $root/traces/bundled/cudagraph.pickle.xz
param max_split_size_mb=21..60:1
capacity inf,1.1x
GRID
fragsim sweep -q --grid "$folder/grid" -o "$folder/alone.h5" || fail "the sweep fails"
# The first run ends as if the machine went down. The jobs of parallel are in
# other process groups, so each is killed by its id.
setsid "$root/tests/examples/parallel_sweep.sh" "$folder/grid" "$folder/out" 5 \
    >"$folder/words" 2>&1 &
group=$!
: >"$folder/pids"
while [ ! -s "$folder/out/part-2.h5.journal" ] && kill -0 $group; do
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
