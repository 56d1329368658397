#!/usr/bin/env bash
# check_layers.sh [ROOT]: every #include must follow the arrows
# traces <- policies <- sim, real <- sim/cli, real/torch, and a header may be
# named in one place only. First the check is shown a tree with one violation
# of each kind, to prove that it sees them.
set -u

# The quoted and bracketed includes of the files, as "FILE:LINE:#include ...".
includes() { grep -HnE '^[[:space:]]*#[[:space:]]*include' "$@" /dev/null; }

# files FOLDER: its C sources; sim/cli and real/torch are layers of their own.
files() {
    find "$1" \( -path "$1/cli" -o -path "$1/torch" \) -prune -o \
        -name '*.[ch]' -print 2>/dev/null
}

# layer FOLDER REGEX: quoted includes of FOLDER start with REGEX only.
layer() {
    local list
    list=$(files "$1")
    [ -n "$list" ] || return 0
    # shellcheck disable=SC2086
    includes $list | grep -E 'include[[:space:]]*"' | grep -vE "\"($2)"
}

# only HEADER FILES: no file outside the FILES regex includes HEADER.
only() {
    local list
    list=$(find traces policies sim real -name '*.[ch]' 2>/dev/null)
    [ -n "$list" ] || return 0
    # shellcheck disable=SC2086
    includes $list | grep -E "[<\"]($1)" | grep -vE "^($2):"
}

violations() (
    cd "$1" || exit 2
    layer traces 'traces/'
    layer policies 'traces/base\.h"|policies/'
    layer sim 'traces/|policies/|sim/[^/]*"'
    layer real 'traces/|policies/|real/'
    only 'hdf5' 'traces/trace_file[^/]*\.[ch]|sim/results[^/]*\.[ch]'
    only 'cuda|cupti|nccl' 'real/.*'
    true
)

prove() {
    local tree found
    tree=$(mktemp -d) || exit 2
    # shellcheck disable=SC2064
    trap "rm -rf '$tree'" EXIT
    mkdir -p "$tree"/{traces,policies/mechanism,sim/cli,real}
    printf '#include "traces/base.h"\n#include <stdio.h>\n' \
        >"$tree/policies/good.c"
    printf '#include "policies/policy.h"\n' >"$tree/traces/bad.c"
    printf '#include "traces/trace.h"\n' >"$tree/policies/mechanism/bad.h"
    printf '#include "sim/cli/cli.h"\n#  include "real/x.h"\n' >"$tree/sim/bad.c"
    printf '#include "sim/arena.h"\n' >"$tree/real/bad.c"
    printf '#include <hdf5.h>\n' >"$tree/sim/cli/bad.c"
    printf '#include <hdf5.h>\n' >"$tree/sim/results_write.c"
    printf '#include <cuda.h>\n' >"$tree/traces/import_x.c"
    found=$(violations "$tree" | wc -l)
    [ "$found" -eq 7 ] && return
    echo "check_layers: sees $found of the 7 violations planted" >&2
    violations "$tree" >&2
    exit 1
}

prove
found=$(violations "${1:-$(dirname "$0")/..}")
[ -z "$found" ] && exit 0
echo "$found"
echo "check_layers: these includes go against the arrows" >&2
exit 1
