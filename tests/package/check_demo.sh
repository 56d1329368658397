#!/usr/bin/env bash
# check_demo.sh: checks that after `./run demo` in a new copy of the tree the commands that
# README names find their libraries, there and after `cmake --install`.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
command -v gnuplot >/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -C "$root" --exclude='./build*' --exclude=./.git -cf - . | tar -C "$folder" -xf -
"$folder/run" demo >"$folder/log" 2>&1 || {
    tail -20 "$folder/log"
    exit 1
}
cmake --install "$folder/build" --prefix "$folder/there" >"$folder/log" 2>&1 || {
    tail -5 "$folder/log"
    exit 1
}
for tool in build/fragsim there/bin/fragsim; do
    PYTHONPATH="$root/tests/gpu/dry" "$folder/$tool" dry --gpu t4 -- \
        python3 -c 'import torch; torch.empty(9 << 30)' |
        grep -q '^needs 9 GiB .* fits on the Tesla T4' || {
        echo "check_demo: $tool dry has no answer"
        exit 1
    }
    "$folder/$tool" record -q -o "$folder/${tool%%/*}.h5" -- true >"$folder/log" 2>&1 || true
    if grep -q 'found none' "$folder/log"; then
        cat "$folder/log"
        exit 1
    fi
done
