#!/usr/bin/env bash
# check_alone.sh: checks that a program with one policy does not need the
# registry, which refers to every policy. Reads the symbols of the objects in
# the build folder.
# Environment: FRAG_BUILD_DIR (default build).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${FRAG_BUILD_DIR:-$root/build}
policies=$build/CMakeFiles/frag_policies.dir/policies

registry=$(nm --defined-only -f posix "$policies/policy_list.c.o" |
    grep -oE '^frag_[a-z_]+')
for object in "$policies"/*.o "$policies"/*/*.o; do
    needs=$(nm -u -f posix "$object" | cut -d ' ' -f 1 | sort -u)
    found=$(comm -12 <(sort -u <<<"$registry") - <<<"$needs")
    if [ -n "$found" ]; then
        echo "${object#"$policies/"} refers to the registry: $found"
        exit 1
    fi
done
echo "no policy needs the registry"
