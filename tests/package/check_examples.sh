#!/usr/bin/env bash
# check_examples.sh: checks the scripts of tests/examples: a nightly batch, RMM's
# resources, the policy review (left out if gnuplot is missing), the command of the job
# of Kubernetes, and a sweep under GNU parallel that is killed and run again (left out
# if parallel is missing; check_slurm.sh tests the script for Slurm).
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

# The policy review: the counts of its answer are those of single replays.
review() {
    out=$1
    shift
    "$root/tests/examples/policy_review.sh" "$folder/$out" "$@" 2>"$folder/words"
}
states() {
    tr '\n' ' ' <"$folder/$1/report.html" | grep -qF -- "$2" ||
        fail "policy_review: $1 does not state: $2"
}
# The number of runs of these recordings with OOMs, with a policy.
deaths() {
    policy=$1
    shift
    for multiple in 1.02x 1.05x 1.1x 1.2x 1.5x 2x; do
        fragsim replay -q "$@" -p "$policy" -c "$multiple" --csv -
    done | awk -F'arena,' '/arena/ { split($2, c, ","); dead += c[12] > 0 }
        END { print dead }'
}
if command -v gnuplot >/dev/null; then
    leak=$root/traces/bundled/leak.pickle.xz
    graph=$root/traces/bundled/cudagraph.pickle.xz
    lstm=$root/traces/bundled/lstm_varlen__cap_below.pickle.xz
    review two "$graph" "$lstm"
    [ $? -eq 0 ] || fail "policy_review: $(cat "$folder/words")"
    states two "<b>Yes, with a way back for some jobs.</b> Of 12 runs of 2"
    states two "$(deaths torch "$graph" "$lstm") die with PyTorch's default"
    states two "and $(deaths torch:expandable_segments:True "$graph" \
        "$lstm") with expandable segments: the switch rescues 2 and loses 1."
    states two "<code>cudagraph</code> (+80 MiB, +11.0 %)"
    states two 'class="l">1.20x</td><td>2</td><td>0</td><td>1</td>'
    states two "exact on 2 of 2 devices"
    # A row for each job on the first page, each job in one row.
    page=$(sed '/<h2 class="page">/,$d' "$folder/two/preface.html")
    for job in cudagraph lstm_varlen__cap_below; do
        [ "$(grep -c "<td class=\"l\">$job</td>" <<<"$page")" = 1 ] ||
            fail "policy_review: the first page has not one row for $job"
        [ "$(grep -c "<td class=\"l\">$job</td>" "$folder/two/preface.html")" = 1 ] ||
            fail "policy_review: the preface has not one row for $job"
    done
    # No table is wider than its page in a window of 1280 pixels.
    if command -v chromium >/dev/null; then
        cat >"$folder/wide.js" <<'SCRIPT'
<script>addEventListener("load", () => document.title = "too wide:" +
[...document.querySelectorAll(".wide")].filter(w => w.scrollWidth >
w.clientWidth + 1).map(w => w.innerText.slice(0, 40)).join(";"))</script>
SCRIPT
        sed "/<\/body>/e cat '$folder/wide.js'" "$folder/two/report.html" \
            >"$folder/wide.html"
        chromium --headless --no-sandbox --disable-gpu --window-size=1280,900 \
            --user-data-dir="$folder/profile" --dump-dom \
            "file://$folder/wide.html" >"$folder/wide.dom" 2>/dev/null
        grep -q "<title>too wide:</title>" "$folder/wide.dom" ||
            fail "policy_review: $(grep -o '<title>[^<]*' "$folder/wide.dom")"
    fi
    review one "$leak" || fail "policy_review: $(cat "$folder/words")"
    states one "<b>No.</b> Of 6 runs of 1 recording on"
    states one "No recording needs a larger device."
    mkdir "$folder/other"
    cp "$lstm" "$folder/other/leak.pickle.xz"
    review same "$leak" "$folder/other/leak.pickle.xz"
    [ $? -eq 3 ] || fail "policy_review: expected exit code 3 for equal names"
    grep -q "two traces have the name leak" "$folder/words" ||
        fail "policy_review: equal names: $(cat "$folder/words")"
fi

cat >"$folder/grid" <<GRID
trace $root/traces/bundled/leak.pickle.xz
trace $root/traces/bundled/cudagraph.pickle.xz
param max_split_size_mb=21..60:1
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
