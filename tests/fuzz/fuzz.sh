#!/usr/bin/env bash
# fuzz.sh SECONDS [FORMAT...]: runs the fuzz programs, each format for SECONDS,
# as many at a time as there are processors, and prints a table of them. Exits
# with 1 if an input crashed a reader, ran too long or needed too much memory.
#
# Environment: FUZZ_BIN (folder of the fuzz programs; default
# build-fuzz/tests), FUZZ_SEEDS (folder that fuzz_seeds.py writes; default
# build-fuzz/seeds), FUZZ_OUT (new inputs, logs and faults; default
# build-fuzz/out), FUZZ_JOBS (default: the number of processors), FUZZ_MB (limit
# of memory, default 2048).
set -euo pipefail

root=$(realpath "$(dirname "$(readlink -f "$0")")/../..")
bin=${FUZZ_BIN:-$root/build-fuzz/tests}
seeds=${FUZZ_SEEDS:-$root/build-fuzz/seeds}
out=${FUZZ_OUT:-$root/build-fuzz/out}
jobs=${FUZZ_JOBS:-$(nproc)}
limit=${FUZZ_MB:-2048}
importers="csv static rmm kineto torch record"
others="any calls trace_file results files settings build"

[ $# -gt 0 ] || { sed -n '2,/^set/{/^set/d;s/^# \?//;p}' "$0" >&2; exit 2; }
seconds=$1
shift
[ $# -gt 0 ] || set -- $importers $others

# The program of a format; importers share one.
program() {
    case " $(echo $importers) any " in
    *" $1 "*) echo fuzz_import ;;
    *) [ "$1" = calls ] && echo fuzz_record || echo "fuzz_$1" ;;
    esac
}

# Runs a program until the time is over. A program ends at each fault; it is
# started again, at most RESTARTS times.
readonly RESTARTS=30
fuzz() {
    local form=$1 folder=$out/$1 end=$((SECONDS + seconds)) dictionary=() left
    local room=65536
    mkdir -p "$folder/inputs" "$folder/faults" "$seeds/$form"
    unset FUZZ_FORMAT
    if [ "$(program "$form")" = fuzz_import ] && [ "$form" != any ]; then
        export FUZZ_FORMAT=$form
    fi
    [ ! -s "$seeds/$form.dict" ] || dictionary=(-dict="$seeds/$form.dict")
    case $form in results | trace_file) room=262144 ;; esac
    for ((i = 0; i <= RESTARTS; i++)); do
        left=$((end - SECONDS))
        [ "$left" -gt 0 ] || break
        ${FUZZ_LOADER:-} "$bin/$(program "$form")" "$folder/inputs" \
            "$seeds/$form" "${dictionary[@]}" -max_total_time="$left" \
            -timeout=20 -report_slow_units=5 -rss_limit_mb="$limit" \
            -malloc_limit_mb="$limit" -max_len="$room" -len_control=20 \
            -print_final_stats=1 -artifact_prefix="$folder/faults/" \
            >>"$folder/log" 2>&1 || echo "exit $?" >>"$folder/log"
    done
}

# The values of a statistic in a log: their sum or the largest; ? for none.
stat() {
    sed -n "s/^stat::$2: *//p" "$1" | sort -n |
        awk -v how="$3" '{ sum += $1; most = $1 }
            END { print !NR ? "?" : how == "sum" ? sum : most }'
}

row() {
    local log=$out/$1/log faults=$out/$1/faults
    printf '%-11s %12s %7s %6s %8s %8s %8s\n' "$1" \
        "$(stat "$log" number_of_executed_units sum)" \
        "$(grep -o 'cov: [0-9]*' "$log" | cut -c6- | sort -n | tail -n 1)" \
        "$(find "$faults" -name 'crash-*' -o -name 'leak-*' -o \
            -name 'oom-*' | wc -l)" \
        "$(find "$faults" -name 'timeout-*' | wc -l)" \
        "$(stat "$log" slowest_unit_time_sec most)" \
        "$(stat "$log" peak_rss_mb most)"
}

for format in "$@"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    fuzz "$format" &
done
wait
printf '%-11s %12s %7s %6s %8s %8s %8s\n' format executions edges crashes \
    timeouts slowest_s peak_MB
for format in "$@"; do row "$format"; done
! find "$out" -path '*/faults/*' \( -name 'crash-*' -o -name 'leak-*' \
    -o -name 'oom-*' -o -name 'timeout-*' \) | grep .
! grep -l '^exit ' "$out"/*/log
