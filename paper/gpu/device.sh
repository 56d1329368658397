#!/bin/sh
# device.sh FRAGSIM OUT TRACE TRACE TRACE TRACE...: compares the simulation with
# this machine's GPU. With twenty recordings it takes about eleven minutes on an
# H200. Each part writes one file or two into OUT:
#   costs     device_costs.csv, the costs of the driver's calls, and
#             device_calls.csv, the times from which they were computed
#   contents  device_contents.csv: every policy at 1.02 and 0.9 times the memory
#             that each of the first four traces requests, with contents checked
#   end       device_end.csv: four policies until the device's memory is used up
#   times     device_times.csv: every policy on every trace without a limit
#   limits    device_limits.csv: the traces after the fourth at the two limits
# Needs only the tool. A part that fails does not stop the others. Exit 1 if a
# number differs, memory is left on the device, or a part fails. plan runs on the
# first four traces only: its two calls are fast, its search is not.
#
# Environment: FRAG_PARTS, the parts to run, in their order. All parts except
# costs need device_costs.csv in OUT.
# shellcheck disable=SC2317  # parts are called by name
set -u
[ $# -ge 6 ] || { sed -n '2,4s/^# //p' "$0" >&2 && exit 2; }
fragsim=$1 out=$2
shift 2
all=
for name in torch torch:expandable_segments:True direct first_fit next_fit \
    best_fit buddy tlsf size_class bfc rmm_pool \
    rmm_arena rmm_binning cupy cuda_async expandable paged stitch remap \
    compact plan_online; do
    all="$all -p $name"
done
costs=$out/device_costs.csv
status=0

# compare NAME ARGUMENT...: adds rows to OUT/device_NAME.csv, whose first line
# states how it was made.
compare() {
    to=$out/device_$1.csv code=0
    shift
    "$fragsim" compare -q "$@" --costs "$costs" --csv "$out/part.csv" -f \
        >"$out/said" 2>&1 || code=1
    tail -n 1 "$out/said"
    [ -s "$out/part.csv" ] || return 1
    if [ ! -f "$to" ]; then
        echo "$(head -n 1 "$costs"); paper/gpu/device.sh" >"$to"
        head -n 1 "$out/part.csv" >>"$to"
    fi
    tail -n +2 "$out/part.csv" >>"$to"
    rm -f "$out/part.csv" "$out/said"
    return "$code"
}

part_costs() {
    "$fragsim" compare --calibrate -q --repeat 12 --csv "$costs" -f \
        --calls "$out/device_calls.csv"
}

# compare_each NAME TRACE... -- ARGUMENT...: compares one trace after the other,
# so that a run that is stopped keeps the traces before.
compare_each() {
    worst=0 name=$1
    shift
    traces=
    while [ "$1" != -- ]; do
        traces="$traces $1"
        shift
    done
    shift
    for trace in $traces; do
        # shellcheck disable=SC2086
        compare "$name" "$trace" $all "$@" || worst=1
    done
    return "$worst"
}

part_contents() {
    compare_each contents "$1" "$2" "$3" "$4" -- -p plan:effort=16000000 \
        -c 1.02x,0.9x --check --repeat 1
}

# A request that only the simulated device can serve counts as a difference.
part_end() {
    "$fragsim" gen -q -f -o "$out/big.h5" \
        stationary:allocs=6000,live=160,mean=1GiB,spread=0.5 || return
    compare end "$out/big.h5" -p torch -p torch:expandable_segments:True \
        -p best_fit -p direct --repeat 1
    rm -f "$out/big.h5"
}

part_times() {
    compare_each times "$@" -- --repeat 2
}

part_limits() {
    shift 4
    compare_each limits "$@" -- -c 1.02x,0.9x --repeat 1
}

for part in ${FRAG_PARTS:-costs contents end times limits}; do
    echo "== $(date +%T) $part"
    rm -f "$out/device_$part.csv"
    "part_$part" "$@" || status=1
    [ -f "$costs" ] || exit 1
done
echo "== $(date +%T) exit $status"
exit "$status"
