#!/bin/sh
# device.sh FRAGSIM OUT TRACE TRACE TRACE TRACE...: what of the simulation holds
# on this machine's GPU, with twenty recordings on an H200 in about eleven
# minutes. Writes into OUT, a part each
#   device_costs.csv     what the driver's calls cost,
#   device_calls.csv     and the times that is fitted to (costs);
#   device_contents.csv  every policy at 1.02 and 0.9 times of what each of the
#                        first four traces asks for, contents checked (contents);
#   device_end.csv       four policies to the true end of the device's memory (end);
#   device_times.csv     every policy on every trace without a limit (times);
#   device_limits.csv    and on the traces after the fourth at those limits
#                        (limits).
# Needs nothing but the tool. A part that fails does not stop the others; exit 1
# if a number differs, memory is left on the device or a part fails. plan runs
# on the first four only: its two calls are soon made, its search is not.
#
# Environment: FRAG_PARTS, the parts to run, in their order; all but costs
# need device_costs.csv in OUT.
# shellcheck disable=SC2317  # parts are called by their names
set -u
[ $# -ge 6 ] || { sed -n '2,4s/^# //p' "$0" >&2 && exit 2; }
fragsim=$1 out=$2
shift 2
all=
for name in torch torch:expandable_segments:True direct first_fit next_fit \
    best_fit worst_fit half_fit buddy tlsf slab size_class bfc rmm_pool \
    rmm_arena rmm_binning cupy cuda_async vma expandable paged stitch remap \
    compact plan_online; do
    all="$all -p $name"
done
costs=$out/device_costs.csv
status=0

# compare NAME ARGUMENT...: more rows of OUT/device_NAME.csv, which begins with
# how it was made.
compare() {
    to=$out/device_$1.csv code=0
    shift
    "$fragsim" compare -q "$@" --costs "$costs" --csv "$out/part.csv" -f \
        >"$out/said" 2>&1 || code=1
    tail -n 1 "$out/said"
    if [ ! -f "$to" ]; then
        echo "$(head -n 1 "$costs"); paper/device.sh" >"$to"
        head -n 1 "$out/part.csv" >>"$to"
    fi
    tail -n +2 "$out/part.csv" >>"$to"
    rm -f "$out/part.csv" "$out/said"
    return "$code"
}

part_costs() {
    "$fragsim" calibrate -q --rounds 12 -o "$costs" -f \
        --calls "$out/device_calls.csv"
}

# shellcheck disable=SC2086
part_contents() {
    compare contents "$1" "$2" "$3" "$4" $all -p plan -c 1.02x,0.9x --check \
        --repeat 1
}

# What the simulated device serves and the real one does not is a difference.
part_end() {
    "$fragsim" gen -q -f -o "$out/big.h5" \
        stationary:allocs=6000,live=160,mean=1GiB,spread=0.5 || return
    compare end "$out/big.h5" -p torch -p torch:expandable_segments:True \
        -p best_fit -p direct --repeat 1
    rm -f "$out/big.h5"
}

part_times() {
    worst=0
    for trace in "$@"; do
        # shellcheck disable=SC2086
        compare times "$trace" $all --repeat 2 || worst=1
    done
    return "$worst"
}

part_limits() {
    worst=0
    shift 4
    for trace in "$@"; do
        # shellcheck disable=SC2086
        compare limits "$trace" $all -c 1.02x,0.9x --repeat 1 || worst=1
    done
    return "$worst"
}

for part in ${FRAG_PARTS:-costs contents end times limits}; do
    echo "== $(date +%T) $part"
    rm -f "$out/device_$part.csv"
    "part_$part" "$@" || status=1
    [ -f "$costs" ] || exit 1
done
echo "== $(date +%T) exit $status"
exit "$status"
