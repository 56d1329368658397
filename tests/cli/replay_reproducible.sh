# Equal runs make equal files, to the byte, when no time is to be recorded.
export SOURCE_DATE_EPOCH=1700000000
fragsim replay small.csv -q -p torch -p best_fit -c inf,30MiB -o r.h5 >/dev/null && mv r.h5 first.h5
fragsim replay small.csv -q -p torch -p best_fit -c inf,30MiB -o r.h5 >/dev/null && cmp first.h5 r.h5
