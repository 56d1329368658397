#!/bin/sh
# device.sh FRAGSIM OUT TRACE...: what of the simulation holds on this machine's
# GPU. Writes OUT/device_limits.csv (every policy at 1.02 and 0.9 times of what
# the trace asks for, contents checked) and OUT/device_times.csv (without a
# limit, timed three times), with the costs calibrated in between. Needs nothing
# but the tool; exit 1 if a number differs or memory is left.
set -u
fragsim=$1 out=$2
shift 2
all="-p torch:expandable_segments:True"
for p in torch direct first_fit next_fit best_fit worst_fit half_fit buddy \
    tlsf slab size_class bfc rmm_pool rmm_arena rmm_binning cupy cuda_async \
    vma expandable paged stitch remap compact plan_online plan; do
    all="$all -p $p"
done
quick=
for p in torch torch:expandable_segments:True best_fit tlsf size_class bfc \
    cuda_async vma expandable paged stitch remap compact plan; do
    quick="$quick -p $p"
done
status=0
# shellcheck disable=SC2086
"$fragsim" compare -q "$@" $all -c 1.02x,0.9x --check --repeat 1 \
    --csv "$out/device_limits.csv" -f || status=1
"$fragsim" calibrate -q -o "$out/device_costs.csv" -f >/dev/null || exit
# shellcheck disable=SC2086
"$fragsim" compare -q "$@" $quick --repeat 3 --costs "$out/device_costs.csv" \
    --csv "$out/device_times.csv" -f || status=1
about=$(head -1 "$out/device_costs.csv")
for name in limits times; do
    { echo "$about; paper/device.sh" && cat "$out/device_$name.csv"; } \
        >"$out/x" && mv "$out/x" "$out/device_$name.csv"
done
exit $status
