#!/bin/sh
# oom_triage.sh SNAPSHOT CAPACITY: a job ran out of memory on a device of this
# capacity. Which setting lets it fit, and what does the setting cost?
#
# SNAPSHOT is a file of torch.cuda.memory._dump_snapshot. Exit 0: a setting fits
# and is printed last; 1: no setting fits; otherwise fragsim's own code.
set -eu
snapshot=${1:?usage: oom_triage.sh SNAPSHOT CAPACITY}
capacity=${2:?usage: oom_triage.sh SNAPSHOT CAPACITY}

echo "# at $capacity:"
fragsim replay -q "$snapshot" -c "$capacity" -p torch \
    -p torch:expandable_segments:True -p plan
echo
echo "# the device that each needs, with it and with any more:"
fragsim fit -q "$snapshot" -c inf -p torch \
    -p torch:expandable_segments:True -p plan
echo
# Only this part is for the shell: eval "$(oom_triage.sh ... | tail -n 1)"
code=0
fragsim tune -q "$snapshot" -c "$capacity" || code=$?
[ "$code" -ne 1 ] || echo "# ask for less memory, or for a larger device"
exit "$code"
