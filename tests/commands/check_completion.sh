#!/usr/bin/env bash
# check_completion.sh: checks the texts that fragsim prints for shells. bash
# must complete words as for a user who presses tab, and man must read one page for each command without a
# warning.
# Environment: FRAGSIM (default build/fragsim).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
fragsim=${FRAGSIM:-$root/build/fragsim}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wrong=0

fail() {
    echo "check_completion: $*"
    wrong=1
}

# shellcheck disable=SC1090
source <("$fragsim" help --completion bash) || fail "bash cannot read it"

# complete WANTED WORD...: checks that tab after the last word offers WANTED.
complete_to() {
    local wanted=$1
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _fragsim 2>/dev/null
    [[ " ${COMPREPLY[*]} " == *" $wanted "* ]] ||
        fail "$*: $wanted is not among: ${COMPREPLY[*]}"
}

complete_to replay fragsim re
complete_to --capacity fragsim replay --cap
complete_to -p fragsim replay -
complete_to best_fit fragsim replay t.pickle -p best
complete_to best_fit fragsim replay t.pickle --policy = best
complete_to cuda fragsim replay --backend c
complete_to results fragsim help res
complete_to "$root/README.md" fragsim info "$root/READ"
complete_to 2.15 fragsim tune t.pickle --torch-version 2.1
complete_to pareto fragsim plot results.h5 pa
complete_to "$root/README.md" fragsim plot "$root/READ"
complete_to print fragsim plot results.h5 pareto --theme p
complete_to fragmentation_ratio fragsim plot results.h5 compare --measure frag
COMP_WORDS=(fragsim replay --backend x) COMP_CWORD=3
_fragsim 2>/dev/null
[ ${#COMPREPLY[@]} -eq 0 ] || fail "offers ${COMPREPLY[*]} for a backend x"

# The page of an alias is that of the command that it names.
verbs=$("$fragsim" help |
    sed -n '/^usage/,/^More/{ /(alias of /d; s/^  \([a-z]*\) .*/\1/p; }')
[ "$(wc -w <<<"$verbs")" -gt 10 ] || fail "help names no commands: $verbs"
for verb in $verbs; do
    "$fragsim" help --man "$verb" >"$folder/page" || fail "no page of $verb"
    grep -q -- "fragsim\\\\-$verb" "$folder/page" || fail "$verb has no name"
    ! command -v man >/dev/null ||
        [ -z "$(man --warnings -E UTF-8 -l "$folder/page" 2>&1 >/dev/null)" ] ||
        fail "man warns about the page of $verb"
done
exit $wrong
