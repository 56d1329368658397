#!/usr/bin/env bash
# peers.sh DIR [TRACE]...: the replay loop with our policies beside allocators of
# other projects: in one process, in turns, on the same events. DIR holds clones of
# any of these; a peer whose sources are absent is skipped, and the output says so:
#
#   tlsf                   github.com/mattconte/tlsf
#   OffsetAllocator        github.com/sebbbi/OffsetAllocator
#   libCacheSim            github.com/1a1a11a/libCacheSim, with glib's headers
#
# TRACE is gpt2_train of traces/bundled by default.
# Environment: BUILD (DIR/build, a Release build with the peers), ROUNDS (5),
# EVENTS (3000000).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || {
    sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2
    exit 2
}
peers=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- "$root/traces/bundled/gpt2_train.pickle.xz"
build=${BUILD:-$peers/build}

mkdir -p "$build"
configured=$build/configured.log
log=$build/built.log
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DFRAG_PEERS="$peers" >"$configured" || {
    cat "$configured" >&2
    exit 1
}
sed -n 's/^-- peer /skipped: /p' "$configured"
cmake --build "$build" --target bench fragsim >"$log" || {
    grep -E 'error|FAILED' "$log" >&2
    exit 1
}

# A peer, and after it the policies of ours that do the same work.
policies=()
add() { # PEER POLICY...
    grep -q "^-- peer $1 is left out" "$configured" && return
    for name in "$@"; do policies+=(-p "$name"); done
}
add mattconte_tlsf tlsf
add offset_allocator size_class
add libcachesim_lru
[ ${#policies[@]} -gt 0 ] || {
    echo "peers.sh: $peers has the sources of no peer" >&2
    exit 1
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for trace in "$@"; do
    "$build/fragsim" import -q -f "$trace" -o "$folder/trace.h5"
    basename "$trace"
    "$build/tests/bench/bench" "$folder/trace.h5" -n "${EVENTS:-3000000}" \
        -r "${ROUNDS:-5}" "${policies[@]}"
    printf 'peak of a process that plays the trace once, KiB:'
    for name in "${policies[@]}"; do
        [ "$name" != -p ] || continue
        /usr/bin/time -o "$folder/peak" -f %M "$build/tests/bench/bench" \
            "$folder/trace.h5" -n 1 -r 1 -p "$name" >/dev/null
        printf ' %s %s' "$name" "$(cat "$folder/peak")"
    done
    echo
done
