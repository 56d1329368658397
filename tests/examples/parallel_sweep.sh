#!/bin/sh
# parallel_sweep.sh GRID FOLDER PARTS: runs one sweep under GNU parallel, on
# this machine or on those of --sshlogin (add that option and --workdir to the
# line below).
#
# Run it again after any failure: parts that the joblog lists as done are not
# run again, and a part that was killed continues where it stopped.
set -eu
grid=$1 folder=$2 parts=$3
seq "$parts" | parallel --joblog "$folder/joblog" --resume-failed --halt never \
    fragsim sweep -q --grid "$grid" --resume -j 1 --shard "{}/$parts" \
    -o "$folder/part-{}.h5"
fragsim merge -f "$folder/sweep.h5" "$folder"/part-*.h5
