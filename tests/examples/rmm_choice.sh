#!/bin/sh
# rmm_choice.sh LOG CAPACITY: which of RMM's memory resources serves a RAPIDS
# program on a device of this capacity, and which device does each need?
#
# LOG is a file of RMM's LoggingResourceAdaptor, one a device, for example of
# rmm.reinitialize(pool_allocator=True, logging=True, log_file_name="rmm.csv"),
# which writes rmm.dev0.csv. Above a pool it holds the program's requests. The
# exit code is that of fragsim.
set -eu
log=${1:?usage: rmm_choice.sh LOG CAPACITY}
capacity=${2:?usage: rmm_choice.sh LOG CAPACITY}

echo "# at $capacity; the second pool has its whole size from the start:"
fragsim replay -q "$log" -c "$capacity" -p rmm_pool \
    -p "rmm_pool:initial=$capacity,maximum=$capacity" \
    -p "rmm_arena:size=$capacity" -p rmm_binning -p cuda_async
echo
echo "# the device that each needs, with it and with any more:"
fragsim fit -q "$log" -p rmm_pool -p rmm_arena:fraction=1 -p rmm_binning \
    -p cuda_async
