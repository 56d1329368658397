#!/usr/bin/env bash
# make_all.sh [BUILD]: makes again, on a machine without a GPU, every page, figure and
# data file of this folder that such a machine can make, and the paper.
#
# BUILD is the build folder (default: build); the tool is built there first. A step that
# is done leaves a stamp in BUILD/paper/made, with the tool's version and the SHA-256 of
# its script, and is left out while both stay the same: an interrupted run continues
# where it was. At the end the script lists what it skipped, and why. Exit 0: all steps
# that could run succeeded; 1: a step failed; its output is in BUILD/paper/made.
# Environment: FRAG_SHARED_DIR, the folder of recordings (default: ../shared beside the
# repository); JOBS, the number of processors (default: all).
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "${1:-$root/build}" || exit
build=$(cd "${1:-$root/build}" && pwd)
jobs=${JOBS:-$(nproc)}
export FRAG_SHARED_DIR=${FRAG_SHARED_DIR:-$root/../shared}
export FRAGSIM=$build/fragsim FRAG_BUILD_DIR=$build
made=$build/paper/made

# name | what it needs below FRAG_SHARED_DIR (- for nothing) | command in paper/. Steps
# whose input another step makes come after it.
steps="
device         | -                           | python3 tables/device_table.py
estimators     | -                           | python3 gpu/estimators.py page
faults         | -                           | python3 gpu/dry_faults.py page
settings       | oracle/oracle.jsonl.xz      | python3 tables/settings_table.py
explain        | recorded/causes             | python3 tables/explain_table.py
empty_cache    | recorded/dev                | python3 tables/empty_cache_table.py -j $jobs
allocators     | oracle/allocators.jsonl.xz  | python3 tables/allocators_table.py
policy         | recorded/dev                | python3 tables/policy_table.py -j $jobs
related        | foreign/minimalloc          | python3 tables/related_table.py
survival       | recorded/dev                | python3 tables/survival_table.py -j $jobs
pressure       | recorded/dev                | python3 tables/pressure_table.py -j $jobs
live           | -                           | python3 tables/live_table.py
steps          | -                           | python3 tables/steps_table.py
frontier       | -                           | python3 tables/frontier_table.py
open_prs       | recorded/dev                | python3 tables/open_prs_table.py -j $jobs
dead           | recorded/dev                | python3 tables/calibrate.py -j $jobs
tune           | -                           | python3 tables/tune_table.py
dry            | -                           | python3 tables/dry_table.py page
gate           | -                           | python3 tables/gate_table.py page
touched        | recorded/dev                | python3 tables/touched.py -j $jobs
law            | recorded/dev                | python3 tables/law.py -j $jobs
variants       | recorded/dev                | python3 tables/variants.py
opening        | recorded/dev                | python3 tables/opening.py
halves         | recorded/dev                | python3 tables/halves_need.py -j $jobs
truth          | oracle/oracle.jsonl.xz      | python3 tables/truth_table.py -j $jobs
sentences      | -                           | python3 tables/sentences.py
"

skipped="" failed=""
skip() {
    skipped+="  $1: $2"$'\n'
    echo "skipped  $1: $2"
}

# The build
command -v cmake >/dev/null || {
    echo "make_all: cmake is not installed (Debian: ./run demo installs what is missing)" >&2
    exit 1
}
[ -f "$build/CMakeCache.txt" ] || cmake -G Ninja -S "$root" -B "$build" \
    -DCMAKE_BUILD_TYPE=Release || exit 1
cmake --build "$build" -j "$jobs" || exit 1
mkdir -p "$made"
PATH=$build:$PATH

# What a stamp holds if the step need not run again.
stamp_of() {
    "$FRAGSIM" --version | head -n 1
    cat tables/*.py | sha256sum # a table imports others
    for word in $1; do
        [ ! -f "$word" ] || [ "${word##*/}" = fragsim ] || sha256sum <"$word"
    done
}

step() {
    local name=$1 needs=$2 command=$3 begin=$SECONDS code
    if [ "$needs" != - ] && [ ! -e "$FRAG_SHARED_DIR/$needs" ]; then
        skip "$name" "there is no $needs in FRAG_SHARED_DIR"
        return
    fi
    if [ "$(stamp_of "$command")" = "$(cat "$made/$name" 2>/dev/null)" ]; then
        echo "done     $name, by an earlier run"
        return
    fi
    $command >"$made/$name.log" 2>&1
    code=$?
    case $code in
    0)
        stamp_of "$command" >"$made/$name"
        echo "made     $name, $((SECONDS - begin)) s"
        ;;
    77) skip "$name" "$(tail -n 1 "$made/$name.log")" ;;
    *)
        failed+=" $name"
        echo "FAILED   $name, exit $code: $(tail -n 1 "$made/$name.log")"
        ;;
    esac
}

cd "$root/paper" || exit
while IFS='|' read -r name needs command; do
    [ -z "${name// /}" ] || step "${name// /}" "${needs// /}" "$command"
done <<<"$steps"

# The paper: the build knows what it depends on.
for tool in gnuplot latexmk pdflatex; do
    command -v "$tool" >/dev/null || {
        skip paper "$tool is not installed"
        tool=
        break
    }
done
if [ -n "$tool" ]; then
    if cmake --build "$build" --target paper >"$made/paper.log" 2>&1; then
        echo "made     $build/paper/fragsim.pdf"
    else
        failed+=" paper"
        echo "FAILED   paper: $(tail -n 1 "$made/paper.log")"
    fi
fi

echo
echo "Not made here, because a GPU made the data: data/dead_new.csv,"
echo "device_*.csv, dry_faults_gpu.csv, dry_recorded*.csv, dry_repeats.csv, dry_confirmed.csv, explain_real.csv,"
echo "frontier_measured.csv, live.jsonl,"
echo "maps.csv, opening_runs.csv, pool_programs.csv, run_ahead.csv, steps*.csv,"
echo "upstream_gpu*.csv. Nor these, which need PyTorch, another build or public clones:"
echo "data/dry_*.csv, estimators.csv, frontier_predicted.csv, gate.csv,"
echo "public_snapshots.csv, upstream_*.csv; tune*.csv, which fragsim 0.1 made; and corpus*.csv, which"
echo "corpus/make.py makes. README.md names the script of each."
[ -z "$skipped" ] || printf 'Skipped:\n%s' "$skipped"
[ -z "$failed" ] || {
    echo "Failed:$failed; the outputs are in $made"
    exit 1
}
