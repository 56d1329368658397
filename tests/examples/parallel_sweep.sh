#!/bin/sh
# parallel_sweep.sh GRID FOLDER PARTS: one sweep under GNU parallel, here or on
# the machines of --sshlogin (add it and --workdir to the line below).
#
# Run it again after anything went wrong: what the joblog says is done is not
# run again, and a part that was killed goes on where it was.
set -eu
grid=$1 folder=$2 parts=$3
seq "$parts" | parallel --joblog "$folder/joblog" --resume-failed --halt never \
    fragsim sweep -q --grid "$grid" --resume -j 1 --shard "{}/$parts" \
    -o "$folder/part-{}.h5"
fragsim merge -f "$folder/sweep.h5" "$folder"/part-*.h5
