#!/bin/sh
# policy_review.sh FOLDER [TRACE...]: should a training platform switch its
# default to expandable segments? Replays recordings of its jobs with PyTorch's
# default and with expandable segments, and writes FOLDER/report.html: one page
# with the answer and a row for each job; then, as its appendix, tables and
# figures, method and limits.
#
# Without traces it takes the recordings that come with fragsim, one for each
# job. policy_review.awk, beside this script, puts the answer into words. FOLDER
# also has the data, and preface.html and appendix.html, which `fragsim report`
# puts around its page. fragsim must be on PATH. Exit 1: a replay of a recording
# is not exact; 4: gnuplot is missing; otherwise the code of fragsim.
set -eu
folder=${1:?usage: policy_review.sh FOLDER [TRACE...]}
shift
here=$(cd "$(dirname "$0")" && pwd)
bundled=$(cd "$here/../.." && pwd)/traces/bundled
if [ $# -eq 0 ]; then
    for job in cudagraph gpt2_train late_start leak lstm_varlen__cap_below \
        multistream; do
        set -- "$@" "$bundled/$job.pickle.xz"
    done
    set -- "$@" "$bundled/two_streams.pt"
fi
mkdir -p "$folder"
switch=expandable_segments:True

# The model must be PyTorch's allocator on these recordings (exit 1 if not).
fragsim validate -q "$@" >"$folder/validate.txt"
fragsim info -q "$@" -f --json "$folder/info.json"
fragsim sweep -q "$@" -p torch -p "torch:$switch" \
    -c inf,1.02x,1.05x,1.1x,1.2x,1.5x,2x --need capacity --points 2000 -f \
    -o "$folder/runs.h5" --csv "$folder/runs.csv"
fragsim sweep -q "$@" -p torch -p "torch:$switch" --as-recorded -f \
    -o "$folder/recorded.h5" --csv "$folder/recorded.csv"
fragsim tune -q -c inf "$@" >"$folder/tune.txt" || [ $? -eq 1 ]
fragsim conf "$switch" >"$folder/conf.txt"

for part in preface appendix; do
    awk -f "$here/policy_review.awk" -v "part=$part" "$folder/info.json" \
        "$folder/runs.csv" "$folder/recorded.csv" "$folder/tune.txt" \
        "$folder/conf.txt" "$folder/validate.txt" >"$folder/$part.html"
done
(cd "$folder" && fragsim report -q -f runs.h5 --preface preface.html \
    --appendix appendix.html -o report.html)
(cd "$folder" && rm -f info.json conf.txt recorded.h5)
