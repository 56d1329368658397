#!/bin/sh
# nightly.sh RECORDINGS FOLDER [SIZE]: replays every recording of a directory
# with the settings that might be shipped; for cron. Writes to FOLDER: DATE.h5
# with all rows, DATE.csv, and DATE.svg, the peak reserved by policy and trace.
# With a SIZE such as 80GiB, DATE.need.txt has what each recording needs with
# expandable segments, and the exit code is 1 if one does not fit the size.
#
# A recording that cannot be read is named and left out (exit 3 or 4). If a
# night was interrupted, run the script again on the same day: it continues.
set -u
recordings=$1 out=$2/$(date +%F) size=${3-}
fragsim sweep "$recordings"/* --resume -o "$out.h5" --csv "$out.csv" \
    -c inf,1.1x,1.05x -p torch -p torch:expandable_segments:True \
    -p torch:max_split_size_mb:128 -p torch:garbage_collection_threshold:0.8 \
    -p best_fit
code=$?
[ -f "$out.h5" ] || exit "$code"
fragsim plot -q -f "$out.h5" heatmap -o "$out.svg" || exit
[ -n "$size" ] || exit "$code"
fragsim fit "$recordings"/* -c "$size" -p torch:expandable_segments:True \
    >"$out.need.txt"
judged=$?
[ "$code" -ne 0 ] || code=$judged
exit "$code"
