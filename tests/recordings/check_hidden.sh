#!/bin/sh
# check_hidden.sh: `validate --predicted --hidden-from` on two recordings of one
# program. Without the other run the decisions differ; with it every address is
# predicted. The run itself, in either form of its snapshot, is refused.
# Environment: FRAGSIM (the tool; default build/fragsim).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
fragsim=${FRAGSIM:-$root/build/fragsim}
[ -x "$fragsim" ] || {
    echo "check_hidden: no tool at $fragsim; skipped"
    exit 77
}
at=$root/traces/bundled
status=0

# expect CODE PATTERN ARGUMENT...: runs validate on ARGUMENT.
expect() {
    want=$1 pattern=$2
    shift 2
    said=$("$fragsim" validate "$@" 2>&1)
    code=$?
    if [ "$code" != "$want" ] || ! echo "$said" | grep -q "$pattern"; then
        echo "validate $*: exit $code, expected $want and '$pattern'; found:"
        echo "$said" | head -n 5
        status=1
    fi
}

leak=$at/leak.pickle.xz
expect 1 'addresses 871 of 1881' "$leak" --predicted
expect 0 'addresses 1881 of 1881' "$leak" --predicted \
    --hidden-from "$at/leak_frames.pickle.xz"
expect 0 'learned from another run, in which 47 of 55 addresses' "$leak" \
    --predicted --hidden-from "$at/leak_frames.pickle.xz" --json -
expect 2 'expected another run' "$leak" --predicted --hidden-from "$leak"
expect 2 'expected another run' "$at/leak_cpp.pickle.xz" --predicted \
    --hidden-from "$at/leak_cpp.cpp.pickle.xz"
expect 0 'device 0: equal in sizes, not in addresses' \
    "$at/gpt2_train.pickle.xz" --predicted
expect 0 '0 of 1 exact, 1 equal in sizes' "$at/gpt2_train.pickle.xz" --predicted
expect 2 'needs --predicted' "$leak" --hidden-from "$at/leak_frames.pickle.xz"
# A list that was learned from a run of another program is no error, and the
# requests decide what the allocator does.
expect 1 'DIFFERS' "$leak" --predicted \
    --hidden-from "$at/gpt2_train.pickle.xz"
exit "$status"
